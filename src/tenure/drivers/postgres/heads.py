"""Where the live part of the order of claims begins, as far as this process knows: a hint.

Dead rows that a forgotten transaction keeps from being removed (*stuck*, see vacuum.py) lie at the
head of the ready index, and each claim walks over all of them. A claim that is told where the last
one ended begins there. Used only while dead rows are stuck: else nothing here does anything.

What another process puts below a head, or commits late, is passed over until the priority is read
from its bottom again: within a second, and sooner where a claim finds fewer jobs than it asked for.
What this process puts below one is never passed over (I11), which is why its writes are told here.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from msgspec import Struct

from tenure.clock import Clock
from tenure.drivers.postgres.rows import Row, read_places
from tenure.types import Claim, ClaimRequest

__all__ = ["EVER", "Heads", "Look"]

EVER = datetime.min.replace(tzinfo=UTC)

_TRUSTED = 1.0  # seconds from one reading of the bottom to the next
_SHARE = 10.0  # times as long as that took, before fewer jobs than asked for bring it forward

Line = tuple[str, int]  # a queue and a priority
Place = tuple[datetime, int]  # when a job is due, and its seq


class _Head(Struct, kw_only=True):
    """Nothing that is due lies at this place or below it. Instants are of the monotonic clock."""

    place: Place
    until: float  # trusted no longer
    soonest: float  # to be read from the bottom where claims find too little


class Look(Struct, frozen=True, kw_only=True):
    """What one claim was told, and what may be learned from it."""

    lines: dict[Line, Place]
    begun: float
    epoch: int
    latest: datetime | None  # no head beyond it may be learned; None for none at all

    @property
    def arguments(self) -> tuple[object, ...]:
        """As functions/claim.sql takes it."""
        if not self.lines:
            return (None, None, None, None)
        return (
            [queue for queue, _ in self.lines],
            [priority for _, priority in self.lines],
            [at for at, _ in self.lines.values()],
            [seq for _, seq in self.lines.values()],
        )


_ANYWHERE = Look(lines={}, begun=0.0, epoch=-1, latest=None)


class Heads:
    """The heads that one event loop knows."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stuck = False
        self._heads: dict[Line, _Head] = {}
        self._epoch = 0
        # A time that the server has had: what is written from now on is due then or later.
        self._known = EVER
        self._puts: dict[int, datetime] = {}  # writes under way, and from when on they may put jobs
        self._put = 0

    def stuck(self, stuck: bool) -> None:
        """Dead rows cannot be removed at present, or they can."""
        self._stuck = stuck
        if not stuck:
            self.forget()

    def forget(self) -> None:
        """The next claims read from the bottom; those under way teach nothing."""
        self._heads.clear()
        self._epoch += 1

    def put(self, earliest: datetime | None = None) -> Callable[[object], None]:
        """A write begins that may let jobs come; what is returned is to be called at its end.

        They are due at the time of the write or later, or else not before `earliest`; `EVER` where
        nothing is known of that.
        """
        self._put += 1
        put = self._put
        early = earliest is not None and earliest < self._known
        # No head is learned beyond this while it goes on, and none lies beyond it now.
        self._puts[put] = EVER if early else self._known

        def ended(_: object) -> None:
            del self._puts[put]
            if early:
                self.forget()

        return ended

    @contextmanager
    def claiming(self, request: ClaimRequest, *, whole: bool) -> Generator[Look]:
        """A claim is under way; `whole` where it has to begin at the bottom and teaches nothing."""
        if whole or not self._stuck:
            yield _ANYWHERE
            return
        begun = self._clock.monotonic()
        queues = {queue.name for queue in request.queues}
        look = Look(
            lines={
                line: head.place
                for line, head in self._heads.items()
                if line[0] in queues and begun < head.until
            },
            begun=begun,
            epoch=self._epoch,
            latest=min(self._puts.values(), default=self._known),
        )
        try:
            yield look
        except BaseException:
            # What it had locked was skipped by others, whose heads may lie beyond.
            self.forget()
            raise

    def learn(
        self, look: Look, request: ClaimRequest, rows: Sequence[Row], claims: Sequence[Claim]
    ) -> None:
        """What a claim took says where the next one may begin."""
        if look.latest is None:
            return
        for claim in claims[:1]:
            self._known = max(self._known, claim.job.updated_at)
        if look.epoch != self._epoch or look.latest == EVER:
            return
        ended = self._clock.monotonic()
        queues = {queue.name: queue.limit for queue in request.queues}
        for line, place in _last(read_places(rows)).items():
            self._advance(line, min(place, (look.latest, 0)), look, ended)
        if len(claims) >= min(request.limit, sum(queues.values())):
            return
        for line, head in self._heads.items():
            if line[0] not in queues:
                continue
            if line in look.lines:
                head.until = min(head.until, head.soonest)
            elif not claims:  # it was read from the bottom, and nothing is there
                head.until = look.begun + _TRUSTED
                head.soonest = ended + _SHARE * (ended - look.begun)

    def _advance(self, line: Line, place: Place, look: Look, ended: float) -> None:
        if line in look.lines:
            # What it was read from may have turned out to be too far meanwhile.
            head = self._heads[line]
            if head.place >= look.lines[line]:
                head.place = max(head.place, place)
            return
        self._heads[line] = _Head(
            place=place,
            until=look.begun + _TRUSTED,
            soonest=ended + _SHARE * (ended - look.begun),
        )


def _last(places: Iterable[tuple[Line, Place]]) -> dict[Line, Place]:
    """The furthest place of each line."""
    last: dict[Line, Place] = {}
    for line, place in places:
        last[line] = max(place, last.get(line, place))
    return last
