"""A16: an exception that could not be rebuilt crashed the worker as it recorded the retry.

The kind of fault: a record of a failure that cannot be written, so that the job comes back and
crashes the next. Here it is bounded text, made of whatever was raised.

https://github.com/celery/celery/issues/6990
"""

import threading
from typing import NoReturn

import tenure
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks

LONGEST_MESSAGE = 4096
LONGEST_TRACE = 16 * 1024


class Forgetful(Exception):
    """Cannot be built again from its `args`."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Locked(Exception):
    """Holds what cannot be copied or pickled."""

    def __init__(self) -> None:
        super().__init__("locked")
        self.lock = threading.Lock()
        self.rest = (number for number in range(3))


def cycle() -> NoReturn:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise first


def nested() -> NoReturn:
    error: Exception = ValueError("innermost")
    for _ in range(10_000):
        inner: list[Exception] = [error]
        error = ExceptionGroup("group", inner)
    raise error


async def work(payload: str) -> None:
    match payload:
        case "Forgetful":
            raise Forgetful(5, "why")
        case "Locked":
            raise Locked
        case "cycle":
            cycle()
        case "large":
            raise ValueError("x" * 5_000_000)
        case "nested":
            nested()
        case _:
            raise AssertionError(payload)


BEGINNINGS = {
    "Forgetful": "Forgetful: why",
    "Locked": "Locked: locked",
    "cycle": "ValueError: first",
    "large": "ValueError: xxx",
    "nested": "ExceptionGroup: group",
}


async def test_any_exception_is_recorded_as_bounded_text(open_site: Opening) -> None:
    """W13: the attempts advance, through a retry, and the worker lives."""
    async with open_site() as site:
        watched = site.worker()
        policy = tenure.RetryPolicy(max_attempts=2, base=0.01, jitter=False)
        watched.register("work", work, retry=policy)
        async with watched.running() as handle:
            jobs = {kind: await site.queue.dispatch("work", kind) for kind in BEGINNINGS}
            ids = [job.id for job in jobs.values()]
            await site.until_state("failed", *ids)
            for kind, job in jobs.items():
                record = await site.queue.get(job.id)
                assert record.attempt == 2
                assert record.error is not None
                assert record.error.message.startswith(BEGINNINGS[kind])
                assert len(record.error.message) <= LONGEST_MESSAGE
                assert 0 < len(record.error.trace) <= LONGEST_TRACE
            assert handle.healthy
            failures = 2 * len(ids)
            await standing_checks(site, watched, ids=ids, swallowed={"JobFailed": failures})
