"""Measures tenure and its peers; prints tables and judges nothing.

    make bench STORE=redis PEERS=arq,saq ARGS="--only drain --jobs 20000 --json out.json"

Exits with 1 when a store and the handlers disagreed, and when tenure itself could not be measured.
How to read the tables is in the README beside this file.
"""

import json
import sys

from benchmarks.conditions import conditions, told
from benchmarks.figures import OURS, Figures
from benchmarks.options import Options, options
from benchmarks.suite import Suite, Trouble


def report(chosen: Options, figures: Figures, suite: Suite) -> None:
    print(told(suite.versions))
    print(f"{chosen.rounds} rounds, at most {chosen.jobs:,} jobs; median (min-max)")
    print(*figures.markdown(), sep="\n")
    print("\n| who | version | set |\n|---|---|---|")
    for who, version in suite.contestants.items():
        print(f"| {who} | {version} | {suite.settings[who]} |")
    for trouble in suite.troubles:
        print(f"\nNot measured: {trouble.who} on {trouble.store}: {trouble.what}")


def as_json(chosen: Options, figures: Figures, suite: Suite) -> dict[str, object]:
    return {
        "conditions": conditions(suite.versions),
        "contestants": suite.contestants,
        "settings": suite.settings,
        "jobs": chosen.jobs,
        "rounds": chosen.rounds,
        "samples": chosen.samples,
        "figures": [row.as_json() for row in figures.rows()],
        "troubles": [vars(trouble) for trouble in suite.troubles],
    }


def is_wrong(trouble: Trouble) -> bool:
    return trouble.wrong or trouble.who == OURS


def main() -> int:
    chosen = options()
    figures = Figures()
    suite = Suite(chosen, figures)
    suite.run()
    report(chosen, figures, suite)
    if chosen.json:
        text = json.dumps(as_json(chosen, figures, suite), indent=2)
        chosen.json.write_text(text + "\n", encoding="utf-8")
    return int(any(is_wrong(trouble) for trouble in suite.troubles))


if __name__ == "__main__":
    sys.exit(main())
