"""Limits: the part of a queue that says how many jobs of a key may run, and how fast."""

from collections.abc import Sequence

from tenure.driver import Capability, Driver
from tenure.errors import InvalidConfiguration, InvalidJob, Unsupported
from tenure.intake import check_key
from tenure.opened import Opened
from tenure.standing import Limit

__all__ = ["Limiting"]

_MOST = 1_000_000_000


class Limiting(Opened):
    """The limits of a store, which every worker keeps to when it claims."""

    async def limit(
        self, key: str, *, per_second: int | None = None, concurrent: int | None = None
    ) -> None:
        """Limit the jobs that name `key` in their `limits`, over all workers, from now on.

        `per_second` is how many may be claimed in any one second, `concurrent` how many may run at
        once; at least one of them is given. A key that ends with `*`, such as `customer:*`, gives
        each key with this beginning a limit of its own; the limit on a key itself comes first, then
        the longest beginning. A limit on the same key is replaced. Jobs that run go on, also those
        beyond a lowered limit, and count.

        A limit is not taken and pushed back: a job beyond it waits, in its place in the order, and
        keeps nobody else waiting. Raises `InvalidConfiguration`; `Unsupported` on a store without.
        """
        limit = Limit(
            key=_key(key),
            per_second=_bound("per_second", per_second),
            concurrent=_bound("concurrent", concurrent),
        )
        if per_second is None and concurrent is None:
            rule = "or concurrent must be given, or both"
            raise InvalidConfiguration("per_second", None, rule)
        driver = await self._limited()
        await self._store.repeat(lambda: driver.put_limit(limit))

    async def limits(self) -> Sequence[Limit]:
        """All limits, by key."""
        return await (await self._limited()).limits()

    async def remove_limit(self, key: str) -> bool:
        """Remove the limit that was put on exactly this key; False where there was none."""
        checked = _key(key)
        driver = await self._limited()
        there, repeated = await self._store.repeat(lambda: driver.drop_limit(checked))
        return there or repeated

    async def _limited(self) -> Driver:
        driver = await self.driver()
        if Capability.LIMITS not in driver.capabilities:
            raise Unsupported("limits")
        return driver


def _key(key: object) -> str:
    """A key, or the beginning of keys before a `*`."""
    beginning = key[:-1] if isinstance(key, str) and key.endswith("*") else key
    try:
        if key == "" or beginning != "":
            check_key("key", beginning)
    except InvalidJob as error:
        raise InvalidConfiguration("key", key, error.rule) from None
    return str(key)


def _bound(option: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
        raise InvalidConfiguration(option, value, f"must be a whole number from 1 to {_MOST:,}")
    return value
