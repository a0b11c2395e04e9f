"""Which unique key is held by which job, decided in the transaction that stores or ends the job.

A key is never held by nobody: whatever ends a job frees it, and a mark with a period has an end.
"""

from collections.abc import Iterable

from tenure.drivers.sqlite.encoding import json_list, span
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Transaction
from tenure.types import UniqueKey

__all__ = ["forget", "free", "holders", "lasts", "take"]

_HELD = statement("unique_held")
_TAKE = statement("unique_take")
_FREE = statement("unique_free")
_FORGET = statement("unique_forget")


def holders(transaction: Transaction, keys: Iterable[str], now: int) -> dict[str, str]:
    """The ids of the jobs that hold those of the keys that are held."""
    return dict(transaction.rows(_HELD, (json_list(keys), now)))


def lasts(unique: UniqueKey) -> bool:
    """Whether its period is longer than no time at all."""
    return unique.period is None or span(unique.period) > 0


def take(transaction: Transaction, taking: Iterable[tuple[str, UniqueKey]], now: int) -> None:
    """Let jobs, by id, hold their keys from now on; the caller knows the keys to be free."""
    transaction.executemany(
        _TAKE,
        [
            (
                unique.key,
                job_id,
                None if unique.period is None else now + span(unique.period),
                unique.mode == "throttle",
            )
            for job_id, unique in taking
        ],
    )


def free(transaction: Transaction, job_ids: Iterable[str]) -> None:
    """Free the keys of jobs, by id; nothing is done where there are none."""
    given = list(job_ids)
    if given:
        transaction.execute(_FREE, (json_list(given),))


def forget(transaction: Transaction, now: int, limit: int) -> None:
    """Drop up to `limit` keys whose time is over."""
    transaction.execute(_FORGET, (now, limit))
