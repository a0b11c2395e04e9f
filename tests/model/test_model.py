"""Random calls on each driver, side by side with the memory driver.

`make test` runs the same sequences of calls each time. `make model` runs others, for as long as
TENURE_MODEL_SECONDS says for each driver, and prints the seeds; TENURE_MODEL_SEED runs one again.
What the model does not see: damaged records (I12), crashes, calls at the same time, calls in a
transaction of the caller.
"""

import time
from random import SystemRandom

import pytest

from tests.model.running import LONG, MOVING, SECONDS, SEED, SHORT, run, run_moving
from tests.model.subjects import SUBJECTS
from tests.servers.postgres import postgres_server
from tests.servers.redis import redis_server

__all__ = ["postgres_server", "redis_server"]  # fixtures


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_driver_does_what_the_reference_does(name: str, request: pytest.FixtureRequest) -> None:
    run(SUBJECTS[name](request), SHORT)


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_store_is_dumped_and_restored_as_the_reference_is(
    name: str, request: pytest.FixtureRequest
) -> None:
    run_moving(SUBJECTS[name](request), MOVING)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_other_sequences_of_calls_each_time(name: str, request: pytest.FixtureRequest) -> None:
    opening = SUBJECTS[name](request)
    end = time.monotonic() + SECONDS
    going_on = True
    while going_on:
        number = int(SEED) if SEED else SystemRandom().randrange(2**32)
        print(f"{name}: TENURE_MODEL_SEED={number}", flush=True)
        run(opening, LONG, number)
        run_moving(opening, LONG, number)
        going_on = not SEED and time.monotonic() < end
