"""Whatever is written behind `tenure`: a documented exit code, no traceback, errors in two lines.

`make fuzz` tries many more, and other ones each time.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.cli.exits import Exit
from tests.edge.cli.running import Ran, call, run
from tests.edge.cli.strange import COMMANDS, TEXT, URLS, command_lines

_wanted = os.environ.get("TENURE_FUZZ_EXAMPLES")
_MANY = int(_wanted or 25)  # of each command


def tried(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=_wanted is None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Whatever a command makes is made here."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judged(ran: Ran, arguments: list[str]) -> None:
    """What holds for every run."""
    assert ran.code in set(Exit), (arguments, ran.err)
    assert "Traceback" not in ran.err + ran.out, (arguments, ran.err)
    told = ran.err.splitlines()
    if ran.code != Exit.DONE:
        assert len(told) >= 2, (arguments, ran)
        assert told[-2].startswith("error: "), (arguments, ran)
        assert told[-1].startswith("hint:  "), (arguments, ran)
    assert sum(line.startswith("error: ") for line in told) == (ran.code != Exit.DONE), ran.err
    assert not any(c != "\n" and not c.isprintable() for c in ran.err), (arguments, ran.err)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_any_arguments_end_with_a_documented_code(path: tuple[str, ...], url: str) -> None:
    """On a store with a few jobs."""
    for name in ("greet", "report"):
        assert call("enqueue", name, '"x"', url=url).code == 0

    @tried(_MANY)
    @given(command_lines(path))
    def each(arguments: list[str]) -> None:
        judged(call(*arguments, url=url, stdin="null"), arguments)

    each()


@tried(4 * _MANY)
@given(st.sampled_from(URLS), st.sampled_from(COMMANDS).flatmap(command_lines))
def test_any_address_does(url: str, arguments: list[str]) -> None:
    judged(call("--url", url, *arguments, url="memory://", stdin="null"), arguments)


@tried(3 * _MANY)
@given(st.lists(TEXT, max_size=4))
def test_any_words_do(arguments: list[str]) -> None:
    judged(call(*arguments, url="memory://", stdin=""), arguments)


@tried(_MANY // 5)
@given(st.sampled_from(COMMANDS).flatmap(command_lines))
def test_any_arguments_of_a_process_do(arguments: list[str]) -> None:
    """With the streams and the locale of a real process."""
    judged(run(*arguments, url="sqlite:///jobs.db", stdin="null"), arguments)


@tried(_MANY // 5)
@given(command_lines(("worker",)))
def test_any_arguments_of_a_worker_program_do(arguments: list[str]) -> None:
    """Its app is never one that could run."""
    judged(run(*arguments, url="sqlite:///jobs.db"), arguments)
