"""A52: a worker inside a web application took over its signals, and it no longer stopped.

The kind of fault: a library that takes what is the program's. Here it touches no signal at all.
(Real interrupts in every kind of host: tests/process/test_hosts.py.)

https://github.com/python-arq/arq/issues/182
"""

import asyncio
import signal
import threading

from tests.process.stage import Stage
from tests.regressions.sites import LEASE, Opening, Site
from tests.regressions.standing import standing_checks, standing_checks_of_stage

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


def test_the_hosts_own_handler_is_called_and_stays(each_stage: Stage) -> None:
    """W25: SIGTERM goes to the host, which ends its worker itself."""
    stage = each_stage
    host = stage.start("own_signals", lease=LEASE, drain_timeout=2.0)
    ids = stage.dispatch("quick", range(5))
    stage.wait_completed(len(ids))
    host.send(signal.SIGTERM)
    assert host.wait() == 0, host.stderr
    assert stage.ledger.read("terminated")[0]["number"] == signal.SIGTERM
    assert stage.ledger.read("kept")[0]["kept"]
    standing_checks_of_stage(stage, ids)


async def test_no_handler_of_a_signal_is_another_while_a_worker_runs(open_site: Opening) -> None:
    """W25: nor after it."""
    async with open_site() as site:
        before = [signal.getsignal(number) for number in SIGNALS]
        watched = site.worker()
        async with watched.running():
            assert [signal.getsignal(number) for number in SIGNALS] == before
            await standing_checks(site, watched, ids=[])
        assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_worker_starts_in_a_thread_that_may_take_no_signals(open_site: Opening) -> None:
    """Python lets only the main thread set handlers; as on a loop that has no support for them."""
    failures: list[BaseException] = []

    async def run(site: Site) -> None:
        watched = site.worker()
        async with watched.running():
            await standing_checks(site, watched, ids=[])

    async def main() -> None:
        async with open_site() as site:
            await run(site)

    def host() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # told by the test's own thread
            failures.append(error)
            raise

    thread = threading.Thread(target=host)
    thread.start()
    thread.join(60.0)
    assert not thread.is_alive()
    assert failures == []
