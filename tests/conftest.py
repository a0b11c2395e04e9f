"""How tests run: `async def` tests on a fresh event loop in debug mode, and no leaks after any."""

import asyncio
import gc
import inspect
import threading
from collections.abc import Iterator

import pytest

_LONGEST, _LONGEST_SLOW = 60.0, 600.0  # seconds: what waits for ever fails instead


def pytest_collection_finish(session: pytest.Session) -> None:
    """Take what collecting has made out of each later look for garbage: it doubled many a test."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test function; it must leave no task behind."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    longest = _LONGEST_SLOW if pyfuncitem.get_closest_marker("slow") else _LONGEST

    async def run() -> None:
        async with asyncio.timeout(longest):
            await pyfuncitem.obj(**arguments)
        leaked = asyncio.all_tasks() - {asyncio.current_task()}
        assert not leaked, f"tasks left behind: {leaked}"

    asyncio.run(run(), debug=True)
    return True


@pytest.fixture(autouse=True)
def no_threads_left() -> Iterator[None]:
    """Every thread of ours has ended when a test is over, or does so at once."""
    yield
    gc.collect(1)  # warns of what a test left open; to look at everything took a seventh of a run
    if any(thread.name.startswith("tenure-") for thread in threading.enumerate()):
        gc.collect()
    ours = [t for t in threading.enumerate() if t.name.startswith("tenure-")]
    for thread in ours:
        thread.join(2.0)
    assert not [t for t in ours if t.is_alive()], f"threads left behind: {ours}"
