"""What systemd is told by `tenure worker` in a unit with `Type=notify`."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.cli.notify import notifier_from
from tests.edge.cli.programs import Start, wait_for
from tests.edge.cli.running import call
from tests.process.waiting import wait_until

APP = """
import os
import time

import tenure

queue = tenure.connect(os.environ["TENURE_URL"])


async def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


async def environment(payload):
    return sorted(name for name in os.environ if name.startswith(("NOTIFY", "WATCHDOG")))


def app():
    worker = tenure.Worker(queue)
    worker.register("spin", spin)
    worker.register("environment", environment)
    return worker
"""


class Systemd:
    """Listens where a unit's main process is told to send."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._told: list[str] = []

    @property
    def told(self) -> list[str]:
        """All that was said so far, in order."""
        while True:
            try:
                self._told.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return self._told

    def hears(self, text: str) -> None:
        wait_until(
            lambda: any(text in line for line in self.told), lambda: f"no {text} in {self.told}"
        )

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    name = f"tenure-test-{os.getpid()}-{request.node.name[:20]}"
    if request.param == "abstract":
        if not Path("/proc/net/unix").exists():
            pytest.skip("the abstract namespace of sockets is Linux's")
        listening = Systemd(f"@{name}")
    else:
        listening = Systemd(str(tmp_path / "notify"))
    yield listening
    listening.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "unit.py").write_text(APP, encoding="utf-8")
    return tmp_path


def test_it_is_told_from_the_start_to_the_end(url: str, start: Start, systemd: Systemd) -> None:
    """Ready when a worker is and its store answers; nothing that it starts speaks for it."""
    env = {"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "1000000"}
    program = start("unit:app", "--processes", "2", env=env)
    systemd.hears("READY=1")
    systemd.hears("STATUS=2 processes, 0 of 32 slots in use")
    systemd.hears("WATCHDOG=1")
    job = call("enqueue", "environment", url=url).out.strip()
    wait_for(url, job, "completed")
    shown = call("jobs", "show", job, "--json", url=url).json["job"]
    assert shown["result"] == []
    assert "STOPPING=1" not in systemd.told
    program.send(signal.SIGTERM)
    systemd.hears("STOPPING=1")
    assert program.wait() == 0
    assert systemd.told.count("READY=1") == 1
    assert "Traceback" not in program.stderr


def test_no_sign_of_life_while_an_event_loop_is_blocked(
    url: str, start: Start, systemd: Systemd
) -> None:
    env = {"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "500000"}
    start("unit:app", env=env)
    systemd.hears("READY=1")
    call("enqueue", "spin", json.dumps(9), url=url)
    systemd.hears("its event loop has not turned for")

    def after() -> list[str]:
        told = systemd.told
        first = next(n for n, line in enumerate(told) if "has not turned" in line)
        return told[first:]

    wait_until(lambda: "STATUS=1 process, 0 of 16 slots in use" in after(), lambda: str(after()))
    blocked = [line for line in after() if "has not turned" in line]
    last = after().index(blocked[-1])
    assert "WATCHDOG=1" not in after()[:last]
    wait_until(lambda: "WATCHDOG=1" in after()[last:], lambda: str(after()))


def test_a_store_that_is_away_is_no_start_and_no_reason_to_end_it(
    folder: Path, start: Start, systemd: Systemd
) -> None:
    env = {"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "500000"}
    program = start("unit:app", on="redis://127.0.0.1:1", env=env)
    systemd.hears("STATUS=process 1")
    systemd.hears("WATCHDOG=1")
    assert "READY=1" not in systemd.told
    program.send(signal.SIGTERM)
    systemd.hears("STOPPING=1")
    program.wait()


def test_a_listener_that_is_gone_harms_nobody(url: str, start: Start, tmp_path: Path) -> None:
    program = start("unit:app", env={"NOTIFY_SOCKET": str(tmp_path / "nobody")})
    job = call("enqueue", "environment", url=url).out.strip()
    wait_for(url, job, "completed")
    program.send(signal.SIGTERM)
    assert program.wait() == 0
    assert "Traceback" not in program.stderr


def test_what_systemd_sets_is_taken_out_of_the_environment() -> None:
    given = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "3000000", "HOME": "/"}
    notifier = notifier_from(given)
    assert given == {"HOME": "/"}
    assert notifier is not None
    assert notifier.watchdog == 3.0
    notifier.close()


@pytest.mark.parametrize("microseconds", ["", "0", "-1", "soon"])
def test_a_watchdog_that_is_none(microseconds: str) -> None:
    notifier = notifier_from({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": microseconds})
    assert notifier is not None
    assert notifier.watchdog is None
    notifier.close()


def test_a_watchdog_for_another_process_is_none() -> None:
    given = {"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}
    notifier = notifier_from(given)
    assert notifier is not None
    assert notifier.watchdog is None
    notifier.close()


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1"])
def test_an_address_that_is_none_of_these_is_left_alone(address: str) -> None:
    given = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1"}
    assert notifier_from(given) is None
    assert given == {}
