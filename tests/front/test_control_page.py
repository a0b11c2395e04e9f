"""The table of `docs/control.md` says what the verbs answer, for a job in each situation."""

import re
from pathlib import Path

import pytest

import tenure
from tests.front.test_control import failed, finish
from tests.runtime.world import World, each_store, open_world

PAGE = Path(__file__).parents[2] / "docs" / "control.md"
VERBS = ["cancel", "retry", "delete", "move"]


def table() -> dict[str, list[str]]:
    """The cells of each row, by the situation in its first."""
    text = PAGE.read_text(encoding="utf-8")
    rows = text.partition("| the job |")[2].partition("\n\n")[0].splitlines()
    assert re.findall(r"`(\w+)`", rows[0]) == VERBS
    cells = ([cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:])
    return {situation: answers for situation, *answers in cells}


async def arranged(world: World, situation: str) -> str:
    """The id of a job in this situation."""
    if situation == "does not exist":
        return "nobody"
    job = await world.queue.dispatch("work")
    match situation:
        case "waits":
            pass
        case "is being processed":
            assert len(await world.claim_elsewhere()) == 1
        case "has completed":
            await finish(world, tenure.Completed(None))
        case "has failed":
            await finish(world, failed(world))
        case "was cancelled":
            await world.queue.cancel(job.id)
        case _:
            raise AssertionError(f"the page has a row that no test arranges: {situation}")
    return job.id


async def asked(queue: tenure.Queue, verb: str, job_id: str) -> tenure.Answer:
    match verb:
        case "cancel":
            return await queue.cancel(job_id)
        case "retry":
            return await queue.retry(job_id)
        case "delete":
            return await queue.delete(job_id)
        case _:
            return await queue.move(job_id, priority=1)


@each_store
@pytest.mark.parametrize("situation", table())
async def test_each_verb_answers_as_the_page_says(
    store: str, tmp_path: Path, situation: str
) -> None:
    async with open_world(store, tmp_path) as world:
        answers: list[str] = []
        for verb in VERBS:
            answers.append(await asked(world.queue, verb, await arranged(world, situation)))
            await world.queue.cancel_all(state="pending")  # what waited is in no other's way
        assert answers == table()[situation]


def test_the_page_tells_of_every_situation() -> None:
    assert len(table()) == len(tenure.State) + 1 - 1  # and "does not exist", without "blocked"
