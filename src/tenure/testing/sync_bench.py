"""A bench for tests that are not async: what it awaits, blocking. It adds nothing of its own."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from tenure.sync.background import BACKGROUND
from tenure.task import Task, Using
from tenure.testing.processed import Processed
from tenure.types import Job

if TYPE_CHECKING:
    from tenure.testing.bench import Bench

__all__ = ["SyncBench"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class SyncBench:
    """The verbs of a `Bench` that run jobs; they run on the background loop of `queue.sync`."""

    __slots__ = ("_bench",)

    def __init__(self, bench: "Bench") -> None:
        self._bench = bench

    def _run(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return BACKGROUND.call(self._bench.queue, begin)

    def drain(self, *, with_scheduled: bool = False) -> list[Job[Any]]:
        """As `Bench.drain`."""
        return self._run(lambda: self._bench.drain(with_scheduled=with_scheduled))

    def advance(self, duration: float | timedelta) -> list[Job[Any]]:
        """As `Bench.advance`."""
        return self._run(lambda: self._bench.advance(duration))

    @overload
    def process(
        self, job: "Task[P, R] | Using[P, R]", /, *args: P.args, **kwargs: P.kwargs
    ) -> Processed[R]: ...
    @overload
    def process(self, job: str, payload: Any = None, /) -> Processed[Any]: ...
    def process(self, job: Any, /, *args: Any, **kwargs: Any) -> Processed[Any]:
        """As `Bench.process`."""
        return self._run(lambda: self._bench.process(job, *args, **kwargs))

    @overload
    def time_out(
        self, job: "Task[P, R] | Using[P, R]", /, *args: P.args, **kwargs: P.kwargs
    ) -> Processed[R]: ...
    @overload
    def time_out(self, job: str, payload: Any = None, /) -> Processed[Any]: ...
    def time_out(self, job: Any, /, *args: Any, **kwargs: Any) -> Processed[Any]:
        """As `Bench.time_out`."""
        return self._run(lambda: self._bench.time_out(job, *args, **kwargs))
