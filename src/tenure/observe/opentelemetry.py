"""Traces by OpenTelemetry (extra `[otel]`): a span for each dispatch, and one for each attempt.

    tracing = Tracing()
    queue = tenure.connect(url, middleware=[tracing.dispatching])
    worker = tenure.Worker(queue, middleware=[tracing.running])

Names and attributes follow the semantic conventions for messaging
(https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/). The context travels in the
headers of the job. Payloads and results are in no span.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from opentelemetry import context, propagate, trace
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode

from tenure._runtime.running_job import RunningJob
from tenure.call import Call
from tenure.clock import Clock, SystemClock
from tenure.intake import not_negative
from tenure.job_handle import JobHandle
from tenure.verdicts import Cancel, Snooze

__all__ = ["Tracing"]

# When it was dispatched, so that an attempt can tell whether it is prompt.
_SENT = "tenure-sent"


class Tracing:
    """Two middlewares, `dispatching` and `running`, that make spans.

    `provider` is the program's tracer provider unless another is given. The span of an attempt is
    always linked to that of its dispatch. It is also its child where the job's first attempt starts
    within `prompt` seconds or `timedelta` of it (default 60): a trace then shows both, while a job
    of tomorrow does not stretch today's trace.
    """

    def __init__(
        self,
        provider: trace.TracerProvider | None = None,
        *,
        prompt: float | timedelta = 60.0,
        clock: Clock | None = None,
    ) -> None:
        self._tracer = trace.get_tracer("tenure", tracer_provider=provider)
        self._prompt = not_negative("prompt", prompt)
        self._clock = clock or SystemClock()

    async def dispatching(
        self,
        calls: Sequence[Call],
        store: Callable[[Sequence[Call]], Awaitable[Sequence[JobHandle[Any]]]],
    ) -> Sequence[JobHandle[Any]]:
        """Middleware for `connect`: a producer span around a dispatch, of one job or of many."""
        queues = sorted({call.queue for call in calls})
        where = queues[0] if len(queues) == 1 else "queues"
        about: dict[str, str | int] = {
            **_about(where, "send"),
            "messaging.operation.name": "dispatch",
        }
        if len(calls) == 1:
            about["tenure.job.name"] = calls[0].name
        else:
            about["messaging.batch.message_count"] = len(calls)
        span = self._tracer.start_as_current_span(
            f"dispatch {where}", kind=SpanKind.PRODUCER, attributes=about
        )
        with span as current:
            carrier = {_SENT: self._clock.now().isoformat()}
            propagate.inject(carrier)
            for call in calls:
                call.headers = {**carrier, **(call.headers or {})}
            handles = await store(calls)
            if len(handles) == 1:
                current.set_attribute("messaging.message.id", handles[0].id)
        return handles

    async def running(self, job: RunningJob, call: Callable[[], Awaitable[Any]]) -> Any:
        """Middleware for `Worker`: a consumer span around an attempt."""
        headers = job.headers
        sender = propagate.extract(headers, context=context.Context())
        sent = trace.get_current_span(sender).get_span_context()
        prompt = job.attempt == 1 and self._is_prompt(headers.get(_SENT))
        span = self._tracer.start_as_current_span(
            f"process {job.queue}",
            context=sender if prompt else context.Context(),
            kind=SpanKind.CONSUMER,
            attributes={
                **_about(job.queue, "process"),
                "messaging.operation.name": "process",
                "messaging.message.id": job.id,
                "tenure.job.name": job.name,
                "tenure.job.attempt": job.attempt,
            },
            links=[Link(sent)] if sent.is_valid else [],
            record_exception=False,
            set_status_on_exception=False,
        )
        with span as current:
            try:
                result = await call()
            except Cancel:
                current.set_attribute("tenure.job.outcome", "cancelled")
                raise
            except asyncio.CancelledError:  # by its time limit, a cancel, or the end of its hold
                current.set_attribute("tenure.job.outcome", "interrupted")
                raise
            except Exception as error:
                _failed(current, error)
                raise
            if isinstance(result, Snooze):
                current.set_attribute("tenure.job.outcome", "snoozed")
            return result

    def _is_prompt(self, sent: str | None) -> bool:
        try:
            at = datetime.fromisoformat(sent or "")
            age = self._clock.now() - at
        except (ValueError, TypeError):  # a header of somebody else's, or one without a zone
            return False
        return age.total_seconds() <= self._prompt


def _about(queue: str, operation: str) -> dict[str, str | int]:
    return {
        "messaging.system": "tenure",
        "messaging.destination.name": queue,
        "messaging.operation.type": operation,
    }


def _failed(span: Span, error: Exception) -> None:
    span.record_exception(error)
    span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(Status(StatusCode.ERROR, type(error).__name__))
