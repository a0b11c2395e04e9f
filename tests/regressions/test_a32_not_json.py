"""A32: NaN was written as JSON that is not standard, and that other readers cannot parse.

The kind of fault: a payload or a result that is not valid JSON, or would not come back equal. Here
a dispatch refuses it before anything is written; as a result it ends its attempt.

https://github.com/taskforcesh/bullmq/pull/2683
"""

import math
from datetime import UTC, datetime
from typing import Any

import pytest

import tenure
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


VALUES: dict[str, Any] = {
    "NaN": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "datetime": datetime(2026, 1, 1, tzinfo=UTC),
    "bytes": b"bytes",
    "set": {1, 2},
    "keys": {(1, 2): "tuple"},
    "deep": deep(5000),
}


async def test_what_is_not_json_is_refused_at_dispatch_and_ends_an_attempt_as_a_result(
    open_site: Opening,
) -> None:
    """W16, and section 7 of the design: a call with one of these stores nothing of the others."""
    async with open_site() as site:
        for value in VALUES.values():
            for payload in (value, {"in": ["side", value]}):
                with pytest.raises(tenure.InvalidJob):
                    await site.queue.dispatch("work", payload)
            with pytest.raises(tenure.InvalidJob):
                await site.queue.dispatch_many([tenure.Call("work"), tenure.Call("work", value)])
        watched = site.worker()

        async def work(kind: str) -> object:
            return VALUES[kind]

        watched.register("work", work)
        async with watched.running():
            ids = [(await site.queue.dispatch("work", kind)).id for kind in VALUES]
            await site.until_state("failed", *ids)
            for job_id in ids:
                error = (await site.queue.get(job_id)).error
                assert error is not None
                assert error.kind == "serialization"
                assert "result cannot be stored" in error.message
            await standing_checks(site, watched, ids=ids, swallowed={"JobFailed": len(ids)})
