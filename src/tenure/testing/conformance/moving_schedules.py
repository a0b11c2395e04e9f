"""Checks of restored schedules: they stand as they stood, and go on in their rhythm."""

from tenure.driver import Capability, Driver
from tenure.moved import Restored
from tenure.standing import Fired, NewSchedule, ScheduleRecord, Tick
from tenure.testing.conformance.builders import (
    T0,
    after,
    new_job,
)
from tenure.testing.conformance.check import check, expect

_SCHEDULES = (Capability.RESTORE, Capability.SCHEDULES)


def _schedule(
    id: str = "s", *, definition: bytes = b"d\x00\xff", paused: bool = False
) -> ScheduleRecord:
    return ScheduleRecord(
        id=id,
        revision=f"revision of {id}",
        definition=definition,
        created_at=after(-500.000001),
        last=after(-3.25),
        paused=paused,
    )


@check("restore()", _SCHEDULES)
async def a_schedule_stands_after_the_move_as_it_stood_before(store: Driver) -> None:
    given = [_schedule("b", paused=True), _schedule("a")]
    answers = list(await store.restore_schedules(given))
    expect(answers, [Restored.STORED] * 2, "the answers")
    found = list((await store.schedules(now=T0)).items)
    expect(found, [given[1], given[0]], "the schedules")
    tick = Tick(
        schedule_id="a",
        revision="revision of a",
        previous=after(-3.25),
        instant=after(0),
        job=new_job("ticked"),
    )
    expect(list(await store.fire([tick], now=after(1))), [Fired.FIRED], "its next tick")
    expect(list(await store.fire([tick], now=after(1))), [Fired.LOST], "the tick again")
    again = list(await store.restore_schedules(given))
    expect(again, [Restored.KNOWN] * 2, "the answers for the second time")
    found = list((await store.schedules(now=T0)).items)
    expect(found[0].last, after(0), "the last tick, which the second time leaves")


@check("restore()", _SCHEDULES)
async def another_schedule_under_the_same_id_keeps_the_batch_out(store: Driver) -> None:
    new = NewSchedule(id="s", revision="r1", definition=b"another")
    await store.put_schedules([new], now=T0)
    before = await store.schedules(now=T0)
    answers = list(await store.restore_schedules([_schedule("a"), _schedule("s")]))
    expect(answers, [Restored.STORED, Restored.DUPLICATE], "the answers")
    expect(await store.schedules(now=T0), before, "the schedules")
    same = _schedule("s", definition=b"another")
    expect(list(await store.restore_schedules([same])), [Restored.KNOWN], "the same definition")
    expect(await store.schedules(now=T0), before, "the schedules, which keep their revision")
    expect(list(await store.restore_schedules([])), [], "the answers for none")
