"""The operations that write under a hold: outcomes and progress. Others change nothing (I3)."""

from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from msgspec import Struct

from tenure.driver import RecordItem
from tenure.drivers.postgres.claim import arguments as claim_arguments
from tenure.drivers.postgres.encoding import NUMBERS, failure_text, tried_text
from tenure.drivers.postgres.heads import EVER, Heads
from tenure.drivers.postgres.pool import Runner
from tenure.drivers.postgres.rows import read_claims
from tenure.errors import StoreUnavailable
from tenure.history import tried
from tenure.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    Released,
    Retried,
    Snoozed,
    outcome_digest,
)
from tenure.states import State
from tenure.types import Claim, ClaimRequest, Hold, Recorded

__all__ = [
    "Settled",
    "earliest",
    "exchange",
    "fits_one_statement",
    "makes_claimable",
    "progress",
    "record",
]

_PENDING, _COMPLETED, _FAILED, _CANCELLED = (
    NUMBERS[State.PENDING],
    NUMBERS[State.COMPLETED],
    NUMBERS[State.FAILED],
    NUMBERS[State.CANCELLED],
)
_ANSWERS = (Recorded.APPLIED, Recorded.REPEATED, Recorded.FENCED, Recorded.UNKNOWN)


class _Change(Struct, frozen=True, kw_only=True):
    """What an outcome asks of a job: the table of `outcomes.settle`, as far as it is known here.

    The rest depends on the row and is in functions/record.sql: a job that was asked to cancel is
    cancelled instead of made pending.
    """

    state: int
    back: int = 0
    clears: bool = True
    delay: float | None = None
    error: str | None = None
    result: bytes | None = None


def _change(outcome: Outcome) -> _Change:
    match outcome:
        case Completed(result=result):
            return _Change(state=_COMPLETED, result=result)
        case Retried(delay=delay, failure=failure):
            return _Change(state=_PENDING, delay=delay, error=failure_text(failure))
        case Snoozed(delay=delay):
            return _Change(state=_PENDING, back=1, delay=delay)
        case Released(delay=delay):
            return _Change(state=_PENDING, back=1, clears=False, delay=delay)
        case Failed(failure=failure, started=started):
            return _Change(state=_FAILED, back=int(not started), error=failure_text(failure))
        case Cancelled(started=started):
            return _Change(state=_CANCELLED, back=int(not started))
        case _:
            assert_never(outcome)


class Settled(Struct, frozen=True, kw_only=True):
    """What was made of a batch, and whether that may have let jobs with limits come."""

    answers: list[Recorded]
    freed: bool


async def record(runner: Runner, items: Sequence[RecordItem], now: datetime | None) -> Settled:
    """See `Driver.record`.

    The statement takes each id once. Two holds of one job, which is a rare mistake of the caller,
    go one after the other: at most one of them is current.
    """
    answers: dict[int, Recorded] = {}
    freed = False
    left = list(enumerate(items))
    while left:
        by_job = {hold.job_id: (place, (hold, outcome)) for place, (hold, outcome) in left[::-1]}
        batch = [item for _, item in by_job.values()]
        try:
            rows = await runner.fetch("record", *_arguments(batch), now)
        except StoreUnavailable as error:
            if answers:
                raise StoreUnavailable(str(error), ambiguous=True) from error
            raise
        settled = _answers(rows[0][0], batch)
        freed = freed or rows[0][1]
        answers |= {
            place: answer for (place, _), answer in zip(by_job.values(), settled, strict=True)
        }
        left = [each for each in left if each[0] not in answers]
    return Settled(answers=[answers[place] for place in range(len(items))], freed=freed)


def fits_one_statement(items: Sequence[RecordItem]) -> bool:
    """Whether no job comes twice."""
    return len({hold.job_id for hold, _ in items}) == len(items)


async def exchange(
    runner: Runner,
    items: Sequence[RecordItem],
    request: ClaimRequest,
    now: datetime | None,
    heads: Heads,
    *,
    whole: bool,
) -> tuple[Settled, list[Claim]]:
    """Record and claim in one round trip; the whole call fails where one half does.

    `whole` where a job may go back to its place, so that the claim reads from the bottom.
    """
    with heads.claiming(request, whole=whole) as look:
        rows = await runner.fetch(
            "exchange", *_arguments(items), *claim_arguments(request), now, *look.arguments
        )
    *_, numbers, freed = rows[0]
    settled = Settled(answers=_answers(numbers, items), freed=freed)
    claimed = rows if rows[0][0] is not None else []
    claims = read_claims(claimed, request.token, [queue.name for queue in request.queues])
    heads.learn(look, request, claimed, claims)
    return settled, claims


def makes_claimable(items: Sequence[RecordItem]) -> bool:
    """Whether any of the outcomes may put a job back."""
    return any(isinstance(outcome, Retried | Snoozed | Released) for _, outcome in items)


def earliest(items: Sequence[RecordItem], now: datetime | None) -> datetime | None:
    """Since when jobs that the outcomes put back may be due, for `Heads.put`."""
    if now is not None:
        return EVER
    kept = any(isinstance(outcome, Released) and outcome.delay is None for _, outcome in items)
    return EVER if kept else None


def _arguments(items: Sequence[RecordItem]) -> tuple[object, ...]:
    """The columns of the outcomes, in the order of the ids byte by byte."""
    items = sorted(items, key=_job_id)
    holds = (
        [hold.job_id for hold, _ in items],
        [hold.serial for hold, _ in items],
        [hold.token for hold, _ in items],
    )
    results = [outcome.result for _, outcome in items if isinstance(outcome, Completed)]
    if len(results) == len(items):
        if not any(result is not None for result in results):
            return (*holds, *[None] * 9)
        return (*holds, *[None] * 5, results, [outcome_digest(o) for _, o in items], None, None)
    changes = [_change(outcome) for _, outcome in items]
    past = [(hold.job_id, how) for hold, outcome in items if (how := _tried(outcome)) is not None]
    return (
        *holds,
        [change.state for change in changes],
        [change.back for change in changes],
        [change.clears for change in changes],
        [change.delay for change in changes],
        [change.error for change in changes],
        [change.result for change in changes],
        [outcome_digest(outcome) for _, outcome in items],
        [job_id for job_id, _ in past] if past else None,
        [how for _, how in past] if past else None,
    )


def _job_id(item: RecordItem) -> str:
    return item[0].job_id


def _tried(outcome: Outcome) -> str | None:
    """What the history of the job gets."""
    how = None if isinstance(outcome, Completed) else tried(outcome)
    return None if how is None else tried_text(how)


def _answers(numbers: Sequence[int] | None, items: Sequence[RecordItem]) -> list[Recorded]:
    """What the numbers say of each item; they are in the order of `_arguments`."""
    if numbers is None:
        return [Recorded.APPLIED] * len(items)
    by_id = dict(zip(sorted(map(_job_id, items)), numbers, strict=True))
    return [_ANSWERS[by_id[hold.job_id]] for hold, _ in items]


async def progress(runner: Runner, hold: Hold, value: bytes, now: datetime | None) -> Recorded:
    """See `Driver.progress`."""
    rows = await runner.fetch("progress", hold.job_id, hold.serial, hold.token, value, now)
    stored, known = rows[0]
    if stored:
        return Recorded.APPLIED
    return Recorded.FENCED if known else Recorded.UNKNOWN
