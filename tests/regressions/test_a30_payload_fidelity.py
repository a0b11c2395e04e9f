"""A30: a delayed job with an empty list of arguments came back with an empty object, and failed.

The kind of fault: a store that decodes a payload and encodes it again. Here it is bytes to every
store, and the same bytes at each attempt.

https://github.com/edgurgel/verk/issues/149
"""

from typing import Any

import tenure
from tests.regressions.lost import lose
from tests.regressions.sites import Opening, Site
from tests.regressions.standing import standing_checks

PAYLOAD: dict[str, Any] = {"args": [], "opts": {}, "n": [[], [{}], None], "s": "\u00e9\u2028"}


async def stored(site: Site, job_id: str) -> bytes:
    """The payload as the store has it."""
    job = await (await site.driver()).get(job_id)
    assert job is not None
    return job.payload


async def test_a_payload_is_the_same_at_each_attempt_byte_for_byte(open_site: Opening) -> None:
    """I10: delayed, recovered from a worker that was lost, failed, and done."""
    async with open_site() as site:
        job = await site.queue.dispatch("work", PAYLOAD, delay=0.3, max_attempts=3)
        given = await stored(site, job.id)

        async def due() -> bool:
            return (await site.queue.counts()).scheduled == 0

        await site.until(due, lambda: "it is not due")
        assert await lose(site, 1) == [job.id]
        assert await stored(site, job.id) == given
        watched = site.worker()
        seen: list[object] = []
        raws: list[bytes] = []

        async def work(payload: object, job: tenure.RunningJob) -> object:
            seen.append(payload)
            raws.append(await stored(site, job.id))
            if job.attempt == 2:
                raise ValueError("no")
            return payload

        watched.register("work", work)
        async with watched.running():
            await site.until_state("completed", job.id)
            record = await site.queue.get(job.id)
            assert seen == [PAYLOAD, PAYLOAD]
            assert [*raws, await stored(site, job.id)] == [given] * 3
            assert record.payload == record.result == PAYLOAD
            await standing_checks(site, watched, ids=[job.id], swallowed={"JobFailed": 1})
