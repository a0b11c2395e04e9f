"""The operations about limits, and what others ask about them: when rates are over, repairs."""

from collections import Counter

from tenure.drivers.sqlite.lanes import Lanes, keys_of
from tenure.drivers.sqlite.limit_keys import WINDOW, LimitKeys
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.standing import Limit

__all__ = ["drop_limit", "limits", "mend", "put_limit", "rates_over"]

_ALL = statement("limits_all")
_PUT = statement("limit_put")
_DROP = statement("limit_drop")
_FORGET = statement("claims_forget")
_COUNTED = statement("holds_counted")
_TRUE = statement("holds_true")
_RATE_OVER = statement("rate_over")
_EXPOSED = statement("lanes_exposed")
_PARKED = statement("lane_parked")

_EXAMINED = 100
_FORGOTTEN_AT_ONCE = 10_000


def put_limit(limit: Limit) -> Operation[None]:
    """See `Driver.put_limit`."""

    def run(transaction: Transaction) -> None:
        transaction.execute(_PUT, (limit.key, limit.per_second, limit.concurrent))
        _reconsider(transaction, limit.key)

    return run


def drop_limit(key: str) -> Operation[bool]:
    """See `Driver.drop_limit`."""

    def run(transaction: Transaction) -> bool:
        found = transaction.execute(_DROP, (key,)).rowcount > 0
        _reconsider(transaction, key)
        return found

    return run


def limits() -> Operation[list[Limit]]:
    """See `Driver.limits`."""

    def run(transaction: Transaction) -> list[Limit]:
        return [
            Limit(key=key, per_second=per_second, concurrent=concurrent)
            for key, per_second, concurrent in transaction.rows(_ALL, (-1,))
        ]

    return run


def mend(transaction: Transaction, now: int) -> None:
    """Drop claims that no longer count, and count the holds anew.

    The count is exact unless other hands have changed the record of a running job, and then it
    would hold other jobs for ever (I12).
    """
    transaction.execute(_FORGET, (now - WINDOW, _FORGOTTEN_AT_ONCE))
    counted: dict[str, int] = dict(transaction.rows(_COUNTED))
    holds: Counter[str] = Counter()
    for text, n in transaction.rows(_TRUE) if counted else ():
        for key in keys_of(text):
            holds[key] += n
    if holds != Counter(counted):
        lanes = Lanes(transaction, now)
        lanes.correct(counted, holds)
        lanes.finish()
        transaction.wakes |= lanes.exposed


def _reconsider(transaction: Transaction, key: str) -> None:
    transaction.forget_limits()
    lanes = Lanes(transaction, transaction.time(None))
    lanes.changed(key)
    lanes.finish()
    transaction.wakes |= lanes.exposed


def rates_over(transaction: Transaction, queue: str, now: int) -> list[int]:
    """When jobs of a queue may be claimed that wait for nothing but a rate; the first are enough.

    Those of parked lanes, and those that no claim has looked at since the rate was used up. Where
    a due head stands for lanes that are parked on a key with room, the next claim lets them come:
    that is at once.
    """
    times: list[int] = [at for (at,) in transaction.rows(_RATE_OVER, (queue, now))]
    keys = LimitKeys(transaction, now)
    for (text,) in transaction.rows(_EXPOSED, (queue, now, _EXAMINED)):
        names = keys_of(text)
        free_at = keys.free_at(names)
        if free_at is not None and free_at > now:
            times.append(free_at)
        with_room = (key for key in names if keys.full([key]) is None)
        if any(transaction.rows(_PARKED, (key, queue)) for key in with_room):
            times.append(now + 1)
    return times
