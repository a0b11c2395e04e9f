"""Empty stores for the tests of a program: in a folder, or on servers that are there.

What was made is removed again. It starts no server, and touches nothing that it has not made.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import pytest

from tenure.clock import SystemClock
from tenure.drivers.spare import removed
from tenure.errors import InvalidConfiguration

__all__ = ["Stores"]

_SERVERS = {"redis": "TENURE_TEST_REDIS_URL", "postgres": "TENURE_TEST_POSTGRES_URL"}


class Stores:
    """Makes stores for one test, and removes them at the end of a `with`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Callable[[], Coroutine[Any, Any, None]]] = []

    def make(self, kind: str) -> str:
        """The URL of an empty store: "memory", "sqlite", "redis" or "postgres"."""
        name = f"test_{uuid4().hex}"
        match kind:
            case "memory":
                return "memory://"
            case "sqlite":
                return f"sqlite:///{self._folder / f'{name}.db'}?synchronous=NORMAL"
            case "redis":
                return self._on_server(kind, f"namespace={name}")
            case "postgres":
                return self._on_server(kind, f"schema={name}")
            case _:
                rule = "must be memory, sqlite, redis or postgres"
                raise InvalidConfiguration("kind", kind, rule)

    def _on_server(self, kind: str, own: str) -> str:
        url = _server(kind)
        url = f"{url}{_joined(url)}{own}"
        self._made.append(partial(removed, url, SystemClock()))
        return url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with ThreadPoolExecutor(1) as beside:  # an event loop may run in this thread
            for drop in self._made:
                beside.submit(asyncio.run, drop()).result()


def _server(kind: str) -> str:
    """The server for stores of this kind; skips or fails the test where none is named."""
    url = os.environ.get(_SERVERS[kind], "")
    if not url:
        reason = f"no server for {kind}: {_SERVERS[kind]} is not set"
        if os.environ.get("TENURE_TEST_REQUIRE") == "all":
            pytest.fail(reason)
        pytest.skip(reason)
    return url


def _joined(url: str) -> str:
    return "&" if "?" in url else "?"
