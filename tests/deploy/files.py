"""What `deploy/` holds, read as the programs read it that it is for."""

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

__all__ = ["DEPLOY", "commands", "compose", "documents", "procfile", "unit"]

DEPLOY = Path(__file__).parents[2] / "deploy"


def unit() -> configparser.ConfigParser:
    """The unit of systemd, with lines that go on joined."""
    text = (DEPLOY / "systemd" / "shop-worker.service").read_text(encoding="utf-8")
    found = configparser.ConfigParser(interpolation=None, delimiters="=")
    found.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    found.read_string(re.sub(r"\\\n\s*", "", text))
    return found


def procfile() -> dict[str, list[str]]:
    """The words of each process type."""
    lines = (DEPLOY / "procfile" / "Procfile").read_text(encoding="utf-8").splitlines()
    return {name: shlex.split(command) for name, _, command in (x.partition(":") for x in lines)}


def documents(name: str) -> list[dict[str, Any]]:
    """The documents of a file for Kubernetes."""
    text = (DEPLOY / "kubernetes" / name).read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))


def compose() -> dict[str, Any]:
    """The compose file."""
    text = (DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def commands() -> dict[str, list[str]]:
    """Every command of tenure in these files, by where it stands: the words from `tenure` on."""
    services = compose()["services"]
    found = {
        "systemd": shlex.split(unit()["Service"]["ExecStart"]),
        "procfile": procfile()["worker"],
        "compose worker": services["worker"]["command"],
        "compose schema": services["schema"]["command"],
        "compose health": services["worker"]["healthcheck"]["test"][1:],
    }
    for name in ("worker.yaml", "schema.yaml"):
        for document in documents(name):
            if "template" in document.get("spec", {}):
                for each in document["spec"]["template"]["spec"]["containers"]:
                    words = [*each["command"], *each.get("args", ())]
                    found[f"kubernetes {each['name']}"] = words
    for place, words in found.items():
        start = next(at for at, word in enumerate(words) if Path(word).name == "tenure")
        found[place] = ["tenure", *words[start + 1 :]]
    return found
