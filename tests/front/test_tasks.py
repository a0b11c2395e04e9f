"""Tasks: what is stored of a call, what a handler gets, and what is refused where."""

import asyncio
import dataclasses
import datetime
import decimal
import enum
import inspect
import time
import uuid
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec
import pydantic
import pytest

import tenure
from tests.runtime.scenes import errors_of, quiet_worker, running
from tests.runtime.world import World, open_world


@dataclasses.dataclass
class Receipt:
    to: str
    number: int = 1


class Mail(pydantic.BaseModel):
    to: str
    at: datetime.datetime | None = None


class Order(msgspec.Struct):
    number: int
    lines: list[str] = []


class Address(TypedDict):
    street: str


class Color(enum.Enum):
    RED = "red"


def worker_of(world: World, *sets: tenure.Tasks, **options: Any) -> tenure.Worker:
    return quiet_worker(world, tasks=sets, **options)


# --- names ----------------------------------------------------------------------------------------


def test_a_task_is_named_by_prefix_and_function_never_by_its_module() -> None:
    tasks = tenure.Tasks(prefix="mail.")

    @tasks.task
    def send(to: str) -> None: ...

    @tasks.task(name="other", aliases=["old.name"])
    def renamed() -> None: ...

    assert [task.name for task in tasks] == ["mail.send", "mail.other"]
    assert tasks["old.name"] is renamed
    assert len(tasks) == 2
    assert inspect.unwrap(send) is send.function


def test_a_name_that_is_taken_is_refused() -> None:
    tasks = tenure.Tasks()

    @tasks.task
    def send() -> None: ...

    with pytest.raises(tenure.InvalidConfiguration, match="two tasks cannot have one name"):
        tasks.task(name="send")(lambda: None)
    with pytest.raises(tenure.InvalidConfiguration, match="two tasks cannot have one name"):
        tasks.task(name="x", aliases=["send"])(lambda: None)
    with pytest.raises(KeyError, match="did you mean 'send'"):
        tasks["sent"]
    assert len(tasks) == 1


@pytest.mark.parametrize("wrong", [tenure.Tasks(), [len], "tasks", 5])
def test_what_is_no_list_of_tasks_is_refused(wrong: Any) -> None:
    with pytest.raises(tenure.InvalidConfiguration, match=r"must be a list of tenure\.Tasks"):
        tenure.Worker(tenure.connect("memory://"), tasks=wrong)


def test_two_sets_of_a_worker_must_not_share_a_name() -> None:
    sets = [tenure.Tasks(), tenure.Tasks()]
    for tasks in sets:
        tasks.task(name="send")(lambda: None)
    with pytest.raises(tenure.InvalidConfiguration, match="registered already"):
        tenure.Worker(tenure.connect("memory://"), tasks=sets)


# --- calls ----------------------------------------------------------------------------------------


async def test_a_task_is_called_like_the_function_that_it_is() -> None:
    tasks = tenure.Tasks()

    @tasks.task
    async def double(number: int) -> int:
        return 2 * number

    @tasks.task()
    def half(number: int) -> int:
        return number // 2

    assert await double(2) == 4
    assert half(number=4) == 2


async def test_arguments_become_a_json_object_by_name_and_come_back_as_they_were() -> None:
    """Dates, UUID, Decimal, enums, dataclasses, Structs, TypedDicts and models, without a word."""
    tasks = tenure.Tasks()
    got: list[Any] = []

    @tasks.task
    async def everything(
        at: datetime.datetime,
        key: uuid.UUID,
        amount: decimal.Decimal,
        color: Color,
        receipt: Receipt,
        order: Order,
        address: Address,
        mails: list[Mail],
        sizes: dict[int, tuple[int, str]],
        note: str = "none",
    ) -> Receipt:
        got.append((at, key, amount, color, receipt, order, address, mails, sizes, note))
        return receipt

    at = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    arguments = (
        *(at, uuid.UUID(int=7), decimal.Decimal("1.10"), Color.RED, Receipt("a"), Order(3)),
        *({"street": "b"}, [Mail(to="c", at=at)], {1: (2, "x")}),
    )
    async with open_world("memory") as world:
        tasks.bind(world.queue)
        job = await everything.enqueue(*arguments)  # type: ignore[arg-type]
        stored = await world.job(job)
        assert stored.payload["amount"] == "1.10"
        assert stored.payload["mails"] == [{"to": "c", "at": "2026-01-02T00:00:00Z"}]
        assert "note" not in stored.payload
        async with running(worker_of(world, tasks)):
            assert await world.run(job.result()) == Receipt("a")
        assert got == [(*arguments, "none")]


