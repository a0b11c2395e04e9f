"""The public conformance kit: proves that a driver keeps the contract of `tenure.driver`.

    async def main() -> None:
        report = await conform(open_store)
        report.raise_for_failures()

`open_store` returns an async context manager that gives a fresh, opened, empty store each time it
is called. Every check passes its own instants, around the year 2030, wherever an operation takes
`now`; nothing sleeps. A check is skipped only for a capability that the driver does not name. Under
pytest, use `tenure.testing.conformance.adapter`. `repeating` makes of it a kit in which every
answer is lost once; `REPEATABLE` are the checks for that.
"""

from tenure.testing.conformance.again import NOT_REPEATED, REPEATABLE, repeating
from tenure.testing.conformance.catalog import CHECKS
from tenure.testing.conformance.check import Check, ConformanceFailure
from tenure.testing.conformance.report import OpenStore, Report, Result, conform, prove

__all__ = [
    "CHECKS",
    "Check",
    "ConformanceFailure",
    "NOT_REPEATED",
    "OpenStore",
    "REPEATABLE",
    "Report",
    "Result",
    "conform",
    "prove",
    "repeating",
]
