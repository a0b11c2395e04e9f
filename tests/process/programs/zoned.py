"""A program in some time zone that dispatches jobs for an instant, written in several ways.

Ends with its stdin. With `works` it also runs a worker, for a store that is its own alone.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta, timezone, tzinfo

import tenure
from tests.process.programs.setting import Setting


class Repeated(tzinfo):
    """Clocks that have just gone back from -04:00 to -05:00: each time comes twice, for ever."""

    def utcoffset(self, when: datetime | None) -> timedelta:
        return timedelta(hours=-4 - (when.fold if when else 0))

    def dst(self, when: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, when: datetime | None) -> str:
        return "repeated"


def ways(instant: datetime) -> Mapping[str, datetime]:
    """The same instant, as people write it."""
    second = (instant - timedelta(hours=5)).replace(tzinfo=Repeated(), fold=1)
    return {
        "naive": datetime.fromtimestamp(instant.timestamp()),  # noqa: DTZ006  # that is the point
        "utc": instant,
        "+02:00": instant.astimezone(timezone(timedelta(hours=2))),
        "local": instant.astimezone(),
        "fold": second,
    }


async def main(setting: Setting) -> None:
    works = setting.options.pop("works", False)
    offset = timedelta(seconds=setting.options.pop("ahead"))
    async with tenure.connect(setting.url) as queue, AsyncExitStack() as stack:
        if works:
            await stack.enter_async_context(setting.worker(queue).run())
        async with setting.until_stdin_closes():
            setting.ledger.write("zone", names=time.tzname)
            for way, at in ways(datetime.now(UTC) + offset).items():
                try:
                    job = await queue.dispatch("quick", way, at=at)
                except tenure.InvalidJob as error:
                    setting.ledger.write("refused", way=way, path=error.path, text=str(error))
                    continue
                due = (await queue.get(job.id)).run_at
                instant = datetime.now(UTC).timestamp()
                setting.ledger.write(
                    "dispatched",
                    way=way,
                    id=job.id,
                    at=at.isoformat(),
                    due=due.isoformat(),
                    now=instant,
                )
            setting.ready()


if __name__ == "__main__":
    asyncio.run(main(Setting()))