@pytest.mark.parametrize(
    ("annotation", "value", "payload"),
    [
        (Receipt, Receipt("a"), {"to": "a", "number": 1}),
        (Order, Order(1), {"number": 1, "lines": []}),
        (Address, {"street": "s"}, {"street": "s"}),
        (Mail, Mail(to="a"), {"to": "a", "at": None}),
        (dict[str, int], {"a": 1}, {"value": {"a": 1}}),
    ],
)
async def test_a_single_object_is_the_payload(annotation: Any, value: Any, payload: Any) -> None:
    tasks = tenure.Tasks()
    got: list[Any] = []

    def take(value: Any) -> None:
        got.append(value)

    take.__annotations__["value"] = annotation
    task = tasks.task(take)
    async with open_world("memory") as world:
        job = await task.using(on=world.queue).enqueue(value)
        assert (await world.job(job)).payload == payload
        async with running(worker_of(world, tasks)):
            await world.ended(job)
        assert got == [value]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x",), "payload.number: expected `int`, got `str`"),
        ((1, {"a": datetime.date(2026, 1, 1)}), r"payload.more.a: must be a JSON value"),
        ((1, {"a": (1, 2)}), r"payload.more.a"),
        ((1, {"a": object()}), r"payload.more.a"),
        ((1, {"a": 1}, float("nan")), r"payload.ratio: expected `float`, got `null`"),
    ],
)
async def test_an_argument_of_another_type_is_refused_at_dispatch(
    arguments: Any, message: str
) -> None:
    """With its path; nothing is stored."""
    tasks = tenure.Tasks()

    @tasks.task
    def take(number: int, more: dict[str, Any] = {}, ratio: float = 1.0) -> None: ...  # noqa: B006

    async with open_world("memory") as world:
        tasks.bind(world.queue)
        with pytest.raises(tenure.InvalidJob, match=message):
            await take.enqueue(*arguments)
        with pytest.raises(tenure.InvalidJob, match=message):
            take.call(*arguments)
        assert (await world.queue.counts()).pending == 0


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2), {}), ((1,), {"other": 2})])
def test_arguments_that_do_not_fit_are_refused_as_by_a_call(args: Any, kwargs: Any) -> None:
    tasks = tenure.Tasks()

    @tasks.task
    def take(number: int) -> None: ...

    with pytest.raises(TypeError):
        take.call(*args, **kwargs)


@pytest.mark.parametrize(
    ("payload", "outcome"),
    [
        ({"number": 1, "later": True}, (1, "none")),
        ({"number": 1, "note": "n"}, (1, "n")),
        ({"number": "1"}, r"payload.number: expected `int`, got `str`, as task 'take' takes it"),
        ({}, "payload: object missing required field `number`"),
        ([1], "payload: expected `object`, got `array`"),
    ],
)
async def test_what_others_dispatch_by_name_is_checked_at_run(payload: Any, outcome: Any) -> None:
    """Unknown keys are ignored, defaults fill; else it fails at once, whatever the retries."""
    tasks = tenure.Tasks()
    got: list[Any] = []

    @tasks.task(max_attempts=5)
    async def take(number: int, note: str = "none") -> None:
        got.append((number, note))

    async with open_world("memory") as world:
        job = await world.queue.dispatch("take", payload, max_attempts=5)
        async with running(worker_of(world, tasks)) as handle:
            await world.settle()
            stored = await world.job(job)
            errors = errors_of(handle)
        if isinstance(outcome, tuple):
            assert (got, stored.state) == ([outcome], "completed")
        else:
            assert (got, stored.state, stored.attempt) == ([], "failed", 1)
            assert stored.error is not None
            assert stored.error.kind == "serialization"
            assert outcome in stored.error.message
            assert stored.payload == payload
            assert [type(error) for error in errors] == [tenure.SerializationError]


def test_what_cannot_be_stored_is_refused_when_the_worker_is_built() -> None:
    tasks = tenure.Tasks()

    class Opaque: ...

    @tasks.task
    def take(thing: Any) -> None: ...

    take.function.__annotations__["thing"] = Opaque
    with pytest.raises(tenure.InvalidConfiguration, match="task 'take': thing must have a type"):
        tenure.Worker(tenure.connect("memory://"), tasks=[tasks])
    other = tenure.Tasks()

    @other.task
    def many(*things: int) -> None: ...

    with pytest.raises(tenure.InvalidConfiguration, match="must name each parameter"):
        many.call(1)


# --- options and queues ---------------------------------------------------------------------------


