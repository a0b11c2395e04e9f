"""The Redis driver: the contract, spelled as scripts that the server runs.

Says which operation is which script with which arguments, and nothing else. Every transition is
decided and written by one script, which Redis runs alone, so no answer can be out of date when it
is given; a repeat finds the same ids and tokens and answers the same.
"""

import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any, ClassVar

import msgspec

from tenure.clock import Clock
from tenure.driver import Capability, Driver, RecordItem
from tenure.drivers.redis import moving, opening, records, replies, requests
from tenure.drivers.redis.client import Argument, Server, parsed
from tenure.drivers.redis.enqueueing import Enqueuing
from tenure.drivers.redis.faults import Refused, translated
from tenure.drivers.redis.keeper import KeeperHandle
from tenure.drivers.redis.links import Links
from tenure.drivers.redis.scripts import Keys, Script, script
from tenure.drivers.redis.waiting import Waiting
from tenure.errors import InvalidConfiguration, StoreError
from tenure.history import PastAttempt
from tenure.moved import Dump, DumpPlace, Restored, StoredJob
from tenure.presence import WorkerInfo
from tenure.standing import Fired, Limit, NewSchedule, ScheduleRecord, Schedules, Tick
from tenure.types import (
    Answer,
    Claim,
    ClaimRequest,
    Counts,
    Enqueued,
    Exchanged,
    Expired,
    Held,
    Hold,
    Job,
    JobFilter,
    Kept,
    ManualRetry,
    Move,
    NewJob,
    Page,
    Recorded,
    Retention,
)

__all__ = ["RedisDriver"]

_CANCEL, _CLAIM, _COUNTS = script("cancel"), script("claim"), script("counts")
_DELETE, _ENQUEUE, _EXCHANGE = script("delete"), script("enqueue"), script("exchange")
_DROP_SCHEDULES, _FIRE = script("drop_schedules"), script("fire")
_PAUSE_SCHEDULE, _PUT_SCHEDULES = script("pause_schedule"), script("put_schedules")
_SCHEDULES = script("schedules")
_DROP_LIMIT, _LIMITS, _PUT_LIMIT = script("drop_limit"), script("limits"), script("put_limit")
_EXPIRED, _EXTEND, _GET, _LIST = script("expired"), script("extend"), script("get"), script("list")
_HISTORY = script("history")
_MOVE, _NEXT_DUE, _PAUSE = script("move"), script("next_due"), script("pause")
_OLDEST_DUE = script("oldest_due")
_PROGRESS, _PRUNE, _PURGE = script("progress"), script("prune"), script("purge")
_RECLAIM, _RECORD, _REPORT = script("reclaim"), script("record"), script("report")
_RETRY, _WORKERS = script("retry"), script("workers")
_DUMP, _RESTORE, _RESTORE_SCHEDULES = (
    script("dump"),
    script("restore"),
    script("restore_schedules"),
)

# Bounds of one script, during which the server does nothing else: some milliseconds.
_EXAMINED = 2000
_AT_ONCE = 1000

_NAMESPACE = re.compile(r"[^{}\x00-\x1f\x7f]{1,64}")


