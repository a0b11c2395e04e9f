"""Tells systemd how the program is, where it was started by a unit with `Type=notify`.

The variables that systemd sets are taken out of the environment, so that no process of ours, nor
what a handler starts, speaks for the program. Nobody waits for systemd: what it does not take is
not said.
"""

import os
import socket
from collections.abc import MutableMapping

__all__ = ["Notifier", "notifier_from"]

_SOCKET, _WATCHDOG, _FOR = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"


class Notifier:
    """Sends to the socket at `address`; a leading @ is Linux's abstract namespace.

    `watchdog` is how many seconds may lie between two signs of life, None where none is awaited.
    """

    def __init__(self, address: str, watchdog: float | None) -> None:
        self.watchdog = watchdog
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._status = ""

    def ready(self) -> None:
        self._send("READY=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`; said again only when it is another."""
        if text != self._status and self._send(f"STATUS={text}"):
            self._status = text

    def close(self) -> None:
        self._socket.close()

    def _send(self, text: str) -> bool:
        try:
            self._socket.sendto(text.encode(), self._address)
        except OSError:  # it is gone, or has enough to read
            return False
        return True


def notifier_from(environment: MutableMapping[str, str]) -> Notifier | None:
    """What was asked for by systemd, whose variables are removed; None where it was not."""
    address = environment.pop(_SOCKET, "")
    microseconds = environment.pop(_WATCHDOG, "")
    meant_for = environment.pop(_FOR, "")
    if not address.startswith(("/", "@")):
        return None
    watchdog = None
    if microseconds.isascii() and microseconds.isdigit() and meant_for in ("", str(os.getpid())):
        watchdog = int(microseconds) / 1_000_000 or None
    return Notifier(address, watchdog)
