"""A program that runs its worker processes again and again, each time ended at another instant.

Option `pauses`: for each run, how many seconds after it handles signals it is asked to end.
"""

import os
import signal
import sys
import threading
import time

import tenure
from tests.lifecycle.belongings import belongings, wait_for_nothing
from tests.process.programs.setting import Setting


def app() -> tenure.Worker:
    setting = Setting()
    del setting.options["pauses"]
    setting.ledger.write("born")
    return setting.worker(tenure.connect(setting.url))


def ask_to_end(before: object, pause: float) -> None:
    while signal.getsignal(signal.SIGTERM) is before:
        time.sleep(0.001)
    time.sleep(pause)
    os.kill(os.getpid(), signal.SIGTERM)


def run(setting: Setting, pause: float) -> None:
    before = signal.getsignal(signal.SIGTERM)
    asking = threading.Thread(target=ask_to_end, args=(before, pause))
    asking.start()
    status = tenure.run_processes(app, 2)
    asking.join()
    setting.ledger.write("ended", status=status.name)


if __name__ == "__main__":
    setting = Setting()
    setting.ready()
    first, *pauses = setting.options["pauses"]
    run(setting, first)  # what the first of them makes for all
    before = belongings()
    for pause in pauses:
        run(setting, pause)
        wait_for_nothing(before)
    sys.exit(0)
