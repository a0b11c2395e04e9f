"""A file outside the queue that counts what really happened, whatever the queue says of it."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["Ledger"]


class Ledger:
    """Lines that any process appends, each in one write, so that none is torn or lost by a kill."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def write(self, what: str, **fields: object) -> None:
        line = json.dumps({"what": what, "pid": os.getpid(), "at": time.monotonic(), **fields})
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode() + b"\n")
        finally:
            os.close(file)

    def read(self, what: str, **matching: object) -> Sequence[dict[str, Any]]:
        """The entries of one kind, in order; `at` is comparable between processes."""
        if not self.path.exists():
            return []
        entries: list[dict[str, Any]] = [json.loads(line) for line in self._lines()]
        return [
            entry
            for entry in entries
            if entry["what"] == what
            and all(entry.get(key) == value for key, value in matching.items())
        ]

    def _lines(self) -> Sequence[str]:
        text = self.path.read_text()
        return text[: text.rfind("\n") + 1].splitlines()
