"""The checker of the chaos runs has teeth: each kind of violation, planted, is found."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import tenure
from chaos.checker import check
from chaos.clocks import Shift
from chaos.ledger import Entry
from chaos.load import LEASE, MAX_STALLS, RATE
from chaos.plan import kinds, plan
from chaos.report import numbers
from tenure.states import State
from tenure.types import UniqueKey

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
JOB: tenure.Job[Any] = tenure.Job(
    id="a",
    name="async",
    queue="default",
    payload="p",
    priority=0,
    max_attempts=2,
    timeout=None,
    headers={},
    state=State.COMPLETED,
    attempt=1,
    stalls=0,
    serial=1,
    run_at=NOON,
    created_at=NOON,
    updated_at=NOON,
    finished_at=NOON,
    error=None,
    result=["w", 1, "p"],
    progress=None,
    cancel_requested=False,
)


def changed(job: tenure.Job[Any] = JOB, **fields: Any) -> tenure.Job[Any]:
    return msgspec.structs.replace(job, **fields)


def noted(
    what: str,
    at: float,
    *,
    job_id: str = "a",
    attempt: int = 0,
    serial: int = 0,
    process: str = "w",
    text: str = "",
) -> Entry:
    return Entry(what, at, job_id, attempt, text, serial, process)


def ran(
    at: float,
    *,
    job_id: str = "a",
    serial: int = 1,
    attempt: int = 1,
    process: str = "w",
    seconds: float = 1.0,
    outcome: str = "Completed",
) -> list[Entry]:
    """A handler that began and ended, and whose worker heard that its outcome was taken."""
    named: dict[str, Any] = {
        "job_id": job_id,
        "attempt": attempt,
        "serial": serial,
        "process": process,
    }
    return [
        noted("started", at, **named),
        noted("ended", at + seconds, **named),
        noted("settled", at + seconds + 0.1, text=outcome, **named),
    ]


def dispatched(job_id: str = "a") -> list[Entry]:
    return [noted("tried", 0.0, job_id=job_id, text="p"), noted("stored", 1.0, job_id=job_id)]


def other(**fields: Any) -> tenure.Job[Any]:
    """A second job, whose first hold is of the same worker."""
    return changed(id="b", **fields)


TRIED, STORED = dispatched()
STARTED, ENDED, SETTLED = ran(2.0)
CLEAN = [TRIED, STORED, STARTED, ENDED, SETTLED]
AGAIN = ran(5.0, serial=2, attempt=2)
KILLED, X_KILLED = (noted("killed", 50.0, text=name) for name in ("w", "x"))
FENCED = noted("fenced", 8.0, serial=2)
FENCED_FIRST = noted("fenced", 8.0, serial=1)
LATER = noted("started", 4.0, attempt=2, serial=2)
BOTH = [*dispatched(), *dispatched("b")]
OVERLAPPING = [*BOTH, *ran(2.0), *ran(2.5, job_id="b")]
ONE_KEY: dict[str, Any] = {"unique": UniqueKey(key="k")}
ONE_LIMIT: dict[str, Any] = {"limits": ("one:0",)}
POISON = changed(name="poison", state=State.FAILED, max_attempts=None, result=None)
MANY = [f"j{n}" for n in range(20 * RATE)]
TICK = {"schedule": "every", "tick": "2030-01-01T12:00:00+00:00"}
NEXT_BUT_ONE = {"schedule": "every", "tick": "2030-01-01T12:00:02+00:00"}
STALLED = tenure.Failure(kind="stalled", message="stalled 2 times", at=NOON, attempt=1)


def clock(at: float, step: float, wall: float = 0.0) -> Entry:
    """The clock of the store is set."""
    text = msgspec.json.encode(Shift(at, wall, wall + step)).decode()
    return noted("clock", at, job_id="", text=text)


def recovered(at: float) -> list[Entry]:
    """A worker is killed with a job in its hands, which another one reclaims and does."""
    return [
        *(*dispatched(), STARTED, noted("killed", 3.0, text="w")),
        *(noted("reclaimed", at, process="x"), *ran(at + 1, serial=2, attempt=2, process="x")),
    ]


# A handler that runs on, under a lease, while another worker takes the job and does it.
TAKEN = [
    *(*dispatched(), STARTED, FENCED_FIRST, noted("reclaimed", 3.9, process="x")),
    *ran(4.0, serial=2, attempt=2, process="x"),
]
LOOKED = noted("looked", 3.5, job_id="", process="x", text="blind")
TOLD = noted("looked", 3.5, job_id="", process="x")  # by the store, since when its time is true
OUTAGE = [noted("step", 5.0, text="server"), noted("step over", 7.0, text="server")]
KILLED_AND_OVERLAPPING = [
    *(*dispatched(), STARTED, noted("killed", 4.0, text="w")),
    *ran(3.9, serial=2, attempt=2, process="x"),
]
TICKED = datetime(2030, 1, 1, 12, tzinfo=UTC).timestamp()
# The tick that is missing came after the clock was set, or is among the newest thousand.
LATE_TICK = {"schedule": "every", "tick": "2030-01-01T13:00:00+00:00"}
JUMPED = [changed(headers=TICK), other(headers=LATE_TICK)]


def test_a_clean_run_passes() -> None:
    assert check(CLEAN, [JOB]) == []


def test_a_start_that_was_given_back_is_no_violation() -> None:
    back = noted("given back", 3.5, attempt=1, serial=1)
    first = ran(2.0, outcome="Released")
    job = changed(result=["w", 2, "p"])
    assert check([*dispatched(), *first, back, *ran(4.0, serial=2)], [job]) == []


def test_an_overlap_with_a_lost_hold_is_no_violation() -> None:
    """At least once: what counts is that its outcome was refused, and its worker told."""
    entries = [*CLEAN, noted("started", 2.5, attempt=2, serial=2), FENCED]
    assert check(entries, [changed(**ONE_LIMIT)]) == []


def test_jobs_of_one_key_after_each_other_are_no_violation() -> None:
    entries = [*BOTH, *ran(2.0), *ran(4.0, job_id="b")]
    assert check(entries, [changed(**ONE_KEY, **ONE_LIMIT), other(**ONE_KEY, **ONE_LIMIT)]) == []


def test_what_is_unsure_may_be_stored_or_not() -> None:
    unsure = [TRIED, noted("unsure", 1.0)]
    assert check(unsure, []) == []
    assert check([*unsure, STARTED, ENDED, SETTLED], [JOB]) == []


def test_what_was_cancelled_or_retried_by_hand_may_end_so() -> None:
    cancelled = [TRIED, STORED, noted("cancel tried", 2.0), noted("cancel done", 3.0)]
    assert check(cancelled, [changed(state=State.CANCELLED, result=None)]) == []
    retried = [noted("retry tried", 4.0), noted("retry done", 5.0)]
    entries = [*dispatched(), *ran(2.0, outcome="Failed"), *retried, *ran(6.0, serial=2)]
    assert check(entries, [changed(result=["w", 2, "p"])]) == []


def test_what_was_taken_in_the_documented_gap_is_counted_and_no_violation() -> None:
    """A worker that starts when the clock was just set forward has nothing to compare with."""
    entries = [*TAKEN, clock(3.0, 3600.0), LOOKED]
    jobs = [changed(result=["x", 2, "p"])]
    assert check(entries, jobs) == []
    counted = numbers(entries, jobs, [])
    assert counted["taken early, as the guarantees page allows"] == "1"


def test_a_start_beside_a_handler_whose_worker_was_killed_then_is_found() -> None:
    kinds_found = {v.kind for v in check(KILLED_AND_OVERLAPPING, [changed(result=["x", 2, "p"])])}
    assert kinds_found == {"two holds", "taken early"}


def test_a_hold_that_was_taken_in_the_gap_ends_there_though_its_worker_is_killed_later() -> None:
    entries = [*KILLED_AND_OVERLAPPING, clock(3.0, 3600.0), LOOKED]
    assert check(entries, [changed(result=["x", 2, "p"])]) == []


def test_who_lost_a_job_in_the_gap_may_start_it_though_it_is_cancelled_then() -> None:
    """Its claim was answered late, and it has not heard of any of this."""
    entries = [
        *(TRIED, STORED, clock(3.0, 3600.0), LOOKED, noted("reclaimed", 3.6, process="x")),
        *(noted("cancel tried", 3.7), noted("cancel done", 3.8)),
        noted("started", 4.0, attempt=1, serial=1, text="2.5"),
        *(noted("fenced", 4.1, serial=1), noted("ended", 4.2, serial=1)),
    ]
    jobs = [changed(state=State.CANCELLED, result=None)]
    assert check(entries, jobs) == []
    without = [entry for entry in entries if entry != LOOKED]
    assert {violation.kind for violation in check(without, jobs)} == {"cancel undone"}


def test_a_recovery_in_time_is_none_and_an_outage_may_delay_it() -> None:
    jobs = [changed(result=["x", 2, "p"])]
    assert check(recovered(3.0 + LEASE), jobs) == []
    long = [noted("step", 5.0, text="server"), noted("step over", 99.0, text="server")]
    assert check([*recovered(100.0), *long], jobs) == []


def test_ticks_that_a_clock_has_jumped_over_may_be_missing() -> None:
    """Those that are older than what the schedule makes up for."""
    early = {"schedule": "skipping", "tick": "2030-01-01T12:00:00+00:00"}
    late = {"schedule": "skipping", "tick": "2030-01-01T13:00:00+00:00"}
    jobs = [changed(headers=early), other(headers=late)]
    assert check([*OVERLAPPING, clock(3.0, 3600.0, wall=TICKED)], jobs) == []


@pytest.mark.parametrize(
    ("kind", "entries", "jobs"),
    [
        ("lost", [TRIED, STORED], []),
        ("lost", [noted("fired", 1.0, text="every")], []),
        ("listed twice", CLEAN, [JOB, JOB]),
        ("left behind", [TRIED, noted("refused", 1.0), *ran(2.0)], [JOB]),
        ("left behind", [TRIED, noted("kept", 1.0), *ran(2.0)], [JOB]),
        ("undecided", [TRIED, *ran(2.0)], [JOB]),
        ("from nowhere", ran(2.0), [JOB]),
        ("stuck", [TRIED, STORED, STARTED, KILLED], [changed(state=State.PROCESSING)]),
        ("stuck", [TRIED, STORED], [changed(state=State.PENDING)]),
        ("wrong end", [TRIED, STORED], [changed(state=State.CANCELLED)]),
        ("wrong end", [TRIED, STORED], [changed(state=State.FAILED)]),
        ("wrong end", CLEAN, [changed(name="failing")]),
        ("doubly recorded", [*CLEAN, *ran(4.0, serial=2, attempt=2)], [JOB]),
        ("doubly recorded", [*CLEAN, SETTLED], [JOB]),
        (
            "doubly recorded",
            [*CLEAN, noted("started", 4.0, attempt=2, serial=2, process="x"), X_KILLED],
            [changed(result=["x", 2, "p"])],
        ),
        ("contradicted", CLEAN, [changed(name="failing", state=State.FAILED)]),
        (
            "cancel undone",
            [*CLEAN, noted("cancel tried", 5.0), noted("cancel done", 6.0)],
            [JOB],
        ),
        (
            "cancel undone",
            [TRIED, STORED, noted("cancel tried", 1.0), noted("cancel done", 1.5), STARTED, KILLED],
            [changed(state=State.CANCELLED)],
        ),
        ("started twice", [*CLEAN, noted("started", 4.0, attempt=1, serial=2), FENCED], [JOB]),
        ("hold used twice", [*CLEAN, noted("started", 4.0, attempt=2, serial=1)], [JOB]),
        (
            "too many starts",
            [*CLEAN, LATER, FENCED, noted("started", 8.0, attempt=3, serial=3), KILLED],
            [JOB],
        ),
        (
            "too many stalls",
            [TRIED, STORED, KILLED]
            + [
                noted("started", n * 2 * LEASE, attempt=n, serial=n)
                for n in range(1, MAX_STALLS + 2)
            ],
            [POISON],
        ),
        ("untold", [*CLEAN, LATER], [JOB]),
        (
            "two holds",
            [*dispatched(), *ran(2.0, outcome="Retried"), *ran(2.5, serial=2, attempt=2)],
            [changed(result=["w", 2, "p"])],
        ),
        (
            "key shared",  # the first holder was started once more after the second had begun
            [*BOTH, *ran(2.0, outcome="Retried"), *ran(3.5, job_id="b"), *AGAIN],
            [changed(**ONE_KEY, result=["w", 2, "p"]), other(**ONE_KEY)],
        ),
        ("limit exceeded", OVERLAPPING, [changed(**ONE_LIMIT), other(**ONE_LIMIT)]),
        (
            "rate exceeded",
            [e for i in MANY for e in (*dispatched(i), *ran(2.0, job_id=i))],
            [changed(id=i, limits=("rate",)) for i in MANY],
        ),
        (
            "rate exceeded",  # a burst within a second that a window of ten would let by
            [e for i in MANY[: 3 * RATE] for e in (*dispatched(i), *ran(2.0, job_id=i))],
            [changed(id=i, limits=("rate",)) for i in MANY[: 3 * RATE]],
        ),
        ("taken early", TAKEN, [changed(result=["x", 2, "p"])]),
        ("taken early", [*TAKEN, clock(3.0, -3600.0), LOOKED], [changed(result=["x", 2, "p"])]),
        ("taken early", [*TAKEN, clock(3.0, 3600.0), TOLD], [changed(result=["x", 2, "p"])]),
        (
            "taken early",  # by one that has run for longer than the others need to extend
            [*TAKEN, clock(2.1, 3600.0), LOOKED],
            [changed(result=["x", 2, "p"])],
        ),
        (
            "taken early",  # of a lease that was extended after the clock was set
            [*TAKEN, clock(3.0, 3600.0), noted("extended", 3.2, serial=1), LOOKED],
            [changed(result=["x", 2, "p"])],
        ),
        ("recovered late", recovered(100.0), [changed(result=["x", 2, "p"])]),
        ("recovered late", [*recovered(100.0), *OUTAGE], [changed(result=["x", 2, "p"])]),
        (
            "limit exceeded",  # by one whose worker was killed while it had the place
            [
                *(*BOTH, STARTED, noted("cancel tried", 1.5), noted("killed", 4.0, text="w")),
                *ran(3.0, job_id="b", process="x"),
            ],
            [
                changed(**ONE_LIMIT, state=State.CANCELLED, result=None),
                other(**ONE_LIMIT, result=["x", 1, "p"]),
            ],
        ),
        (
            "stalled without cause",
            [TRIED, STORED, STARTED, ENDED, noted("settled", 3.1, text="Failed", serial=1)],
            [changed(state=State.FAILED, result=None, error=STALLED)],
        ),
        ("tick lost", [*OVERLAPPING, clock(3.0, 3600.0, wall=TICKED)], JUMPED),
        ("tick twice", OVERLAPPING, [changed(headers=TICK), other(headers=TICK)]),
        ("tick lost", OVERLAPPING, [changed(headers=TICK), other(headers=NEXT_BUT_ONE)]),
        ("never started", [TRIED, STORED, SETTLED], [JOB]),
        ("altered payload", CLEAN, [changed(payload="q", result=["w", 1, "q"])]),
        ("altered result", CLEAN, [changed(result=["w", 1, "q"])]),
    ],
)
def test_each_violation_that_is_planted_is_found(
    kind: str, entries: list[Entry], jobs: list[tenure.Job[Any]]
) -> None:
    assert {violation.kind for violation in check(entries, jobs)} == {kind}


def test_the_same_seed_gives_the_same_plan() -> None:
    known = kinds(server=True, disk=True, clocks=True)
    first = plan(7, 60.0, known)
    assert first == plan(7, 60.0, known)
    assert first != plan(8, 60.0, known)
    assert {step.kind for step in first} == set(known)


def test_ten_minutes_have_fifty_kills_and_ten_restarts() -> None:
    for seed in range(5):
        steps = [
            step.kind for step in plan(seed, 600.0, kinds(server=True, disk=True, clocks=True))
        ]
        assert steps.count("kill") >= 50
        assert steps.count("server") >= 10
