"""The operations by which people and programs steer jobs: cancel, retry, move, pause.

Each decides one job at a time; `Mark` follows what was done, so that an id that comes twice in one
call is judged by what the first time made of it.
"""

from collections.abc import Sequence
from datetime import datetime

from tenure.drivers.sqlite import unique
from tenure.drivers.sqlite.encoding import (
    CANCELLED,
    COMPLETED,
    FAILED,
    PENDING,
    PROCESSING,
    micros,
    read_unique,
)
from tenure.drivers.sqlite.lanes import Lanes
from tenure.drivers.sqlite.marks import Mark, marks
from tenure.drivers.sqlite.rows import readable
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.types import Answer, ManualRetry, Move

__all__ = ["cancel", "move", "pause", "retry"]

_CANCEL = statement("cancel_waiting")
_REQUEST = statement("cancel_request")
_RETRY = statement("retry_now")
_MOVE = statement("move_waiting")
_PAUSE = statement("queue_pause")
_RESUME = statement("queue_resume")

_ENDED = frozenset({COMPLETED, FAILED, CANCELLED})


def cancel(job_ids: Sequence[str], now: datetime | None) -> Operation[list[Answer]]:
    """See `Driver.cancel`."""

    def run(transaction: Transaction) -> list[Answer]:
        instant = transaction.time(now)

        def one(mark: Mark | None) -> Answer:
            if mark is None:
                return Answer.UNKNOWN
            if mark.state in _ENDED:
                return Answer.FINISHED
            if mark.state == PROCESSING:
                transaction.execute(_REQUEST, (instant, mark.seq))
                return Answer.REQUESTED
            transaction.execute(_CANCEL, (instant, mark.seq))
            if mark.unique_key is not None:
                unique.free(transaction, [mark.id])
            if mark.limits is not None:
                lanes.left(mark.seq)
            _became(transaction, mark, CANCELLED)
            return Answer.DONE

        found = marks(transaction, job_ids)
        lanes = Lanes(transaction, instant)
        answers = [one(found.get(job_id)) for job_id in job_ids]
        _finish(transaction, lanes)
        return answers

    return run


def retry(items: Sequence[ManualRetry], now: datetime | None) -> Operation[list[Answer]]:
    """See `Driver.retry`."""

    def run(transaction: Transaction) -> list[Answer]:
        instant = transaction.time(now)

        def one(item: ManualRetry, mark: Mark | None) -> Answer:
            if mark is None:
                return Answer.UNKNOWN
            if item.serial is not None and item.serial != mark.serial:
                return Answer.DONE
            if mark.state == PROCESSING:
                return Answer.RUNNING
            if mark.state not in _ENDED:
                return Answer.LIVE
            if mark.state == COMPLETED:
                return Answer.FINISHED
            if mark.unique_key is not None and not _held_anew(transaction, mark, instant):
                return Answer.HELD
            transaction.execute(_RETRY, (instant, mark.seq))
            _became(transaction, mark, PENDING)
            if mark.limits is not None:
                lanes.enter(mark.seq)
            transaction.wakes = True
            return Answer.DONE

        found = marks(transaction, [item.job_id for item in items])
        lanes = Lanes(transaction, instant)
        answers = [one(item, found.get(item.job_id)) for item in items]
        _finish(transaction, lanes)
        return answers

    return run


def move(items: Sequence[Move], now: datetime | None) -> Operation[list[Answer]]:
    """See `Driver.move`."""

    def run(transaction: Transaction) -> list[Answer]:
        instant = transaction.time(now)

        def one(item: Move, mark: Mark | None) -> Answer:
            if mark is None:
                return Answer.UNKNOWN
            if item.serial is not None and item.serial != mark.serial:
                return Answer.LIVE
            if mark.state == PROCESSING:
                return Answer.RUNNING
            if mark.state in _ENDED:
                return Answer.FINISHED
            at = None if item.at is None else micros(item.at)
            transaction.execute(_MOVE, (item.queue, at, item.priority, instant, mark.seq))
            if mark.limits is not None:
                lanes.left(mark.seq)
                if mark.state == PENDING:
                    lanes.enter(mark.seq)
            if item.queue is not None:
                transaction.moved(mark.queue, mark.state, None)
                transaction.moved(item.queue, None, mark.state)
                mark.queue = item.queue
            transaction.wakes = True
            return Answer.DONE

        found = marks(transaction, [item.job_id for item in items])
        lanes = Lanes(transaction, instant)
        answers = [one(item, found.get(item.job_id)) for item in items]
        _finish(transaction, lanes)
        return answers

    return run


def pause(queue: str, paused: bool) -> Operation[None]:
    """See `Driver.pause`."""

    def run(transaction: Transaction) -> None:
        transaction.execute(_PAUSE if paused else _RESUME, (queue,))
        transaction.wakes |= not paused

    return run


def _held_anew(transaction: Transaction, mark: Mark, now: int) -> bool:
    """Let a retried job hold its key again; False where another does by now."""
    key = readable(mark.unique_key, read_unique, None)
    if key is None or key.mode == "throttle":
        return True
    if unique.holders(transaction, [key.key], now):
        return False
    unique.take(transaction, [(mark.id, key)], now)
    return True


def _finish(transaction: Transaction, lanes: Lanes) -> None:
    lanes.finish()
    transaction.wakes |= lanes.exposed


def _became(transaction: Transaction, mark: Mark, state: int) -> None:
    transaction.moved(mark.queue, mark.state, state)
    mark.state = state
