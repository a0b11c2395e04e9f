"""What a shell is given completes commands and options."""

import pytest

from tests.edge.cli.running import run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_lines(shell: str) -> None:
    ran = run("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert "_TENURE_COMPLETE" in ran.out


@pytest.mark.parametrize(
    ("words", "completed"),
    [("tenure jo", "jobs"), ("tenure jobs li", "list"), ("tenure --ur", "--url")],
)
def test_the_program_answers_what_the_lines_ask(words: str, completed: str) -> None:
    place = str(len(words.split()) - 1)
    ran = run(env={"_TENURE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": place})
    assert ran.code == 0
    assert ran.out.split() == [f"plain,{completed}"]
