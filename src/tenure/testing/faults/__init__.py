"""Faults to order: a driver whose calls fail, come late or freeze, and a network that does.

For tests of programs, of workers and of drivers. `FaultyDriver` stands before a driver, `Relay`
before a server. `RepeatingDriver` makes each call twice, as if its first answer had been lost;
`tenure.testing.conformance` runs with it. `PassingDriver` is what to build others on.
"""

from tenure.testing.faults.driver import FaultyDriver
from tenure.testing.faults.passing import PassingDriver
from tenure.testing.faults.plans import (
    Befallen,
    Failing,
    Fault,
    Freeze,
    Frozen,
    Late,
    Plan,
    Storm,
)
from tenure.testing.faults.relay import Relay
from tenure.testing.faults.repeating import RepeatingDriver

__all__ = [
    "Befallen",
    "Failing",
    "Fault",
    "FaultyDriver",
    "Freeze",
    "Frozen",
    "Late",
    "PassingDriver",
    "Plan",
    "Relay",
    "RepeatingDriver",
    "Storm",
]

for _public in (
    Befallen,
    Failing,
    FaultyDriver,
    Freeze,
    Frozen,
    Late,
    PassingDriver,
    Plan,
    Relay,
    RepeatingDriver,
    Storm,
):
    _public.__module__ = __name__  # tracebacks and help name them by where users import them from
del _public
