"""The alerts and the dashboard: Prometheus takes them; they name only metrics that there are."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from tenure.observe.prometheus import Metrics
from tests.deploy.files import DEPLOY
from tests.servers.prometheus import promtool

ALERTS = DEPLOY / "prometheus" / "alerts.yml"
TESTS = Path(__file__).with_name("alerts_test.yml")
BOARD = DEPLOY.parent / "src" / "tenure" / "cli" / "watch" / "board.py"

_SERIES = re.compile(r"\b(tenure_\w+)\b(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+) *(?:=~|!~|!=|=) *"')
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring) *\(([^)]*)\)")
_SHOWN = re.compile(r"\{\{ *(?:\$labels\.)?(\w+) *\}\}")
_SCRAPED = {"instance", "job", "le"}  # what Prometheus itself, or a histogram, adds


def labels_of(collector: object) -> set[str]:
    found: tuple[str, ...] = getattr(collector, "_labelnames", ())
    return set(found)


def series() -> dict[str, set[str]]:
    """Every series that a worker program shows, with its labels."""
    registry = CollectorRegistry()
    Metrics(registry)
    found: dict[str, set[str]] = {}
    suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
    collectors: dict[Any, Any] = vars(registry)["_collector_to_names"]  # it has no other way to ask
    for collector in collectors:
        (family,) = collector.describe()
        for suffix in suffixes.get(family.type, [""]):
            found[f"{family.name}{suffix}"] = labels_of(collector)
    for name in re.findall(r'_gauge\(\s*"(\w+)"', BOARD.read_text(encoding="utf-8")):
        found[name] = set()
    return found


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def dashboard() -> dict[str, Any]:
    text = (DEPLOY / "grafana" / "tenure.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def targets() -> Iterator[tuple[str, str, str]]:
    """Each expression of the dashboard, with its panel and its legend."""
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]


def strangers(expression: str, shown: str) -> list[str]:
    """What an expression and the text for it name, and no program has."""
    known = series()
    found: list[str] = []
    labels = set(_SCRAPED)
    for name, matchers in _SERIES.findall(expression):
        if name not in known:
            found.append(name)
            continue
        labels |= known[name]
        found += [f"{name}: {m}" for m in _MATCHER.findall(matchers) if m not in known[name]]
    for names in _GROUPING.findall(expression):
        found += [n for each in names.split(",") if (n := each.strip()) not in labels]
    return found + [name for name in _SHOWN.findall(shown) if name not in labels]


def test_every_alert_names_what_there_is() -> None:
    for rule in alerts():
        assert strangers(rule["expr"], rule["annotations"]["summary"]) == [], rule["alert"]


def test_every_panel_names_what_there_is() -> None:
    for title, expression, legend in targets():
        assert "tenure_" in expression
        assert strangers(expression, legend) == [], title
    (source, queue) = dashboard()["templating"]["list"]
    assert (source["type"], queue["name"]) == ("datasource", "queue")
    assert queue["query"]["query"] == "label_values(tenure_jobs_claimed_total, queue)"


@pytest.mark.parametrize(
    "wrong",
    [
        "tenure_jobs_despatched_total",
        'tenure_jobs_claimed_total{outcome="failed"}',
        "sum by (outcome) (tenure_jobs_claimed_total)",
        "tenure_job_wait_seconds",  # a histogram has no series of its own name
    ],
)
def test_what_there_is_not_is_found(wrong: str) -> None:
    assert strangers(wrong, "") != []


def test_every_metric_is_shown() -> None:
    """Or the dashboard is behind the program."""
    text = " ".join(expression for _, expression, _ in targets())
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name, _ in _SERIES.findall(text)}
    assert shown == {re.sub(r"_(bucket|sum|count)$", "", name) for name in series()}


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(ids) == len(set(ids))


def tool(*arguments: object) -> None:
    done = subprocess.run(
        [promtool(), *map(str, arguments)], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_rules_and_the_configuration() -> None:
    tool("check", "rules", ALERTS)
    tool("check", "config", DEPLOY / "prometheus" / "prometheus.yml")


def test_prometheus_takes_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    """With the values that Grafana puts in for its variables."""
    rules = [
        {
            "record": f"panel:{number}",
            "expr": expression.replace("$__rate_interval", "1m").replace("$queue", ".*"),
        }
        for number, (_, expression, _) in enumerate(targets())
    ]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}), "utf-8")
    tool("check", "rules", file)


def test_each_alert_fires_when_it_is_to_and_only_then() -> None:
    """The cases are in alerts_test.yml; each alert has one of either kind."""
    tool("test", "rules", TESTS)
    cases = yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]
    seen: dict[str, set[bool]] = {}
    for case in cases:
        for each in case["alert_rule_test"]:
            seen.setdefault(each["alertname"], set()).add(bool(each["exp_alerts"]))
    assert seen == {rule["alert"]: {True, False} for rule in alerts()}


def test_the_page_explains_every_alert() -> None:
    page = (DEPLOY.parent / "docs" / "how-to" / "monitoring.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| (Tenure\w+) \|", page, re.M)
    assert explained == [rule["alert"] for rule in alerts()]
