"""The public conformance kit: proves that a driver keeps the contract of `tenure.driver`.

    async def main() -> None:
        report = await conform(open_store)
        report.raise_for_failures()

`open_store` returns an async context manager that gives a fresh, opened, empty store each time it
is called. Every check passes its own instants, around the year 2030, wherever an operation takes
`now`; nothing sleeps. A check is skipped only for a capability that the driver does not name. Under
pytest, use `tenure.testing.conformance.adapter`.
"""

from tenure.testing.conformance.catalog import CHECKS
from tenure.testing.conformance.check import Check, ConformanceFailure
from tenure.testing.conformance.report import OpenStore, Report, Result, conform, prove

__all__ = [
    "CHECKS",
    "Check",
    "ConformanceFailure",
    "OpenStore",
    "Report",
    "Result",
    "conform",
    "prove",
]
