"""Public tools for testing programs and drivers. Nothing in the package itself imports them."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from tenure.testing.clock import ManualClock

if _TYPE_CHECKING:
    from tenure.testing.bench import Bench
    from tenure.testing.dispatched import Dispatched
    from tenure.testing.processed import Processed
    from tenure.testing.sync_bench import SyncBench

__all__ = ["Bench", "Dispatched", "ManualClock", "Processed", "SyncBench"]

# Loaded when they are asked for: pytest imports this package at every start, for its fixtures.
_LATER = {
    "Bench": "tenure.testing.bench",
    "Dispatched": "tenure.testing.dispatched",
    "Processed": "tenure.testing.processed",
    "SyncBench": "tenure.testing.sync_bench",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module 'tenure.testing' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
