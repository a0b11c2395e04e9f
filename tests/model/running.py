"""How long the machine runs, and from which seed."""

import os
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tenure.clock import SystemClock
from tenure.driver import Driver
from tenure.drivers.memory import MemoryDriver
from tests.model.moving import MovingModel
from tests.model.standing import Model
from tests.model.subjects import Opening

__all__ = ["LONG", "MOVING", "SECONDS", "SEED", "SHORT", "TEETH", "run", "run_moving"]

SECONDS = float(os.environ.get("TENURE_MODEL_SECONDS", "10"))
SEED = os.environ.get("TENURE_MODEL_SEED")

_ANY = settings(
    database=None,
    deadline=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_SAME_EACH_TIME = settings(_ANY, derandomize=True)

# A sequence that fails is made short for minutes, which is longer than a test may take elsewhere.
_FIND_ONLY = (Phase.generate,)
_PHASES = settings().phases if "TENURE_MODEL_SECONDS" in os.environ else _FIND_ONLY

SHORT = settings(_SAME_EACH_TIME, phases=_PHASES, max_examples=30, stateful_step_count=50)
LONG = settings(_ANY, phases=_PHASES, max_examples=200, stateful_step_count=80)
MOVING = settings(SHORT, max_examples=12)
TEETH = settings(_SAME_EACH_TIME, phases=_FIND_ONLY, max_examples=150, stateful_step_count=120)


def reference() -> Driver:
    return MemoryDriver(clock=SystemClock())


def run(
    opening: Opening,
    budget: settings,
    number: int | None = None,
    *,
    against: Callable[[], Driver] = reference,
) -> None:
    """Run the machine on fresh stores; `number` seeds its choices."""

    class Machine(Model):
        def __init__(self) -> None:
            super().__init__(opening(), against())

    machine = Machine if number is None else seed(number)(Machine)
    run_state_machine_as_test(machine, settings=budget)


def run_moving(opening: Opening, budget: settings, number: int | None = None) -> None:
    """The same with dumps, and a move to another fresh store."""

    class Machine(MovingModel):
        another = staticmethod(opening)

        def __init__(self) -> None:
            super().__init__(opening(), reference())

    machine = Machine if number is None else seed(number)(Machine)
    run_state_machine_as_test(machine, settings=budget)
