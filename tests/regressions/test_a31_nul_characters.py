"""A31: a NUL character in a payload gave an opaque error of the database.

The kind of fault: text that a store cannot hold. Here it is refused at dispatch, alike on all
stores, with the place; as a result it ends its attempt.

https://github.com/hardbyte/awa/issues/85
"""

from collections.abc import Callable
from typing import Any

import pytest

import tenure
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks

PAYLOADS: dict[str, Any] = {
    "a key and a value": {"a\0b": ["x\0"]},
    "a value": "x\0",
    "three levels down": {"a": [{"b": ["fine", "x\0"]}]},
}
PLACES = {
    "a key and a value": "payload",
    "a value": "payload",
    "three levels down": "payload.a[0].b[1]",
}
ELSEWHERE: dict[str, Callable[[], tenure.Call]] = {
    "name": lambda: tenure.Call("wo\0rk"),
    "queue": lambda: tenure.Call("work", queue="a\0"),
    "unique": lambda: tenure.Call("work", unique="k\0"),
    "id": lambda: tenure.Call("work", id="i\0"),
    "headers": lambda: tenure.Call("work", headers={"h": "\0"}),
    "limits": lambda: tenure.Call("work", limits=["l\0"]),
}


async def test_a_nul_is_refused_wherever_it_is_and_nothing_is_stored(open_site: Opening) -> None:
    """Section 7 of the design: the place is named, and the rest of the call is not stored."""
    async with open_site() as site:
        good = tenure.Call("work")
        for kind, payload in PAYLOADS.items():
            with pytest.raises(tenure.InvalidJob, match="NUL") as caught:
                await site.queue.dispatch_many([good, tenure.Call("work", payload)])
            assert PLACES[kind] in caught.value.path
        for part, call in ELSEWHERE.items():
            with pytest.raises(tenure.InvalidJob) as caught:
                await site.queue.dispatch_many([good, call()])
            assert part in caught.value.path
        watched = site.worker()

        async def work(kind: str) -> object:
            return PAYLOADS[kind]

        watched.register("work", work)
        async with watched.running():
            ids = [(await site.queue.dispatch("work", kind)).id for kind in PAYLOADS]
            await site.until_state("failed", *ids)
            for job_id in ids:
                error = (await site.queue.get(job_id)).error
                assert error is not None
                assert error.kind == "serialization"
                assert "NUL" in error.message
            await standing_checks(site, watched, ids=ids, swallowed={"JobFailed": len(ids)})
