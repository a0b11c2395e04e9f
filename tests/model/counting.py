"""What can be told of stored jobs by looking at them: how many there are, and which are too old."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import inf

from tenure.states import State
from tenure.types import Counts, Job, Retention
from tests.model.ledger import View

__all__ = ["beyond", "counted"]

_MINUTE = timedelta(minutes=1)


def counted(view: View, now: datetime, paused: frozenset[str] = frozenset()) -> Counts:
    """The counts of these jobs. Of the queues only those that have any."""
    by_queue: dict[str, Counts] = {}
    for queue in sorted({job.queue for job in view.values()}):
        jobs = {key: job for key, job in view.items() if job.queue == queue}
        by_queue[queue] = _numbers(list(jobs.values()), now, {}, frozenset())
    return _numbers(list(view.values()), now, by_queue, paused)


def _numbers(
    jobs: Sequence[Job[bytes]], now: datetime, by_queue: dict[str, Counts], paused: frozenset[str]
) -> Counts:
    states = [job.state for job in jobs]
    due = [job for job in jobs if job.state is State.PENDING and job.run_at <= now]
    return Counts(
        pending=len(due),
        scheduled=states.count(State.PENDING) - len(due),
        blocked=states.count(State.BLOCKED),
        processing=states.count(State.PROCESSING),
        completed=states.count(State.COMPLETED),
        failed=states.count(State.FAILED),
        cancelled=states.count(State.CANCELLED),
        by_queue=by_queue,
        paused=paused,
    )


def beyond(view: View, retention: Retention, now: datetime) -> list[Job[bytes]]:
    """The finished jobs that the retention no longer keeps; the view is in the order of arrival."""
    ages = {
        State.COMPLETED: retention.completed,
        State.FAILED: retention.failed,
        State.CANCELLED: retention.cancelled,
    }
    number: Counter[str] = Counter()
    size: Counter[str] = Counter()
    found: list[Job[bytes]] = []
    ended = [(job.finished_at, job) for job in view.values() if job.finished_at is not None]
    ended.sort(key=lambda entry: entry[0])  # of those that ended together the order stays
    for end, job in reversed(ended):
        age = ages[job.state]
        doomed = age is not None and now - end > timedelta(seconds=age)
        if job.state is State.COMPLETED:
            number[job.queue] += 1
            size[job.queue] += len(job.payload) + len(job.result or b"")
            doomed = (
                doomed
                or number[job.queue] > _or_all(retention.completed_count)
                or size[job.queue] > _or_all(retention.completed_bytes)
            )
        if doomed and now - end >= _MINUTE:
            found.append(job)
    return found


def _or_all(bound: int | None) -> float:
    return inf if bound is None else bound
