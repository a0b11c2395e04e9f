"""The model has teeth: it tells a broken driver from the reference, and also without one."""

import pytest

from tenure.clock import SystemClock
from tests.drivers import witnesses as w
from tests.drivers import witnesses_of_keys as of_keys
from tests.drivers import witnesses_of_limits as of_limits
from tests.drivers import witnesses_of_time as of_time
from tests.drivers import witnesses_of_turns as of_turns
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
        of_keys.KeyFreedByAnyOutcome,
        of_keys.KeyOutlivesAFailure,
        of_keys.LongestWaitIgnored,
        of_limits.LimitIgnored,
        of_limits.ReclaimKeepsThePlace,
        of_turns.EndGivesAClaimBack,
        of_time.FireWithoutCompare,
        of_time.StallsNotKept,
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
        (of_keys.KeyFreedByAnyOutcome, "I8"),
        (of_keys.KeyFreedByAReclaim, "I8"),
        (of_keys.KeyOutlivesAFailure, "I8"),
        (of_keys.KeyOutlivesADelete, "I8"),
        (of_keys.KeyTakenAgainByARetry, "I8"),
        (of_keys.ThrottleEndsWithTheJob, "I8"),
        (of_limits.LimitIgnored, "limits"),
        (of_turns.RateOfCalendarSeconds, "limits"),
        (of_limits.ReclaimKeepsThePlace, "I11"),
        (of_time.FireWithoutCompare, "I13"),
        (of_time.FireIgnoresTheRevision, "I13"),
        (of_time.HistoryUnbounded, "I16"),
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
