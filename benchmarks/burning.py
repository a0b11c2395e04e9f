"""A worker program whose jobs burn CPU, in as many processes as it is told.

    python -m benchmarks.burning '{"store": "sqlite", "url": ..., ...}' 2

It is what `cores.py` measures, and runs until it is ended.
"""

import json
import sys
import time

import tenure
from benchmarks.peers.tenure import connect
from benchmarks.protocol.client import Setting
from benchmarks.protocol.ledger import Ledger

BURN = 0.002


def burn() -> None:
    """Use so much CPU time of this thread, whatever else the machine does."""
    end = time.thread_time() + BURN
    while time.thread_time() < end:
        pass


def app() -> tenure.Worker:
    setting = Setting(**json.loads(sys.argv[1]))
    ledger = Ledger(setting.ledger)
    worker = tenure.Worker(connect(setting), concurrency=setting.concurrency)

    @worker.handler("burn")
    async def handle(payload: object) -> None:
        ledger.began()
        burn()
        ledger.ended()

    return worker


if __name__ == "__main__":
    sys.exit(tenure.run_processes(app, int(sys.argv[2])))
