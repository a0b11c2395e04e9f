"""Scheduling: the part of a queue that says which jobs recur. Workers fire them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

from msgspec.structs import replace

from tenure.call import Call, new_job
from tenure.codec import SEAL, opened, sealed
from tenure.cron import parse
from tenure.driver import Capability, Driver
from tenure.errors import (
    InvalidConfiguration,
    QueueError,
    ScheduleNotFound,
    SerializationError,
    Unsupported,
)
from tenure.intake import Unique, check_name
from tenure.opened import Opened
from tenure.payload_codec import PayloadCodec
from tenure.schedules import (
    Definition,
    Schedule,
    job_of_tick,
    read_definition,
    written_definition,
)
from tenure.standing import Missed, NewSchedule, ScheduleRecord
from tenure.types import NewJob
from tenure.view import value_of

__all__ = ["Scheduling"]


class Scheduling(Opened):
    """The schedules of a store. Each instant of one is fired once, by whichever worker is first."""

    async def schedule(
        self,
        id: str,
        expression: str,
        name: str,
        payload: Any = None,
        *,
        zone: str = "UTC",
        missed: Missed | str = Missed.SKIP,
        queue: str = "default",
        priority: int = 0,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        unique: str | Unique | None = None,
        limits: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Schedule:
        """Let a job recur; stored under `id`, and safe to call at every start of a program.

        `expression` is five cron fields (`"*/5 * * * *"`), `"@every 90s"` (counted from when the
        schedule was first stored), or `"@daily"` and the like; read by the clocks of `zone`, an
        IANA name. `missed` says what becomes of instants at which no worker ran: "skip" drops them,
        "once" makes up for them with one job, "all" with one each. The rest is as in `dispatch`.

        The same definition again changes nothing. Another one takes its place: what the old one had
        still to fire is dropped, and `@every` counts from now. Any worker of the store fires it;
        the job is due at its instant, and its headers `schedule` and `tick` tell where it comes
        from.

        Raises `InvalidConfiguration` for an expression that is wrong or can never fire,
        `InvalidJob` with the path of anything else; nothing is stored then.
        """
        schedule_id = check_name("id", id)
        parse(expression, zone)
        call = Call(
            name,
            payload,
            queue=queue,
            priority=priority,
            max_attempts=max_attempts,
            timeout=timeout,
            unique=unique,
            limits=limits,
            headers=headers,
        )
        job = new_job(call, ids=self._ids, now=self.clock.now(), payload_limit=self.payload_limit)
        definition = Definition(
            expression=expression,
            zone=zone,
            missed=_missed(missed),
            name=job.name,
            queue=job.queue,
            payload=job.payload,
            priority=job.priority,
            max_attempts=job.max_attempts,
            timeout=job.timeout,
            unique=job.unique,
            limits=job.limits,
            headers=job.headers,
        )
        await self._put(schedule_id, definition)
        record, now = await self._stored_schedule(schedule_id)
        return _view(record, now, self.codec)

    async def _put(self, schedule_id: str, definition: Definition) -> None:
        driver = await self._scheduled()
        if self.codec is not None:
            # Encoded differently each time: the store cannot see that it is the same one.
            for record in (await driver.schedules()).items:
                if record.id == schedule_id and _unsealed(record, self.codec) == definition:
                    return
            definition = replace(definition, payload=sealed(definition.payload, self.codec))
        new = NewSchedule(
            id=schedule_id, revision=token_hex(8), definition=written_definition(definition)
        )
        await self._store.repeat(lambda: driver.put_schedules([new]))

    async def schedules(self) -> Sequence[Schedule]:
        """All schedules, by id, with their next instants."""
        found = await (await self._scheduled()).schedules()
        return [_view(record, found.now, self.codec) for record in found.items]

    async def unschedule(self, id: str) -> bool:
        """Remove a schedule; False where there was none. Jobs that it has made stay."""
        schedule_id = check_name("id", id)
        driver = await self._scheduled()
        answers, repeated = await self._store.repeat(lambda: driver.drop_schedules([schedule_id]))
        return answers[0] or repeated

    async def pause_schedule(self, id: str) -> None:
        """Let it fire nothing until it is resumed. Raises `ScheduleNotFound`."""
        await self._pause_schedule(id, True)

    async def resume_schedule(self, id: str) -> None:
        """Let it fire again, from the next instant on: those in its pause are not missed ones."""
        await self._pause_schedule(id, False)

    async def _pause_schedule(self, id: str, paused: bool) -> None:
        schedule_id = check_name("id", id)
        driver = await self._scheduled()
        there, _ = await self._store.repeat(lambda: driver.pause_schedule(schedule_id, paused))
        if not there:
            raise ScheduleNotFound(schedule_id)

    async def _scheduled(self) -> Driver:
        driver = await self.driver()
        if Capability.SCHEDULES not in driver.capabilities:
            raise Unsupported("schedules")
        return driver

    async def _job_of_schedule(self, id: str) -> NewJob:
        """The job of a schedule for now, beside its instants."""
        record, now = await self._stored_schedule(id)
        instant = job_of_tick(record, read_definition(record.definition), now)
        fresh = self._ids.new(int(self.clock.now().timestamp() * 1000))
        return replace(instant, id=fresh, at=None)

    async def _stored_schedule(self, id: str) -> tuple[ScheduleRecord, datetime]:
        schedule_id = check_name("id", id)
        found = await (await self._scheduled()).schedules()
        for record in found.items:
            if record.id == schedule_id:
                return record, found.now
        raise ScheduleNotFound(schedule_id)


def _missed(value: object) -> Missed:
    if isinstance(value, str) and value in frozenset(Missed):
        return Missed(value)
    raise InvalidConfiguration("missed", value, f"must be one of {', '.join(Missed)}")


def _unsealed(record: ScheduleRecord, codec: PayloadCodec) -> Definition | None:
    """The definition with its payload decoded; None where it cannot be read here.

    None also for one that is stored in plain, from before there was a codec: it is not left so.
    """
    try:
        definition = read_definition(record.definition)
        if not definition.payload.startswith(SEAL):
            return None
        return replace(definition, payload=opened(definition.payload, codec))
    except SerializationError:
        return None


def _view(record: ScheduleRecord, now: datetime, codec: PayloadCodec | None) -> Schedule:
    """The schedule as users see it, also one whose definition cannot be read."""
    damage: str | None = None
    following: datetime | None = None
    try:
        definition = read_definition(record.definition)
        after = max(record.last, now)
        following = definition.recurrence().following(after, record.created_at)
    except QueueError as error:
        damage = str(error)
        definition = Definition(
            expression="", zone="", missed=Missed.SKIP, name="", queue="", payload=b"null"
        )
    return Schedule(
        id=record.id,
        expression=definition.expression,
        zone=definition.zone,
        missed=definition.missed,
        name=definition.name,
        queue=definition.queue,
        payload=value_of(definition.payload, codec),
        priority=definition.priority,
        max_attempts=definition.max_attempts,
        timeout=definition.timeout,
        unique=definition.unique,
        limits=definition.limits,
        headers=definition.headers,
        paused=record.paused,
        created_at=record.created_at,
        last=record.last,
        next=following,
        seen_at=now,
        damage=damage,
    )
