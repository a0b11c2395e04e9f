"""Metrics: what is counted by which labels, in how many series at most."""

import logging
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import tenure
from tenure.observe.prometheus import Metrics
from tests.runtime.scenes import Gates, quiet_worker, running, unreachable
from tests.runtime.world import World, open_world


class Counted:
    """The metrics of a test, in a registry of their own."""

    def __init__(self, world: World, **options: Any) -> None:
        self.registry = CollectorRegistry()
        self.metrics = Metrics(self.registry, clock=world.clock, **options)

    def value(self, metric: str, /, **labels: str) -> float:
        return self.registry.get_sample_value(f"tenure_{metric}", labels) or 0.0


async def test_attempts_are_counted_by_queue_name_and_outcome() -> None:
    async with open_world("memory") as world:
        counted = Counted(world)
        worker = quiet_worker(world, observers=[counted.metrics])

        @worker.handler("work", retry=tenure.RetryPolicy(max_attempts=2, base=10, jitter=False))
        async def work(payload: object, job: tenure.RunningJob) -> None:
            await world.clock.sleep(2.0)
            if job.attempt == 1:
                raise ValueError("no")

        job = await world.queue.dispatch("work", delay=3)
        async with running(worker):
            await world.run(job.result())
        labels = {"queue": "default", "name": "work"}
        assert counted.value("jobs_claimed_total", **labels) == 2
        assert counted.value("jobs_started_total", **labels) == 2
        assert counted.value("jobs_settled_total", **labels, outcome="retried") == 1
        assert counted.value("jobs_settled_total", **labels, outcome="completed") == 1
        assert counted.value("job_duration_seconds_sum", **labels) == pytest.approx(4.0)
        assert counted.value("job_wait_seconds_count", **labels) == 2
        assert counted.value("job_wait_seconds_sum", **labels) < 1.0  # its delays are no waiting
        assert counted.value("errors_total", kind="JobFailed") == 1


async def test_the_wait_is_counted_from_the_instant_at_which_a_job_is_due() -> None:
    async with open_world("memory") as world:
        counted = Counted(world)
        worker = quiet_worker(world, observers=[counted.metrics])

        @worker.handler("work")
        async def work(payload: object) -> None: ...

        await world.queue.dispatch("work", delay=10)
        await world.advance(25)
        async with running(worker):
            await world.settle()
        assert counted.value("job_wait_seconds_sum", queue="default", name="work") == 15


async def test_dispatches_are_counted_where_they_are_stored() -> None:
    """One that a unique key refuses is none."""
    async with open_world("memory") as world:
        counted = Counted(world)
        async with tenure.connect("memory://", middleware=[counted.metrics.dispatching]) as queue:
            await queue.dispatch("work", unique="k", queue="slow")
            await queue.dispatch("work", unique="k", queue="slow")
            await queue.dispatch_many([tenure.Call("other")] * 3)
        assert counted.value("jobs_dispatched_total", queue="slow", name="work") == 1
        assert counted.value("jobs_dispatched_total", queue="default", name="other") == 3


async def test_the_series_are_bounded_whatever_names_jobs_have() -> None:
    async with open_world("memory") as world:
        counted = Counted(world, series=3)
        async with tenure.connect("memory://", middleware=[counted.metrics.dispatching]) as queue:
            for number in range(50):
                await queue.dispatch(f"name-{number}")
        assert counted.value("jobs_dispatched_total", queue="other", name="other") == 47
        assert generate_latest(counted.registry).count(b"tenure_jobs_dispatched_total{") == 4
        with pytest.raises(tenure.InvalidConfiguration, match="series"):
            Metrics(CollectorRegistry(), series=0)


async def test_schedules_and_lost_holds_are_counted() -> None:
    async with open_world("memory") as world:
        counted = Counted(world)
        worker = quiet_worker(world, observers=[counted.metrics])

        @worker.handler("work")
        async def work(payload: object) -> None: ...

        await world.queue.schedule("s", "@every 10s", "work")
        async with running(worker):
            for _ in range(3):
                await world.advance(10)
        assert counted.value("schedule_ticks_total") == 3
        assert counted.value("schedule_lag_seconds_count") == 3


async def test_a_defect_of_the_metrics_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """As of any observer: it is logged."""
    async with open_world("memory") as world:

        class Broken(Metrics):
            def __call__(self, event: tenure.Event) -> None:
                raise RuntimeError("a defect")

        worker = quiet_worker(world, observers=[Broken(CollectorRegistry())])

        @worker.handler("work")
        async def work(payload: object) -> str:
            return "done"

        job = await world.queue.dispatch("work")
        with caplog.at_level(logging.ERROR):
            async with running(worker):
                assert await world.run(job.result()) == "done"
        assert "an observer raised" in caplog.text


async def test_the_slots_of_watched_workers_are_shown_while_they_run() -> None:
    async with open_world("memory") as world:
        counted = Counted(world)
        gates = Gates()
        worker = quiet_worker(world, concurrency=3, observers=[counted.metrics])
        worker.register("work", gates)
        async with running(worker) as first, running(worker) as second:
            counted.metrics.watch(first)
            counted.metrics.watch(second)
            await world.queue.dispatch_many([tenure.Call("work", str(n)) for n in range(4)])
            await world.settle()
            assert counted.value("worker_slots") == 6
            assert counted.value("worker_slots_used") == 4
            assert counted.value("worker_handlers_overdue") == 0
            gates.let(*map(str, range(4)))
            await world.settle()
            assert counted.value("worker_slots_used") == 0
        assert counted.value("worker_slots") == 0


async def test_a_look_asks_the_store_at_most_every_five_seconds() -> None:
    async with open_world("memory") as world:
        counted = Counted(world)
        await world.queue.dispatch("work", queue="mail")
        await world.queue.dispatch("work", queue="mail", delay=60)
        await world.advance(10)
        queues = ["mail", "other"]
        for _ in range(10):
            await counted.metrics.look(world.queue, queues)
        assert counted.value("queue_oldest_waiting_seconds", queue="mail") == 10
        assert counted.value("queue_oldest_waiting_seconds", queue="other") == 0
        assert world.driver.calls.count("oldest_due") == 1
        await world.advance(5)
        await counted.metrics.look(world.queue, queues)
        assert counted.value("queue_oldest_waiting_seconds", queue="mail") == 15
        assert world.driver.calls.count("oldest_due") == 2


async def test_a_tick_that_nobody_fires_is_overdue_and_a_paused_schedule_has_none() -> None:
    async with open_world("memory") as world:
        counted = Counted(world)
        await world.queue.schedule("s", "@every 60s", "work")
        await world.advance(59)
        await counted.metrics.look(world.queue, [])
        assert counted.value("schedules_overdue_seconds") == 0
        await world.advance(31)
        await counted.metrics.look(world.queue, [])
        assert counted.value("schedules_overdue_seconds") == 30
        await world.queue.pause_schedule("s")
        await world.advance(10)
        await counted.metrics.look(world.queue, [])
        assert counted.value("schedules_overdue_seconds") == 0


async def test_a_look_that_fails_leaves_the_gauges_as_they_were() -> None:
    async with open_world("memory") as world:
        counted = Counted(world)
        await world.queue.dispatch("work")
        await world.advance(10)
        await counted.metrics.look(world.queue, ["default"])
        await world.advance(10)
        world.driver.fail("oldest_due", unreachable(), times=1)
        with pytest.raises(tenure.StoreUnavailable):
            await counted.metrics.look(world.queue, ["default"])
        assert counted.value("queue_oldest_waiting_seconds", queue="default") == 10
