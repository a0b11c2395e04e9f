"""What surrounds the call of a function that takes more than a payload. Values and a protocol only.

The layer of tasks makes them, the runtime goes by them, and neither knows the other.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

__all__ = ["Binding", "Need"]


class Need(Struct, frozen=True, kw_only=True):
    """A value that is made before a handler is called, and put away after it has ended.

    `function`, plain or async, returns the value, or yields it once. Its own `needs` are made
    before it; the parameter `job` is given the running job. A need of the scope "worker" is made
    once for each run of a worker, of the scope "job" once for each attempt.
    """

    function: Callable[..., Any]
    scope: Literal["job", "worker"] = "job"
    needs: "Mapping[str, Need]" = {}
    job: str | None = None


class Binding(Protocol):
    """How a payload becomes the arguments of a function, and what it returns a result."""

    @property
    def needs(self) -> Mapping[str, Need]:
        """What is made for the call, by the names of parameters."""
        ...

    @property
    def job(self) -> str | None:
        """The parameter that is given the running job."""
        ...

    def arguments(self, payload: Any) -> dict[str, Any]:
        """The arguments by name. Raises `SerializationError` where the payload is not for it."""
        ...

    def result(self, value: Any) -> Any:
        """What was returned, as a JSON value. Raises `SerializationError`."""
        ...
