"""The model has teeth: it tells a broken driver from the reference, and also without one."""

import pytest

from tenure.clock import SystemClock
from tests.drivers import witnesses as w
from tests.model.running import TEETH, run
from tests.model.subjects import lasting


@pytest.mark.parametrize(
    "witness",
    [
        w.NotFenced,
        w.TiesById,
        w.LeaseIgnored,
        w.AgainIgnored,
        w.PauseIgnored,
        w.RunningJobDeleted,
    ],
)
def test_a_witness_differs_from_the_reference(witness: type[w.Witness]) -> None:
    with pytest.raises(AssertionError):
        run(lambda: lasting(witness(clock=SystemClock())), TEETH)


@pytest.mark.parametrize(
    ("witness", "guarantee"),
    [
        (w.NotFenced, "I3"),
        (w.TiesById, "I11"),
        (w.LeaseIgnored, "I6"),
        (w.RepeatFenced, "I14"),
        (w.DuplicateStoresTheRest, "I15"),
    ],
)
def test_the_ledger_tells_a_witness_where_the_reference_is_as_broken(
    witness: type[w.Witness], guarantee: str
) -> None:
    """The guarantees are judged for themselves, not only by what the memory driver does."""

    def broken() -> w.Witness:
        return witness(clock=SystemClock())

    with pytest.raises(AssertionError, match=rf"^{guarantee}[:,] "):
        run(lambda: lasting(broken()), TEETH, against=broken)
