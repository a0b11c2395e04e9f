"""One id or many in, one answer for each out: what the control verbs have in common. Front."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from tenure.errors import InvalidJob
from tenure.intake import check_name
from tenure.types import Answer

__all__ = ["answered", "may_exist"]

_AT_ONCE = 1000


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
