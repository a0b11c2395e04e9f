"""A system without the modules and signals of POSIX, as far as the package can see.

What the standard library has imported by now it keeps: on such a system it has its own ways.
"""

import asyncio
import importlib
import os
import signal
import sys
import types

for part in ("connection", "context", "resource_tracker", "util", "popen_spawn_posix", "spawn"):
    importlib.import_module(f"multiprocessing.{part}")
importlib.import_module("subprocess")


def without(module: types.ModuleType, *names: str) -> types.ModuleType:
    """A copy of a module, without some of its names."""
    copy = types.ModuleType(module.__name__)
    kept = {name: value for name, value in vars(module).items() if name not in names}
    vars(copy).update(kept)
    return copy


POSIX = [name for name in vars(signal) if name.startswith("SIG")]
THERE = {"SIG_DFL", "SIG_IGN", "SIGINT", "SIGTERM", "SIGABRT", "SIGFPE", "SIGILL", "SIGSEGV"}
hidden = [*sorted({*POSIX} - THERE), "pthread_sigmask", "alarm", "setitimer", "siginterrupt"]
sys.modules["signal"] = without(signal, *hidden)
sys.modules["os"] = without(
    os, "setpgid", "killpg", "getpgrp", "setsid", "sched_getaffinity", "fork", "sysconf", "getuid"
)
for name in ("fcntl", "resource", "pwd", "grp", "termios", "ctypes", "_ctypes"):
    sys.modules[name] = None  # type: ignore[assignment] # its import fails then

import tenure  # noqa: E402 # from here on it looks like that system


def work(payload: int) -> int:
    assert not hasattr(sys.modules["signal"], "SIGKILL")
    return payload + 1


def spin(payload: None) -> None:
    while True:
        pass


def die(payload: None) -> None:
    sys.modules["os"]._exit(3)


async def main() -> None:
    async with tenure.connect("memory://") as queue:
        worker = tenure.Worker(queue, process_pool=tenure.ProcessPool(size=1))
        for handler in (work, spin, die):
            worker.register(handler.__name__, handler, executor="process")
        async with worker.run():
            for name in ("work", "spin", "die"):
                job = await queue.dispatch(name, 41, timeout=0.3 if name == "spin" else None)
                try:
                    sys.stdout.write(f"{await job.result(timeout=30.0)}\n")
                except tenure.JobFailed as error:
                    sys.stdout.write(f"{error.failure.kind}\n")
            sys.stdout.write(f"{await (await queue.dispatch('work', 1)).result(timeout=30.0)}\n")


if __name__ == "__main__":
    asyncio.run(main())