async def test_options_never_mix_with_arguments() -> None:
    """Those of the task, then those of `using`."""
    tasks = tenure.Tasks()

    @tasks.task(queue="mail", priority=3, max_attempts=4, timeout=9, limits=["api"])
    def send(delay: int, queue: str = "q") -> None: ...

    async with open_world("memory") as world:
        tasks.bind(world.queue)
        plain = await world.job(await send.enqueue(1))
        other = await world.job(
            await send.using(queue="low", delay=60, unique="k").enqueue(2, queue="mine")
        )
        assert (plain.queue, plain.priority, plain.max_attempts, plain.timeout) == ("mail", 3, 4, 9)
        assert plain.limits == ("api",)
        assert plain.payload == {"delay": 1}
        assert (other.queue, other.priority) == ("low", 3)
        assert other.run_at > plain.run_at
        assert other.payload == {"delay": 2, "queue": "mine"}
        handles = await world.queue.dispatch_many([send.call(3), send.using(priority=9).call(4)])
        assert [(await world.job(job)).priority for job in handles] == [3, 9]


def test_a_task_is_dispatched_where_there_is_no_event_loop(tmp_path: Path) -> None:
    """And from a plain handler, to the queue of its worker; the result has its type."""
    tasks = tenure.Tasks()

    @tasks.task
    def first(number: int) -> str:
        return second.using(priority=1).enqueue_sync(number).id

    @tasks.task
    def second(number: int) -> Receipt:
        return Receipt("a", number)

    async def work(queue: tenure.Queue, job_id: str) -> None:
        async with queue, tenure.Worker(queue, tasks=[tasks]).run():
            await asyncio.to_thread(check, queue.sync, job_id)

    def check(queue: tenure.SyncQueue, job_id: str) -> None:
        deadline = time.monotonic() + 20
        while queue.get(job_id).state != "completed" and time.monotonic() < deadline:
            time.sleep(0.01)
        inner = queue.get(str(queue.get(job_id).result))
        assert inner.priority == 1
        handle = second.using(on=held, id=inner.id, priority=1).enqueue_sync(2)
        assert handle.result(timeout=10) == Receipt("a", 2)

    held = tenure.connect(f"sqlite:///{tmp_path / 'jobs.db'}")
    tasks.bind(held)
    with held.sync:
        job = first.enqueue_sync(2)
        with pytest.raises(tenure.InvalidJob, match=r"payload\.number"):
            first.enqueue_sync("x")  # type: ignore[arg-type]
        asyncio.run(work(held, job.id))


async def test_a_task_that_knows_no_queue_says_what_to_do() -> None:
    tasks = tenure.Tasks()

    @tasks.task
    def send() -> None: ...

    with pytest.raises(tenure.InvalidConfiguration, match=r"call tasks\.bind\(queue\)"):
        await send.enqueue()
    with pytest.raises(tenure.InvalidConfiguration, match="dispatch_many"):
        send.using(on=tenure.connect("memory://")).call()


async def test_inside_a_handler_it_goes_to_the_queue_of_the_worker() -> None:
    """Also from a thread's context and against what it is bound to."""
    tasks = tenure.Tasks(propagate=["tenant"])
    got: list[str] = []

    @tasks.task
    async def first() -> None:
        await second.enqueue()

    @tasks.task
    async def second() -> None:
        got.append(tenure.current_job().headers.get("tenant", "?"))
        assert "secret" not in tenure.current_job().headers

    async with open_world("memory") as world, tenure.connect("memory://") as elsewhere:
        tasks.bind(elsewhere)
        job = await first.using(on=world.queue, headers={"tenant": "t", "secret": "s"}).enqueue()
        async with running(worker_of(world, tasks)):
            await world.run(job.result())
            await world.settle()
        assert got == ["t"]
        assert (await elsewhere.counts()).pending == 0


async def test_a_worker_serves_the_queues_that_its_tasks_name() -> None:
    """And the default one; where queues are named, these alone."""
    tasks = tenure.Tasks()

    @tasks.task(name="a", queue="mail")
    async def run() -> None: ...

    async with open_world("memory") as world:
        jobs = [await world.queue.dispatch("a", {}, queue=name) for name in ("default", "mail")]
        async with running(worker_of(world, tasks, queues=["default"])):
            await world.settle()
        assert [await world.state(job) for job in jobs] == ["completed", "pending"]
        async with running(worker_of(world, tasks)):
            await world.settle()
        assert [await world.state(job) for job in jobs] == ["completed", "completed"]


