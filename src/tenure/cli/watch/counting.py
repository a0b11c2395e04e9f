"""The metrics of a process as plain values, and back as the text that Prometheus reads.

The only module of the command line that knows `prometheus_client`.
"""

from collections.abc import Iterable, Sequence

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tenure._runtime.handle import WorkerHandle
from tenure.cli.watch.terms import Family, Sample
from tenure.observe.prometheus import Metrics
from tenure.queue import Queue
from tenure.worker import Worker

__all__ = ["CountingOf", "metrics_of", "written"]


def metrics_of(worker: Worker) -> tuple[Metrics, bool]:
    """The metrics that the app has given its worker or its queue, else new ones.

    Also whether the worker does not tell them its events yet. New ones are in Prometheus's usual
    registry, so that what the app itself counts there is shown too, and count dispatches of the
    worker's queue from now on.
    """
    for observer in worker.observers:
        if isinstance(observer, Metrics):
            return observer, False
    for middleware in worker.queue.middleware:
        owner: object = getattr(middleware, "__self__", None)
        if isinstance(owner, Metrics):
            return owner, True
    metrics = Metrics(REGISTRY)
    worker.queue.add_middleware(metrics.dispatching)
    return metrics, True


class CountingOf:
    """What `Inside` asks for."""

    def __init__(self, metrics: Metrics, queues: Sequence[str]) -> None:
        self._metrics = metrics
        self._queues = queues

    def began(self, handle: WorkerHandle) -> None:
        self._metrics.watch(handle)

    async def look(self, queue: Queue) -> None:
        await self._metrics.look(queue, self._queues)

    def families(self) -> Sequence[Family]:
        """All metrics of the registry, without the instants at which series were made."""
        return [_family(metric) for metric in self._metrics.registry.collect()]


def _family(metric: Metric) -> Family:
    samples = [
        Sample(sample.name, sample.labels, sample.value)
        for sample in metric.samples
        if not sample.name.endswith("_created")
    ]
    return Family(metric.name, metric.type, metric.documentation, samples)


class _Given(Collector):
    """Has what was counted elsewhere."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        for family in self._families:
            metric = Metric(family.name, family.text, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, sample.labels, sample.value)
            yield metric


def written(families: Iterable[Family]) -> bytes:
    """As Prometheus reads it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Given(families))
    return generate_latest(registry)