class RedisDriver(Driver):
    """Jobs in a namespace of a Redis (6.2 or later) or Valkey server, alone or in a cluster.

    `url` is redis://, rediss:// (TLS) or unix://, with user, password and database as usual; any
    node will do for a cluster. All keys of a `namespace` share one slot, so a cluster gives a store
    availability; to use more than one node, use several namespaces.

    What was accepted stays as long as the server keeps what it acknowledged: with `appendfsync
    always` through a crash, with `everysec` all but about the last second, and a failover may lose
    what the replica had not received.

    `timeout` is how many seconds an answer may take, `connect_timeout` a new connection; then
    `StoreUnavailable` is raised. `tls_ca` is a file of certificates to trust instead of the
    system's. `migrate` raises the version of a namespace that an older code has made, as far as
    this one works with it. `clock` only times waits; the server's clock is the store's.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.LIFELINE,
        Capability.NAMES,
        Capability.SHARED,
        Capability.WITHIN,
    }
    overlap: ClassVar[int] = (
        16  # below, what a call costs by itself outweighs the wait for the one in flight
    )

    def __init__(
        self,
        url: str,
        *,
        namespace: str = "tenure",
        timeout: float = 5.0,
        connect_timeout: float = 3.0,
        tls_ca: str | None = None,
        migrate: bool = False,
        clock: Clock,
    ) -> None:
        bare = url.partition("?")[0]
        try:
            parsed(bare)
        except ValueError as error:
            raise InvalidConfiguration("url", url, f"must be a Redis URL ({error})") from None
        if not _NAMESPACE.fullmatch(namespace):
            raise InvalidConfiguration(
                "namespace", namespace, "must be 1 to 64 characters, none of them { or } or control"
            )
        for option, value in (("timeout", timeout), ("connect_timeout", connect_timeout)):
            if not 0 < value <= 3600:
                raise InvalidConfiguration(option, value, "must be more than 0, at most 3600 s")
        self._server = Server(
            url=bare,
            timeout=timeout,
            connect_timeout=connect_timeout,
            tls_ca=tls_ca,
        )
        self._keys = Keys(namespace)
        self._clock = clock
        self._links = Links(self._server, self._keys)
        self._enqueuing = Enqueuing(self._enqueue_now)
        self._waiting = Waiting(self._links.connect, self._links.route, self._keys, clock)
        self._migrate = migrate
        self._warned = False
        self.schema_version: int | None = None  # of the namespace; known when it is open

    # --- life cycle -----------------------------------------------------------------------------

    async def open(self) -> None:
        self._links.open()
        try:
            self.schema_version = await opening.prepare(self._links, migrate=self._migrate)
            if not self._warned:
                await opening.warn(self._links)
                self._warned = True
        except Refused as error:
            await self._links.end()
            raise translated(error, self._server.shown()) from error
        except BaseException:
            await self._links.end()
            raise

    async def close(self) -> None:
        async with AsyncExitStack() as closing:  # all of them, also when this is cancelled
            closing.push_async_callback(self._links.end)
            closing.push_async_callback(self._waiting.close)
            closing.push_async_callback(self._enqueuing.close)

    async def check(self) -> None:
        await opening.check_schema(self._links)

    async def _run(self, what: Script, arguments: Sequence[Argument], now: datetime | None) -> Any:
        return await self._links.run(what, [requests.now_or_empty(now), *arguments])

    # --- the job store --------------------------------------------------------------------------

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        if now is None:
            return await self._enqueuing.enqueue(jobs)
        reply = await self._run(_ENQUEUE, [1, *requests.group(jobs)], now)
        return replies.enqueued(reply)

    async def _enqueue_now(self, groups: Sequence[Argument]) -> Sequence[int | bytes]:
        reply: Sequence[int | bytes] = await self._run(_ENQUEUE, groups, None)
        return reply

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        reply = await self._run(_CLAIM, requests.claimed(request), now)
        while replies.must_go_on(reply):
            reply = await self._run(_CLAIM, requests.claimed(request), now)
        return replies.claims(reply, request.token)

    async def record(
        self, items: Sequence[RecordItem], *, now: datetime | None = None
    ) -> Sequence[Recorded]:
        return replies.recorded(await self._run(_RECORD, requests.settled(items), now))

    async def exchange(
        self, items: Sequence[RecordItem], request: ClaimRequest, *, now: datetime | None = None
    ) -> Exchanged:
        arguments = [*requests.settled(items), *requests.claimed(request)]
        answers, taken = await self._run(_EXCHANGE, arguments, now)
        recorded = tuple(replies.recorded(answers))
        if isinstance(taken, bytes):
            refused = Refused(taken.decode("utf-8", "replace"))
            error = translated(refused, self._server.shown())
            return Exchanged(recorded=recorded, claims=(), error=error)
        if not replies.must_go_on(taken):
            return Exchanged(recorded=recorded, claims=tuple(replies.claims(taken, request.token)))
        try:
            claims = await self.claim(request, now=now)
        except StoreError as error:
            return Exchanged(recorded=recorded, claims=(), error=error)
        return Exchanged(recorded=recorded, claims=tuple(claims))

    async def extend(
        self, holds: Sequence[Hold], lease: float, *, now: datetime | None = None
    ) -> Sequence[Kept]:
        arguments = [requests.span(lease), *requests.holds(holds)]
        return replies.kept(await self._run(_EXTEND, arguments, now))

    async def expired(self, limit: int, *, now: datetime | None = None) -> Expired:
        return replies.expired(await self._run(_EXPIRED, [min(limit, _EXAMINED)], now))

    async def reclaim(
        self,
        limit: int,
        delays: Sequence[float],
        *,
        only: Sequence[Hold] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Hold]:
        arguments = requests.reclaimed(min(limit, _AT_ONCE), delays, only)
        return replies.reclaimed(await self._run(_RECLAIM, arguments, now))

    async def next_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> datetime | None:
        reply = await self._run(_NEXT_DUE, queues, now)
        return None if reply is None else records.nearest(int(min(float(reply), 1e18)))

    async def oldest_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[datetime | None]:
        reply: Sequence[bytes] = await self._run(_OLDEST_DUE, queues, now) if queues else ()
        return [records.nearest(int(due)) if due else None for due in reply]

    async def progress(self, hold: Hold, value: bytes, *, now: datetime | None = None) -> Recorded:
        reply = await self._run(_PROGRESS, [*requests.holds([hold]), value], now)
        return replies.recorded([reply])[0]

    # --- control --------------------------------------------------------------------------------

    async def cancel(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        return replies.answers(await self._run(_CANCEL, job_ids, now))

    async def retry(
        self, items: Sequence[ManualRetry], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        return replies.answers(await self._run(_RETRY, requests.retries(items), now))

    async def delete(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        return replies.answers(await self._run(_DELETE, job_ids, now))

    async def move(self, items: Sequence[Move], *, now: datetime | None = None) -> Sequence[Answer]:
        return replies.answers(await self._run(_MOVE, requests.moves(items), now))

    async def purge(self, which: JobFilter, limit: int, *, now: datetime | None = None) -> int:
        deleted, after = 0, "0"
        while deleted < limit and after:
            bounds: list[Argument] = [after, _EXAMINED, limit - deleted]
            number, going_on = await self._run(_PURGE, [*bounds, *requests.filtered(which)], now)
            deleted, after = deleted + number, going_on.decode()
        return deleted

    async def pause(self, queue: str, paused: bool) -> None:
        await self._run(_PAUSE, [queue, int(paused)], None)

    async def prune(self, retention: Retention, limit: int, *, now: datetime | None = None) -> int:
        deleted = 0
        while deleted < limit:
            most = min(limit - deleted, _AT_ONCE)
            number, more_to_forget = await self._run(
                _PRUNE, [most, *requests.retained(retention)], now
            )
            deleted += number
            if number < most and not more_to_forget:
                break
        return deleted

    # --- inspection -----------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job[bytes] | None:
        found = replies.jobs(await self._run(_GET, [job_id], None))
        return found[0] if found else None

    async def list(self, which: JobFilter, cursor: str | None, limit: int) -> Page[bytes]:
        if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 16):
            raise InvalidConfiguration("cursor", cursor, "must be one that this store gave")
        bounds: list[Argument] = ["inf" if cursor is None else cursor, _EXAMINED, limit]
        reply = await self._run(_LIST, [*bounds, *requests.filtered(which)], None)
        return Page(jobs=replies.jobs(reply), cursor=reply[5].decode() or None)

    async def counts(self, *, now: datetime | None = None) -> Counts:
        return replies.counts(await self._run(_COUNTS, [], now))

    async def history(self, job_id: str) -> Sequence[PastAttempt]:
        return replies.history(await self._run(_HISTORY, [job_id], None))

    # --- limits ---------------------------------------------------------------------------------

    async def put_limit(self, limit: Limit) -> None:
        await self._run(_PUT_LIMIT, requests.limited(limit), None)

    async def drop_limit(self, key: str) -> bool:
        answer: int = await self._run(_DROP_LIMIT, [key], None)
        return answer == 1

    async def limits(self) -> Sequence[Limit]:
        return replies.limits(await self._run(_LIMITS, [], None))

    # --- schedules ------------------------------------------------------------------------------

    async def put_schedules(
        self, schedules: Sequence[NewSchedule], *, now: datetime | None = None
    ) -> None:
        await self._run(_PUT_SCHEDULES, requests.schedules(schedules), now)

    async def drop_schedules(self, ids: Sequence[str]) -> Sequence[bool]:
        return [number == 1 for number in await self._run(_DROP_SCHEDULES, ids, None)]

    async def pause_schedule(self, id: str, paused: bool, *, now: datetime | None = None) -> bool:
        answer: int = await self._run(_PAUSE_SCHEDULE, [id, int(paused)], now)
        return answer == 1

    async def schedules(self, *, now: datetime | None = None) -> Schedules:
        return replies.schedules(await self._run(_SCHEDULES, [], now))

    async def fire(self, ticks: Sequence[Tick], *, now: datetime | None = None) -> Sequence[Fired]:
        return replies.fired(await self._run(_FIRE, requests.ticks(ticks), now))

    # --- moving ---------------------------------------------------------------------------------

    async def dump(self, cursor: str | None, limit: int, *, now: datetime | None = None) -> Dump:
        place = None if cursor is None else DumpPlace.read(cursor)
        if cursor is not None and place is None:
            raise InvalidConfiguration("cursor", cursor, "must be one that this store gave")
        most = min(limit, _AT_ONCE)
        return moving.dumped(await self._run(_DUMP, moving.page(place, most), now))

    async def restore(
        self, jobs: Sequence[StoredJob], *, now: datetime | None = None
    ) -> Sequence[Restored | Held]:
        return moving.restored(await self._run(_RESTORE, moving.restoring(jobs), now))

    async def restore_schedules(self, schedules: Sequence[ScheduleRecord]) -> Sequence[Restored]:
        arguments = moving.restoring_schedules(schedules)
        return moving.restored_schedules(await self._run(_RESTORE_SCHEDULES, arguments, None))

    # --- presence and hints ---------------------------------------------------------------------

    async def report(self, worker: WorkerInfo, ttl: float) -> None:
        info = msgspec.json.encode(worker)
        await self._run(_REPORT, [worker.id, info, requests.span(ttl)], None)

    async def workers(self) -> Sequence[WorkerInfo]:
        return replies.workers(await self._run(_WORKERS, [], None))

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        return await self._waiting.wait(queues, timeout)

    def keeper_handle(self) -> KeeperHandle:
        return KeeperHandle(self._server, self._keys, self._links.route)
