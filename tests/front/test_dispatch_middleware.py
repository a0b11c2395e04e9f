"""Middleware around dispatches: it may change calls or refuse them, and loses nothing stored."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

import tenure

Store = Callable[[Sequence[tenure.Call]], Awaitable[Sequence[tenure.JobHandle]]]


async def test_it_surrounds_dispatches_the_first_outermost() -> None:
    """One, and many together; what it changes is what is checked and stored."""
    seen: list[str] = []

    def stamping(name: str) -> tenure.DispatchMiddleware:
        async def stamp(calls: Sequence[tenure.Call], store: Store) -> Sequence[tenure.JobHandle]:
            seen.append(f"{name} before {len(calls)}")
            for call in calls:
                call.headers = {**(call.headers or {}), name: "yes"}
            handles = await store(calls)
            seen.append(f"{name} after {len(handles)}")
            return handles

        return stamp

    async with tenure.connect("memory://", middleware=[stamping("a"), stamping("b")]) as queue:
        job = await queue.dispatch("work", headers={"mine": "1"})
        assert (await queue.get(job.id)).headers == {"mine": "1", "a": "yes", "b": "yes"}
        assert seen == ["a before 1", "b before 1", "b after 1", "a after 1"]
        handles = await queue.dispatch_many([tenure.Call("work"), tenure.Call("work")])
        assert (await queue.get(handles[1].id)).headers == {"a": "yes", "b": "yes"}
        assert seen[4:] == ["a before 2", "b before 2", "b after 2", "a after 2"]
        assert list(await queue.dispatch_many([])) == []


async def test_what_it_raises_before_refuses_the_dispatch() -> None:
    """I15: nothing is stored."""

    async def refuse(calls: Sequence[tenure.Call], store: Store) -> Any:
        raise PermissionError("not today")

    async with tenure.connect("memory://", middleware=[refuse]) as queue:
        with pytest.raises(PermissionError, match="not today"):
            await queue.dispatch("work")
        assert (await queue.counts()).pending == 0


async def test_what_it_raises_afterwards_is_logged_and_the_job_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """I5: a caller that was told of a failure would dispatch again."""

    async def broken(calls: Sequence[tenure.Call], store: Store) -> Any:
        await store(calls)
        raise ValueError("a defect")

    async with tenure.connect("memory://", middleware=[broken]) as queue:
        with caplog.at_level(logging.ERROR, "tenure.dispatch"):
            job = await queue.dispatch("work")
        assert (await queue.get(job.id)).state == "pending"
        assert "a defect" in caplog.text


async def test_an_error_of_the_dispatch_itself_passes_through_it() -> None:
    async def plain(calls: Sequence[tenure.Call], store: Store) -> Any:
        return await store(calls)

    async with tenure.connect("memory://", middleware=[plain]) as queue:
        with pytest.raises(tenure.InvalidJob, match=r"^payload\.at: must be a JSON value"):
            await queue.dispatch("work", {"at": object()})
        with pytest.raises(tenure.InvalidJob, match=r"^calls\[0\]\.priority"):
            await queue.dispatch_many([tenure.Call("work", priority=1000)])


async def test_one_that_drops_or_adds_calls_is_refused() -> None:
    async def drop(calls: Sequence[tenure.Call], store: Store) -> Any:
        return await store(calls[1:])

    async def forget(calls: Sequence[tenure.Call], store: Store) -> Any:
        return []

    for middleware, message in [(drop, "each of the 1 calls"), (forget, "must call store")]:
        async with tenure.connect("memory://", middleware=[middleware]) as queue:
            with pytest.raises(tenure.InvalidConfiguration, match=message):
                await queue.dispatch("work")
            assert (await queue.counts()).pending == 0
    with pytest.raises(tenure.InvalidConfiguration, match="middleware must be async functions"):
        tenure.connect("memory://", middleware=["no"])  # type: ignore[list-item]
