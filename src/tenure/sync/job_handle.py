"""What a blocking dispatch returns: the id of the job, and the way to wait for its end."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Protocol

from tenure.job_handle import JobHandle

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with a default, which checkers know before Python 3.13

    R = TypeVar("R", default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R")

T = TypeVar("T")

__all__ = ["SyncJobHandle"]


class Run(Protocol):
    """Runs a coroutine on the background loop, and waits for its end."""

    def __call__(self, begin: Callable[[], Coroutine[Any, Any, T]], /) -> T: ...


class SyncJobHandle(Generic[R]):
    """A dispatched job. `id` is opaque; `created` is False where an existing job was returned.

    `R` is what its handler returns, where that is known: of a task.
    """

    __slots__ = ("_handle", "_run")

    def __init__(self, handle: JobHandle[R], run: Run) -> None:
        self._handle = handle
        self._run = run

    @property
    def id(self) -> str:
        """The id of the job, opaque."""
        return self._handle.id

    @property
    def created(self) -> bool:
        """False where an existing job was returned."""
        return self._handle.created

    def result(self, timeout: float | timedelta | None = None) -> R:
        """Wait until the job has ended and return what its handler returned.

        As `JobHandle.result`: raises `JobFailed`, `JobCancelled`, `JobNotFound`, `TimeoutError`
        after `timeout` seconds (None waits as long as it takes), `StoreError`, and
        `RuntimeUnavailable` when the queue is closed or an event loop runs in this thread.
        """
        return self._run(lambda: self._handle.result(timeout))

    def reading(self, read: Callable[[Any], T]) -> "SyncJobHandle[T]":
        """The same job, whose result is what `read` makes of the stored one."""
        return SyncJobHandle(self._handle.reading(read), self._run)

    def __repr__(self) -> str:
        return f"<SyncJobHandle {self.id}>"
