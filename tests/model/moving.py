"""The state machine with dumps: what the stores say of themselves, and what another makes of it."""

from collections.abc import Sequence
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tenure.clock import SystemClock
from tenure.driver import Capability
from tenure.drivers.memory import MemoryDriver
from tenure.moved import Dump, Restored, StoredJob, at_rest
from tenure.outcomes import Completed
from tenure.types import Claim, ClaimRequest
from tests.model.exercise import EVERYTHING, Exercise
from tests.model.pair import Call, Pair
from tests.model.standing import Model
from tests.model.subjects import Opening, Subject
from tests.model.values import ALL_QUEUES

__all__ = ["MovingModel"]

_ROUNDS = 4


class MovingModel(Model):
    """The calls that change something, and dumps between them. Its clock is never set back."""

    another: Opening  # another empty store of the same kind
    moves = True  # whether there is time for one

    # Not among the rules of this machine, which is about what is stored.

    def the_clock_is_set_back(self, seconds: float) -> None:
        raise NotImplementedError

    def next_due(self, queues: Sequence[str]) -> None:
        raise NotImplementedError

    @precondition(lambda self: Capability.RESTORE in self.exercise.capabilities)
    @rule(limit=st.integers(1, 4))
    def dump(self, limit: int) -> None:
        _check_dump(self.exercise, limit)

    @precondition(lambda self: Capability.RESTORE in self.exercise.capabilities)
    @precondition(lambda self: self.moves and len(self.exercise.view) > 3)
    @rule()
    def all_is_moved_to_another_store(self) -> None:
        self.moves = False
        _check_copy(self.exercise, self.another())


def _check_dump(exercise: Exercise, limit: int) -> list[StoredJob]:
    """Both dump the same, which is what they store; and to take it in again changes nothing."""
    found = _dumped(exercise, limit)
    assert [each.job for each in found] == list(exercise.view.values()), "the jobs of a dump"
    for batch in _batches(found):
        answers = exercise.pair.ask(Call("restore", (batch,)), exercise.now)
        assert answers == [Restored.KNOWN] * len(batch), "I14: restore of what is there"
    assert exercise.pair.view() == exercise.view, "I14: a repeat changed something"
    return found


def _check_copy(exercise: Exercise, empty: Subject) -> None:
    """Take a dump in elsewhere, by the tested kind of store and by the reference, and go on."""
    now, found = exercise.now, _check_dump(exercise, 3)
    copies = Pair(empty, MemoryDriver(clock=SystemClock()))
    try:
        for queue in exercise.ledger.paused:
            copies.ask(Call("pause", (queue, True)), None)
        if Capability.LIMITS in exercise.capabilities:
            for limit in exercise.ledger.limits.limits.values():
                copies.ask(Call("put_limit", (limit,)), None)
        for batch in _batches(found):
            answers = copies.ask(Call("restore", (batch,)), now)
            assert answers == [Restored.STORED] * len(batch), "the answers of restore"
        right = [at_rest(each) for each in found]
        assert list(copies.view().values()) == [each.job for each in right], "the copied jobs"
        assert copies.ask(Call("dump", (None, EVERYTHING)), now).jobs == tuple(right), "the copy"
        copies.counts(now)
        for number in range(_ROUNDS):
            now += timedelta(seconds=number)
            request = ClaimRequest(
                token=f"copy-{number}", queues=ALL_QUEUES, limit=100, worker="w", lease=30.0
            )
            claims: Sequence[Claim] = copies.ask(Call("claim", (request,)), now)
            items = [(claimed.hold, Completed()) for claimed in claims]
            copies.ask(Call("record", (items,)), now)
        copies.view()
    finally:
        copies.close()


def _dumped(exercise: Exercise, limit: int) -> list[StoredJob]:
    """The pages of the tested store, whose jobs are those of the whole dump of the reference."""
    found: list[StoredJob] = []
    cursor: str | None = None
    while True:
        page: Dump = exercise.pair.of_tested(Call("dump", (cursor, limit)), exercise.now)
        assert len(page.jobs) <= limit, "more jobs than were asked for"
        assert page.unreadable == ()
        found += page.jobs
        cursor = page.cursor
        if cursor is None:
            break
    whole = Call("dump", (None, EVERYTHING))
    right: Dump = exercise.pair.of_reference(whole, exercise.now)
    exercise.pair.same(found, list(right.jobs), "the dumps")
    return found


def _batches(found: Sequence[StoredJob]) -> list[Sequence[StoredJob]]:
    return [found[start : start + 3] for start in range(0, len(found), 3)]
