"""Public tools for testing programs and drivers. Nothing in the package itself imports them."""

from tenure.testing.clock import ManualClock

__all__ = ["ManualClock"]
