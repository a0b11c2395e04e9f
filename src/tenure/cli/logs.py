"""How a worker program logs: a line for each record, as text, short or as JSON, on standard error.

Says beside the first and second signal what the next one does, and in each record that is made
inside of a handler which job runs there.
"""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from tenure.cli.shows import one_line
from tenure.observe.logging import JobContext

__all__ = ["LastError", "log_in_process", "log_to_stderr"]

_NEXT = {
    "drain": "running jobs may finish; the next signal puts them back",
    "cancel": "running jobs are put back; the next signal kills the processes",
    "kill": "the processes are killed; their jobs run again when the leases have run out",
}
_LONG = ("job_name", "queue")
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def log_to_stderr(form: str, *, debug: bool) -> None:
    """Let the whole process log in this form; all that tenure logs to `debug`.

    `text`, `json`, or `short`: for somebody who sits before it.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_FORMS[form]())
    handler.addFilter(JobContext())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("tenure").setLevel(logging.DEBUG if debug else logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.NOTSET)


def log_in_process(form: str) -> None:
    """The same in a process of a pool, whose errors the worker tells."""
    log_to_stderr(form, debug=False)


class LastError(logging.Handler):
    """Remembers the last error that was logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.text: str = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


def _message(record: logging.LogRecord) -> str:
    following = _NEXT.get(str(getattr(record, "stage", "")), "")
    return f"{record.getMessage()}{f': {following}' if following else ''}"


def _at(record: logging.LogRecord) -> str:
    instant = datetime.fromtimestamp(record.created, UTC)
    return f"{instant:%Y-%m-%dT%H:%M:%S}.{instant.microsecond // 1000:03d}Z"


def _more(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _USUAL}


class _AsText(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        about = _more(record)
        if not record.name.startswith("tenure."):  # a line of the app, in which these are enough
            about = {name: value for name, value in about.items() if name not in _LONG}
        more = " ".join(f"{name}={value}" for name, value in about.items())
        line = f"{_message(record)}{f' [{more}]' if more else ''}"
        text = f"{_at(record)} {record.levelname:<7} {record.name}: {one_line(line)}"
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        return text


class _AsShort(logging.Formatter):
    """With the time of the day alone, and lines of their own where a message has several."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone()
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        first, *others = _message(record).splitlines() or [""]
        lines = [f"{at:%H:%M:%S} {level}{one_line(first)}"]
        lines += [f"         {one_line(line)}" for line in others]
        if record.exc_info:
            lines.append(self.formatException(record.exc_info))
        return "\n".join(lines)


class _AsJson(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            "pid": record.process,
            **_more(record),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str, ensure_ascii=False)


_FORMS: Mapping[str, type[logging.Formatter]] = {
    "text": _AsText,
    "json": _AsJson,
    "short": _AsShort,
}
