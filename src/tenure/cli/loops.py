"""Which event loop a worker process runs on. The only module that knows uvloop."""

import asyncio
from collections.abc import Callable

from tenure.cli.complaints import Complaint
from tenure.cli.exits import Exit

__all__ = ["loop_factory"]


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the loop; None is asyncio's own. `auto` is uvloop where it is installed.

    Raises `Complaint` for uvloop where it is not.
    """
    if name == "asyncio":
        return None
    try:
        import uvloop
    except ModuleNotFoundError:
        if name == "auto":
            return None
        remedy = "pip install 'tenure[uvloop]', or leave --loop out"
        raise Complaint("uvloop is not installed", remedy, Exit.USAGE) from None
    return uvloop.new_event_loop
