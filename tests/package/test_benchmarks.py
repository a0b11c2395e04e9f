"""The benchmark suite is in order: adapters, ledger, figures. Nothing is timed."""

import ast
import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.contestants import PEERS, ROOT, Unavailable, contestants, header, prepare
from benchmarks.figures import OURS, REFERENCE, Figures, Row, Unit, percentile
from benchmarks.options import MEASURES, options
from benchmarks.protocol.ledger import Ledger
from benchmarks.steady import seconds_of
from benchmarks.stores import STORES, named

ADAPTERS = sorted(PEERS.glob("*.py"))
PROTOCOL = sorted((ROOT / "benchmarks" / "protocol").glob("*.py"))
KINDS = {store.kind for store in STORES.values()}


def imported(path: Path) -> set[str]:
    """The modules that a file imports, at its top and in its functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom():
                names.add(node.module or "")
            case _:
                pass
    return names


# --- adapters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)
def test_an_adapter_has_a_header_with_pinned_packages(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    data = header(text)
    table = data["tool"]["bench"]
    assert ast.get_docstring(ast.parse(text)), "says what was set, and why"
    assert set(table) <= {"package", "module", "stores", "settings", "slots", "handlers"}
    assert set(table["stores"]) <= KINDS | STORES.keys()
    assert data["requires-python"].startswith(">=3.")
    if path.stem != OURS:
        name, pinned, version = data["dependencies"][0].partition("==")
        assert name.partition("[")[0] == table["package"]
        assert pinned
        assert version


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)
def test_an_adapter_of_a_peer_knows_nothing_of_tenure(path: Path) -> None:
    ours = {name for name in imported(path) if name.partition(".")[0] in ("benchmarks", OURS)}
    of_adapters = {"benchmarks.protocol.client", "benchmarks.protocol.serving", "benchmarks.peers"}
    assert ours <= (of_adapters | {OURS} if path.stem == OURS else of_adapters)


@pytest.mark.parametrize("path", PROTOCOL, ids=lambda path: path.stem)
def test_the_protocol_needs_nothing_but_python(path: Path) -> None:
    tops = {name.partition(".")[0] for name in imported(path)}
    assert tops <= sys.stdlib_module_names | {"benchmarks"}


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)
def test_the_page_lists_every_peer_with_its_version_and_settings(path: Path) -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    data = header(path.read_text(encoding="utf-8"))
    if path.stem != OURS:
        version = data["dependencies"][0].partition("==")[2]
        assert f"\n| {path.stem} | {version} |" in page
        assert f"| {data['tool']['bench']['settings']} |\n" in page


def test_tenure_comes_first_and_runs_in_the_environment_of_the_suite(tmp_path: Path) -> None:
    first = next(iter(contestants().values()))
    assert first.name == OURS
    assert prepare(first, tmp_path) == Path(sys.executable)


def test_a_peer_that_no_python_can_run_is_unavailable(tmp_path: Path) -> None:
    peer = next(each for each in contestants().values() if each.name != OURS)
    impossible = replace(peer, requires_python=">=3.99")
    with pytest.raises(Unavailable, match=r"3\.99"):
        prepare(impossible, tmp_path)


# --- the ledger ---------------------------------------------------------------------------------


def test_the_ledger_adds_up_what_threads_and_openers_write(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger")
    suite, worker = Ledger(path), Ledger(path)

    def work() -> None:
        for _ in range(10):
            worker.began()
            worker.ended()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    worker.delayed(0)
    worker.stated()
    standing = suite.standing()
    assert (standing.jobs, standing.transactions) == (40, 1)
    assert 0 < standing.first <= standing.last
    assert suite.delays_count() == len(suite.delays()) == 1
    suite.close()
    worker.close()


# --- what is made of what was seen --------------------------------------------------------------


def test_looks_at_irregular_instants_give_the_rate_of_each_second() -> None:
    looks = [(0.0, 0), (0.4, 40), (1.0, 100), (1.9, 100), (2.2, 124), (2.5, 500)]
    assert seconds_of(looks) == pytest.approx([100.0, 20.0])


# --- figures ------------------------------------------------------------------------------------


def row(measure: str, who: str, unit: Unit = "jobs/s", *, compared: bool = True) -> Row:
    return Row(
        store="redis", durability="AOF", measure=measure, who=who, unit=unit, compared=compared
    )


def measured() -> Figures:
    """Three rounds; the reference is 10, 20 and 40 writes/s."""
    figures = Figures()
    for number in (1, 2, 4):
        figures.add(row("drain", OURS), 100.0 * number)
        figures.add(row("drain", "peer"), 50.0)
        figures.add(row("pick-up", OURS, "ms"), 2.0)
        figures.add(row("pick-up", "peer", "ms"), 6.0)
        figures.add(row("half load", OURS, "ms", compared=False), 1.0)
        figures.add(row("half load", "peer", "ms", compared=False), 1.0)
        figures.add(row("memory", OURS, "MiB"), 30.0)
        figures.add(row(REFERENCE, "no queue", "writes/s"), 10.0 * number)
        figures.close_round({"redis": 10.0 * number})
    return figures


def found(figures: Figures, measure: str, who: str) -> Row:
    (each,) = [row for row in figures.rows() if (row.measure, row.who) == (measure, who)]
    return each


def test_a_rate_is_divided_by_the_reference_of_its_round_and_a_time_multiplied() -> None:
    figures = measured()
    assert found(figures, "drain", OURS).ratios == [10.0, 10.0, 10.0]
    assert found(figures, "pick-up", OURS).ratios == pytest.approx([0.02, 0.04, 0.08])
    assert found(figures, "memory", OURS).ratios == []


def test_tenure_is_compared_with_a_peer_of_the_same_round_where_that_says_something() -> None:
    figures = measured()
    assert found(figures, "drain", "peer").against == [2.0, 4.0, 8.0]
    assert found(figures, "pick-up", "peer").against == [3.0, 3.0, 3.0]  # less is better
    assert found(figures, "half load", "peer").against == []
    assert found(figures, "drain", OURS).against == []


def test_the_table_has_medians_with_least_and_greatest_and_the_reference_first() -> None:
    lines = list(measured().markdown())
    rows = [line for line in lines if line.startswith("| ")]
    assert "**redis**, durability AOF" in lines
    assert rows[1].startswith(f"| {REFERENCE} |")
    assert "| drain | tenure | 200 (100-400) | jobs/s | 10.0 |  |" in rows
    assert "| drain | peer | 50.0 | jobs/s | 2.50 (1.25-5.00) | 4.00 (2.00-8.00) |" in rows
    assert len({line.count("|") for line in rows}) == 1


def test_json_has_every_round() -> None:
    entry = found(measured(), "drain", "peer").as_json()
    assert entry["rounds"] == [50.0, 50.0, 50.0]
    assert entry["median_tenure_against"] == 4.0
    json.dumps(entry)


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 1.0), (1, 1.0), (50, 50.0), (95, 95.0), (99, 99.0), (100, 100.0)]
)
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(
    percent: float, value: float
) -> None:
    assert percentile([float(number) for number in range(100, 0, -1)], percent) == value


# --- the command line ---------------------------------------------------------------------------


def test_stores_are_named_by_kind_or_one_by_one() -> None:
    assert [store.name for store in named("redis")] == ["redis-everysec"]
    assert [store.name for store in named("sqlite")] == ["sqlite-full", "sqlite-normal"]
    assert [store.name for store in named("redis-always,redis")] == [
        "redis-always",
        "redis-everysec",
    ]


def test_all_means_every_peer_and_every_measure_but_the_long_ones() -> None:
    chosen = options(["--peers", "all", "--only", "all"])
    assert set(chosen.peers) == contestants().keys() - {OURS}
    assert set(chosen.only) == set(MEASURES) - {"recovery", "cores", "steady", "costs"}


@pytest.mark.parametrize(
    "wrong", [["--store", "oracle"], ["--peers", "nobody"], ["--only", "luck"], ["--jobs", "0"]]
)
def test_what_nobody_knows_is_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit):
        options(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite-normal", "redis"])
def test_a_tiny_run_measures_everything_and_ends_well(store: str, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    small = ["--jobs", "50", "--rounds", "1", "--concurrency", "4", "--samples", "3"]
    short = [
        "--load",
        "0.2",
        "--idle",
        "0.5",
        "--steady",
        "2",
        "--crowd",
        "1000",
        "--json",
        str(path),
    ]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks", "--store", store, *small, *short),
            *("--only", ",".join(MEASURES)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(path.read_text(encoding="utf-8"))
    units = {figure["unit"] for figure in report["figures"]}
    assert {"jobs/s", "writes/s", "ms", "x", "1/s"} <= units
    assert report["troubles"] == []
