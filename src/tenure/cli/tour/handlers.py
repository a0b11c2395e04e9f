"""The handlers of the tour: plain and async functions that take a payload.

They know nothing of queues and workers, so each can be called, and tested, as any other function.
"""

import asyncio
import hashlib
import zlib
from pathlib import Path
from typing import TypedDict

from tenure._runtime.running_job import RunningJob


class Measured(TypedDict):
    """What the real work finds out about one file; stored as the result of its job."""

    sha256: str
    lines: int
    size: int
    packed: int


def measure(content: bytes) -> Measured:
    """Hash, count and compress the content of a file."""
    return {
        "sha256": hashlib.sha256(content).hexdigest(),
        "lines": content.count(b"\n"),
        "size": len(content),
        "packed": len(zlib.compress(content)),
    }


# --- the real work, once as a coroutine and once in a thread ----------------------------------


async def measure_async(path: str) -> Measured:
    """Runs on the event loop, so what takes long is awaited."""
    content = await asyncio.to_thread(Path(path).read_bytes)
    return await asyncio.to_thread(measure, content)


def measure_in_thread(path: str) -> Measured:
    """A plain function: the worker runs it in a thread, and it may block as it likes."""
    return measure(Path(path).read_bytes())


# --- jobs that meet with an accident ----------------------------------------------------------


def fail_once(payload: None, job: RunningJob) -> str:
    """Registered with a `RetryPolicy`: the second attempt succeeds."""
    if job.attempt == 1:
        raise ConnectionError("the mail server is down")
    return "sent"


def fail(customer: int) -> None:
    """Registered without a policy: one attempt, and the error is kept with the job."""
    raise LookupError(f"there is no customer {customer}")


async def take_too_long(seconds: float) -> None:
    """Is cancelled at its time limit."""
    await asyncio.sleep(seconds)


def greet(name: str) -> str:
    return f"good morning, {name}"


async def survive(payload: None, job: RunningJob) -> str:
    """Its first attempt is in a worker that will be killed; it tells when it has begun."""
    if job.attempt == 1:
        print("started", flush=True)
        await asyncio.sleep(600)
    return f"finished on attempt {job.attempt}"
