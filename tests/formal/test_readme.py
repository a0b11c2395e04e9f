"""The page of the models names what exists, and no rule is left out of the tests."""

import re
from pathlib import Path

import pytest

from tests.formal import test_holds, test_schedules
from tests.formal.checker import FORMAL
from tests.package.test_docs import PACKAGE, PLACE, problems

README = (FORMAL / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (`[^|]*`) \| [^|]* \| (`[^|]*) \|$", re.M)
ACTION = re.compile(r"^(?:inline|proctype) (\w+)", re.M)
SPAN = re.compile(r"`([^`]+)`")


def text_of(model: str) -> str:
    """A model with the files that it includes."""
    parts = [FORMAL / f"{model}.pml", *sorted((FORMAL / model).glob("*.pml"))]
    return "\n".join(part.read_text(encoding="utf-8") for part in parts)


def missing_code(spans: list[str]) -> list[str]:
    """Those that name no file, or nothing that their file defines."""
    paths = [span for span in spans if PLACE.fullmatch(span) is None]
    wrong = [path for path in paths if not (PACKAGE / path).is_file()]
    places = " ".join(f"`{span}`" for span in spans if span not in paths)
    return wrong + problems(places)


def test_the_table_names_only_actions_and_code_that_exist() -> None:
    rows = ROW.findall(README)
    actions = set(ACTION.findall(text_of("holds") + text_of("schedules")))
    assert len(rows) >= 12
    assert [name for row in rows for name in SPAN.findall(row[0]) if name not in actions] == []
    assert [wrong for row in rows for wrong in missing_code(SPAN.findall(row[1]))] == []


@pytest.mark.parametrize(
    "wrong", ["queue.py: Queue.despatch", "nowhere.py", "drivers/redis/lua/despatch.lua"]
)
def test_wrong_code_is_found(wrong: str) -> None:
    assert missing_code(["queue.py: Queue.dispatch", wrong]) != []


@pytest.mark.parametrize(
    ("model", "tested"), [("holds", test_holds.BROKEN), ("schedules", test_schedules.BROKEN)]
)
def test_every_rule_that_can_be_taken_out_is(
    model: str, tested: dict[str, tuple[str, str]]
) -> None:
    text = text_of(model)
    assert set(re.findall(r"BAD_([A-Z_]+[A-Z])", text)) == set(tested)
    guarantees = {guarantee for _, guarantee in tested.values()}
    assert [name for name in guarantees if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("file", sorted(FORMAL.rglob("*.pml")), ids=lambda file: file.name)
def test_a_model_can_be_read_in_one_sitting(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) < 400
