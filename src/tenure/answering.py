"""One id or many in, one answer for each out: what the control verbs have in common. Front."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from tenure.driver import Driver
from tenure.errors import InvalidJob
from tenure.intake import check_name
from tenure.states import State
from tenure.types import Answer, Job

__all__ = ["answered", "look", "may_exist", "retried_at_first"]

T = TypeVar("T")

_AT_ONCE = 1000
_LOOKS = 8  # at once: the store's connections are also for its workers


async def answered(
    job_ids: str | Iterable[str], ask: Callable[[Sequence[str]], Awaitable[Sequence[Answer]]]
) -> Answer | Sequence[Answer]:
    """The answers in the order of `job_ids`, a repeated id with the same one.

    `ask` gets each id once, up to 1,000 in a call; an id that no job can have is `UNKNOWN` without
    a question.
    """
    given = [job_ids] if isinstance(job_ids, str) else list(job_ids)
    ids = [job_id for job_id in dict.fromkeys(given) if may_exist(job_id)]
    answers: dict[str, Answer] = {}
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        answers |= zip(some, await ask(some), strict=True)
    each = [answers.get(job_id, Answer.UNKNOWN) for job_id in given]
    return each[0] if isinstance(job_ids, str) else each


def may_exist(job_id: object) -> bool:
    """Whether a job could have this id."""
    try:
        check_name("id", job_id)
    except InvalidJob:
        return False
    return True


async def look(
    driver: Driver, job_ids: Sequence[str], keep: Callable[[Job[bytes]], T]
) -> list[T | None]:
    """Look at many jobs, a few at a time, and keep of each what is needed; None: no such job."""
    found: list[T | None] = [None] * len(job_ids)
    left = iter(enumerate(job_ids))

    async def some() -> None:
        for index, job_id in left:
            job = await driver.get(job_id)
            found[index] = None if job is None else keep(job)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(_LOOKS, len(job_ids))):
                group.create_task(some())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None  # the first that failed; the others were cancelled
    return found


def retried_at_first(before: Iterable[State], answers: Sequence[Answer]) -> Sequence[Answer]:
    """What the first try of a manual retry answered, by the states before and a repeat's answers.

    A job that had ended and lives now was retried by it, or by someone else just then.
    """
    return [
        Answer.DONE if state in _RETRIED and answer in _LIVES else answer
        for state, answer in zip(before, answers, strict=True)
    ]


_RETRIED = frozenset({State.FAILED, State.CANCELLED})
_LIVES = frozenset({Answer.LIVE, Answer.RUNNING})