async def test_an_alias_runs_the_jobs_of_before_the_renaming() -> None:
    tasks = tenure.Tasks()

    @tasks.task(aliases=["shop.send"])
    async def send(to: str) -> str:
        return to

    async with open_world("memory") as world:
        job = await world.queue.dispatch("shop.send", {"to": "a"})
        async with running(worker_of(world, tasks)):
            assert await world.run(job.result()) == "a"


async def test_attempts_of_a_task_are_retried_also_when_dispatched_by_name() -> None:
    tasks = tenure.Tasks()
    attempts: list[int] = []

    @tasks.task(max_attempts=3)
    async def fail() -> None:
        attempts.append(tenure.current_job().attempt)
        raise ValueError("no")

    async with open_world("memory") as world:
        job = await world.queue.dispatch("fail", {})
        async with running(worker_of(world, tasks)):
            with pytest.raises(tenure.JobFailed):
                await world.run(job.result())
        assert attempts == [1, 2, 3]


async def test_a_result_that_is_not_of_its_type_says_so() -> None:
    tasks = tenure.Tasks()

    @tasks.task
    async def count() -> int:
        return 1

    async with open_world("memory") as world:
        job = await count.using(on=world.queue).enqueue()
        worker = quiet_worker(world)

        @worker.handler("count")
        def give_text(payload: object) -> str:
            return "many"

        async with running(worker):
            await world.ended(job)
            with pytest.raises(
                tenure.SerializationError, match="result: expected `int`, got `str`"
            ):
                await world.run(job.result())


async def test_a_result_that_cannot_be_stored_fails_the_job() -> None:
    tasks = tenure.Tasks()

    @tasks.task
    async def give() -> Any:
        return object()

    async with open_world("memory") as world:
        job = await give.using(on=world.queue).enqueue()
        async with running(worker_of(world, tasks)):
            with pytest.raises(tenure.JobFailed, match="cannot be stored as JSON"):
                await world.run(job.result())
        assert (await world.job(job)).error.kind == "serialization"  # type: ignore[union-attr]


async def test_a_task_may_snooze() -> None:
    tasks = tenure.Tasks()
    starts: list[int] = []

    @tasks.task
    async def wait() -> tenure.Snooze | str:
        starts.append(1)
        return "done" if len(starts) == 2 else tenure.Snooze(5)

    async with open_world("memory") as world:
        job = await wait.using(on=world.queue).enqueue()
        async with running(worker_of(world, tasks)):
            assert await world.run(job.result()) == "done"
        assert (await world.job(job)).attempt == 1


def test_the_schema_is_that_of_the_payload() -> None:
    tasks = tenure.Tasks()

    @tasks.task
    def take(number: int, mails: list[Mail], note: str = "n", tags: list[str] = []) -> None: ...  # noqa: B006

    schema = take.schema()
    arguments = schema["$defs"]["Arguments"]
    assert arguments["required"] == ["number", "mails"]
    assert arguments["properties"]["number"] == {"type": "integer"}
    assert arguments["properties"]["note"] == {"type": "string", "default": "n"}
    assert set(arguments["properties"]) == {"number", "mails", "note", "tags"}
    assert arguments["properties"]["mails"]["items"]["properties"]["to"]["type"] == "string"


# --- injected -------------------------------------------------------------------------------------


async def test_the_job_is_filled_in_where_it_is_asked_for() -> None:
    tasks = tenure.Tasks()

    @tasks.task
    def send(to: str, job: tenure.RunningJob = tenure.INJECTED) -> str:
        assert tenure.current_job() is job
        return f"{to} {job.attempt} {job.payload}"

    async with open_world("memory") as world:
        job = await send.using(on=world.queue).enqueue("a")
        async with running(worker_of(world, tasks)):
            await world.ended(job)
            assert await world.run(job.result()) == "a 1 {'to': 'a'}"
    with pytest.raises(TypeError, match="pass job in an ordinary call"):
        send("a")
    with pytest.raises(TypeError, match="job is filled in by the worker"):
        send.call("a", job=object())  # type: ignore[arg-type]


def test_there_is_no_current_job_outside_of_handlers() -> None:
    with pytest.raises(tenure.RuntimeUnavailable, match="only inside of a handler"):
        tenure.current_job()


async def test_annotations_may_be_text() -> None:
    tasks = tenure.Tasks()

    @tasks.task
    async def send(
        to: "str", job: "tenure.RunningJob" = tenure.INJECTED, at: "datetime.date | None" = None
    ) -> "str":
        return f"{to} {job.attempt} {at}"

    assert send.call("a", at=datetime.date(2026, 1, 1)).payload == {"to": "a", "at": "2026-01-01"}
    _: Annotated[str, "the annotations resolve in the module of the function"]
