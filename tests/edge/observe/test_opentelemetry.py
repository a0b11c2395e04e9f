"""Traces: which spans there are, whose children, linked to what, and what they say."""

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import tenure
from tenure.observe.opentelemetry import Tracing
from tests.runtime.scenes import running
from tests.runtime.world import World, open_world


class Traced:
    """A queue and a worker that make spans, which are kept."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._kept = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.tracer = provider.get_tracer("test")
        tracing = Tracing(provider, clock=world.clock)
        self.queue = tenure.Queue(world.driver, clock=world.clock, middleware=[tracing.dispatching])
        self.worker = tenure.Worker(self.queue, poll_interval=1000.0, middleware=[tracing.running])

    def spans(self, kind: SpanKind) -> Sequence[ReadableSpan]:
        return [span for span in self._kept.get_finished_spans() if span.kind is kind]


def context_of(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def parent_of(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def links_of(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


async def test_a_prompt_attempt_is_a_child_of_its_dispatch_and_linked_to_it() -> None:
    """The dispatch is a child of whatever the program was doing."""
    async with open_world("memory") as world:
        traced = Traced(world)

        @traced.worker.handler("work")
        async def work(payload: object) -> None:
            with traced.tracer.start_as_current_span("inside"):
                pass

        with traced.tracer.start_as_current_span("request") as request:
            job = await traced.queue.dispatch("work", {"secret": 1}, queue="default")
        async with running(traced.worker):
            await world.run(job.result())
        [sent], [ran] = traced.spans(SpanKind.PRODUCER), traced.spans(SpanKind.CONSUMER)
        inside = next(s for s in traced.spans(SpanKind.INTERNAL) if s.name == "inside")
        assert parent_of(sent) == (
            request.get_span_context().trace_id,
            request.get_span_context().span_id,
        )
        assert parent_of(ran) == context_of(sent)
        assert links_of(ran) == [context_of(sent)]
        assert parent_of(inside) == context_of(ran)
        assert (sent.name, ran.name) == ("dispatch default", "process default")
        assert dict(ran.attributes or {}) == {
            "messaging.system": "tenure",
            "messaging.destination.name": "default",
            "messaging.operation.type": "process",
            "messaging.operation.name": "process",
            "messaging.message.id": job.id,
            "tenure.job.name": "work",
            "tenure.job.attempt": 1,
        }
        assert (sent.attributes or {})["messaging.message.id"] == job.id
        assert "secret" not in str(sent.to_json()) + str(ran.to_json())


async def test_a_later_attempt_is_a_trace_of_its_own_that_is_linked() -> None:
    """A delayed job, and each retry; what failed says so."""
    async with open_world("memory") as world:
        traced = Traced(world)

        @traced.worker.handler("work", retry=tenure.RetryPolicy(max_attempts=2))
        async def work(payload: object, job: tenure.RunningJob) -> None:
            if job.attempt == 1:
                raise LookupError("no")

        job = await traced.queue.dispatch("work", delay=100)
        async with running(traced.worker):
            await world.run(job.result())
        [sent] = traced.spans(SpanKind.PRODUCER)
        first, second = traced.spans(SpanKind.CONSUMER)
        for span in (first, second):
            assert parent_of(span) is None
            assert links_of(span) == [context_of(sent)]
        assert first.status.status_code is StatusCode.ERROR
        assert (first.attributes or {})["error.type"] == "LookupError"
        assert [event.name for event in first.events] == ["exception"]
        assert second.status.status_code is StatusCode.UNSET


async def test_many_jobs_share_the_span_of_their_dispatch() -> None:
    async with open_world("memory") as world:
        traced = Traced(world)
        own: dict[str, str] = {"traceparent": "mine", "tenant": "t"}
        handles = await traced.queue.dispatch_many(
            [tenure.Call("a"), tenure.Call("b", queue="slow"), tenure.Call("c", headers=own)]
        )
        [sent] = traced.spans(SpanKind.PRODUCER)
        assert sent.name == "dispatch queues"
        assert (sent.attributes or {})["messaging.batch.message_count"] == 3
        headers = [(await traced.queue.get(handle.id)).headers for handle in handles]
        assert headers[0]["traceparent"] == headers[1]["traceparent"]
        assert headers[2]["traceparent"] == "mine"  # what the caller gave stands
        assert headers[2]["tenant"] == "t"


async def test_headers_that_are_no_context_harm_nothing() -> None:
    """Jobs of programs that do not trace, or write what they like."""
    async with open_world("memory") as world:
        traced = Traced(world)

        @traced.worker.handler("work")
        async def work(payload: object) -> None: ...

        strange: list[dict[str, str]] = [{}, {"traceparent": "x"}, {"tenure-sent": "2030-01-01"}]
        jobs = [await world.queue.dispatch("work", headers=headers) for headers in strange]
        async with running(traced.worker):
            await world.ended(*jobs)
            await world.settle()
        assert [await world.state(job) for job in jobs] == ["completed"] * 3
        for span in traced.spans(SpanKind.CONSUMER):
            assert (parent_of(span), links_of(span)) == (None, [])


async def test_verdicts_are_no_errors() -> None:
    async with open_world("memory") as world:
        traced = Traced(world)
        said: list[Any] = [tenure.Snooze(5)]

        @traced.worker.handler("work")
        async def work(payload: object) -> Any:
            if said:
                return said.pop()
            raise tenure.Cancel("no longer needed")

        job = await traced.queue.dispatch("work")
        async with running(traced.worker):
            await world.advance(10)
        assert await world.state(job) == "cancelled"
        spans = traced.spans(SpanKind.CONSUMER)
        outcomes = [(span.attributes or {})["tenure.job.outcome"] for span in spans]
        assert outcomes == ["snoozed", "cancelled"]
        assert {span.status.status_code for span in spans} == {StatusCode.UNSET}


async def test_an_attempt_that_passes_its_time_limit_is_interrupted() -> None:
    async with open_world("memory") as world:
        traced = Traced(world)

        @traced.worker.handler("work", timeout=5, retry=tenure.RetryPolicy(max_attempts=1))
        async def work(payload: object) -> None:
            await world.clock.sleep(1000)

        job = await traced.queue.dispatch("work")
        async with running(traced.worker):
            await world.advance(10)
        assert await world.state(job) == "failed"
        [span] = traced.spans(SpanKind.CONSUMER)
        assert (span.attributes or {})["tenure.job.outcome"] == "interrupted"
