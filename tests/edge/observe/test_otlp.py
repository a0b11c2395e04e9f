"""Traces leave a program by OTLP: a collector of the test's own receives and decodes them."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import tenure
from tenure.observe.opentelemetry import Tracing

PRODUCER, CONSUMER = 4, 5  # span kinds of the protocol


class Collector:
    """What a collector of OpenTelemetry does with traces: takes them at `/v1/traces`."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        received = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert self.path == "/v1/traces"
                request = ExportTraceServiceRequest()
                request.ParseFromString(body)
                received.requests.append(request)
                received.headers.append({k.lower(): v for k, v in self.headers.items()})
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1/traces"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def spans(self) -> dict[str, list[Any]]:
        """All spans that came, by their names."""
        found: dict[str, list[Any]] = {}
        for request in self.requests:
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    assert scope.scope.name == "tenure"
                    for span in scope.spans:
                        found.setdefault(span.name, []).append(span)
        return found


def attributes(span: Any) -> dict[str, object]:
    found: dict[str, object] = {}
    for pair in span.attributes:
        kind = pair.value.WhichOneof("value")
        found[pair.key] = getattr(pair.value, kind)
    return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    found.close()


@pytest.fixture
def provider(collector: Collector) -> Iterator[TracerProvider]:
    found = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    found.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=collector.url)))
    yield found
    found.shutdown()


async def test_a_collector_has_the_spans_of_dispatches_and_attempts(
    collector: Collector, provider: TracerProvider, tmp_path: Path
) -> None:
    tracing = Tracing(provider)
    url = f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=NORMAL"
    async with tenure.connect(url, middleware=[tracing.dispatching]) as queue:
        worker = tenure.Worker(queue, middleware=[tracing.running], poll_interval=0.05)

        @worker.handler("greet", retry=tenure.RetryPolicy(max_attempts=2, base=0.01, jitter=False))
        async def greet(name: str, job: tenure.RunningJob) -> str:
            if job.attempt == 1:
                raise ValueError("once")
            return f"Hello, {name}!"

        async with worker.run():
            job = await queue.dispatch("greet", "world", queue="default")
            assert await job.result(timeout=30) == "Hello, world!"
    provider.force_flush()

    spans = collector.spans()
    assert set(spans) == {"dispatch default", "process default"}
    (sent,) = spans["dispatch default"]
    first, second = sorted(spans["process default"], key=lambda span: span.start_time_unix_nano)
    assert (sent.kind, first.kind, second.kind) == (PRODUCER, CONSUMER, CONSUMER)
    assert attributes(sent) == {
        "messaging.system": "tenure",
        "messaging.destination.name": "default",
        "messaging.operation.type": "send",
        "messaging.operation.name": "dispatch",
        "messaging.message.id": job.id,
        "tenure.job.name": "greet",
    }

    # The first attempt is the child of the dispatch, the retry a trace of its own; both are linked.
    assert (first.trace_id, first.parent_span_id) == (sent.trace_id, sent.span_id)
    assert second.trace_id != sent.trace_id
    assert second.parent_span_id == b""
    for attempt in (first, second):
        (link,) = attempt.links
        assert (link.trace_id, link.span_id) == (sent.trace_id, sent.span_id)
        about = attributes(attempt)
        assert about["messaging.message.id"] == job.id
        assert about["messaging.operation.type"] == "process"
    assert attributes(first)["tenure.job.attempt"] == 1
    assert attributes(second)["tenure.job.attempt"] == 2
    assert attributes(first)["error.type"] == "ValueError"
    assert [event.name for event in first.events] == ["exception"]
    assert (first.status.code, second.status.code) == (2, 0)  # an error, and unset
    assert "world" not in str(collector.requests)  # payloads and results are in no span

    (resource,) = {pair.value.string_value for request in collector.requests
                   for each in request.resource_spans for pair in each.resource.attributes
                   if pair.key == "service.name"}  # fmt: skip
    assert resource == "shop"
    assert {h["content-type"] for h in collector.headers} == {"application/x-protobuf"}
