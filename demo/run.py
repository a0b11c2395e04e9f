"""The tour of `tenure demo`, also on servers, which are started for it and end with it.

    make demo                    or, where tenure is installed: tenure demo
    make demo STORE=redis        or STORE=postgres

Exits with 1 when a job that was dispatched is not accounted for, or ended otherwise than it should.
"""

import argparse
import signal
import sys

import servers

from tenure.cli.tour.screen import Screen
from tenure.cli.tour.tour import taken


def chosen_store() -> str:
    parser = argparse.ArgumentParser(description="A short tour of tenure.")
    parser.add_argument("--store", choices=servers.STORES, default="sqlite")
    chosen: str = parser.parse_args().store
    return chosen


def main() -> int:
    name = chosen_store()
    # So that a demo that is told to stop ends its server, too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        with servers.running(name) as store:
            account = taken(Screen(sys.stdout), store.url, store.description)
    except servers.NoServer as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if account.problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
