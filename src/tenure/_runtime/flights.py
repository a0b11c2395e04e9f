"""Which claims of one worker are under way, and which have lost their answer.

A claim in flight may take slots that nothing else may be given meanwhile. One whose answer was lost
may have taken jobs: it is repeated until it is answered, since nobody else knows of these. Pure
bookkeeping, by the token of the request.
"""

from collections import Counter

from msgspec.structs import replace

from tenure._runtime.slots import Slots
from tenure.types import ClaimRequest

__all__ = ["Flights"]


class _Flight:
    """A request under way, and how many slots it may take beyond those of what rides with it."""

    __slots__ = ("asked", "request")

    def __init__(self, request: ClaimRequest, asked: int) -> None:
        self.request = request
        self.asked = asked


class Flights:
    """The claims of one worker from their sending to their answer."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._flying: dict[str, _Flight] = {}
        self._unsure: dict[str, ClaimRequest] = {}
        self._first_sent: dict[str, float] = {}
        self._recovered: set[str] = set()

    def __len__(self) -> int:
        return len(self._flying)

    def begin(self, request: ClaimRequest, riding: int, now: float) -> None:
        """The request is sent, with so many outcomes."""
        # What rides gives its slots back in the same step, and counts there until then.
        flight = self._flying[request.token] = _Flight(request, request.limit - riding)
        self._slots.asked += flight.asked
        self._first_sent.setdefault(request.token, now)

    def answered(self, request: ClaimRequest) -> float:
        """It came back; when it was first sent."""
        self._land(request)
        self._unsure.pop(request.token, None)
        return self._first_sent.pop(request.token)

    def failed(self, request: ClaimRequest, *, ambiguous: bool) -> None:
        """It did not; what a lost answer leaves in doubt stays so when a repeat fails for good."""
        self._land(request)
        if ambiguous:
            self._unsure[request.token] = request
        elif request.token not in self._unsure:
            del self._first_sent[request.token]

    def _land(self, request: ClaimRequest) -> None:
        self._slots.asked -= self._flying.pop(request.token).asked

    def lost(self) -> ClaimRequest | None:
        """A request whose answer was lost, to be repeated."""
        for token, request in self._unsure.items():
            if token not in self._flying:
                return replace(request, again=True)
        return None

    def last_repeat(self) -> ClaimRequest | None:
        """The same when the worker stops: each is repeated once more."""
        for token, request in self._unsure.items():
            if token not in self._flying and token not in self._recovered:
                self._recovered.add(token)
                return replace(request, again=True)
        return None

    def asked(self) -> Counter[str]:
        """How many jobs of each queue may come with what is under way."""
        asked: Counter[str] = Counter()
        for flight in self._flying.values():
            asked.update({queue.name: queue.limit for queue in flight.request.queues})
        return asked
