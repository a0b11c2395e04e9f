"""A program that runs its worker in several processes, and notes what became of them."""

import logging
import signal
import sys
from typing import Any

import tenure
from tests.process.programs.setting import Setting


class Noted(logging.Handler):
    """Writes what the supervisor logs to the ledger."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self._ledger = setting.ledger

    def emit(self, record: logging.LogRecord) -> None:
        self._ledger.write("log", level=record.levelname, text=record.getMessage())


def app() -> tenure.Worker:
    setting = Setting()
    del setting.options["supervisor"]
    setting.ledger.write("born")
    return setting.worker(tenure.connect(setting.url))


async def awaited() -> tenure.Worker:
    return app()


def broken() -> tenure.Worker:
    Setting().ledger.write("born")
    raise LookupError("no such thing here")


def nothing() -> None:
    Setting().ledger.write("born")


if __name__ == "__main__":
    setting = Setting()
    options: dict[str, Any] = setting.options["supervisor"]
    logger = logging.getLogger("tenure.processes")
    logger.addHandler(Noted(setting))
    logger.setLevel(logging.INFO)
    found = options.pop("app", "app")
    before = signal.getsignal(signal.SIGTERM)
    setting.ready()
    status = tenure.run_processes(globals().get(found, found), **options)
    kept = signal.getsignal(signal.SIGTERM) is before
    setting.ledger.write("ended", status=status.name, kept=kept)
    sys.exit(status)
