"""Disturbs a store under load by a plan, and has every job checked.

    python -m chaos [--store sqlite|redis|postgres] [--minutes 1] [--seed 1] [--report FILE]

Exits with 1 when the checker finds a violation, and lists them. What this machine cannot do is
named and left out.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import tenure
from chaos.checker import check
from chaos.clocks import clocks_of
from chaos.disk import small_disk
from chaos.hand import Hand, Scene
from chaos.plan import PRODUCERS, WORKERS, kinds, plan
from chaos.reading import read_all
from chaos.report import markdown, numbers, text
from chaos.stores import STORES, running_server, settable

PLACES = WORKERS + PRODUCERS + 1  # one more for who meddles


class Options(argparse.Namespace):
    """The command line."""

    store: str
    minutes: float
    seed: int
    report: Path | None
    ledgers: Path | None

    @property
    def title(self) -> str:
        return f"{self.store}, {self.minutes:g} min, seed {self.seed}"


async def perform(chosen: Options, folder: Path, scene: Scene) -> list[str]:
    """Run, and what went wrong; the numbers are printed."""
    seconds = 60 * chosen.minutes
    possible, skipped = within_reach(scene)
    for reason in skipped:
        print(f"SKIPPED: {reason}", flush=True)
    async with Hand(folder, scene, seconds) as hand:
        await hand.disturb(plan(chosen.seed, seconds, possible))
        rested = time.monotonic()
        async with tenure.connect(hand.url) as queue:
            await hand.finish(queue)
            settled = time.monotonic() - rested
            jobs = await read_all(queue)
    entries = hand.entries()
    violations = check(entries, jobs)
    found = {**numbers(entries, jobs, violations), "all had ended after": f"{settled:.1f} s"}
    print(text(found))
    if chosen.report is not None:
        chosen.report.write_text(markdown(chosen.title, found, skipped), "utf-8")
    return hand.problems + [f"{v.kind}: {v.job_id} {v.text}" for v in violations]


def within_reach(scene: Scene) -> tuple[tuple[str, ...], list[str]]:
    """The kinds of steps of which this machine is capable, and what it is not, with the remedy."""
    skipped: list[str] = []
    if scene.disk is None:
        skipped.append("a full disk, since no tmpfs could be mounted (root can)")
    if scene.clocks is None:
        skipped.append("clocks that are set, since there is no libfaketime (package faketime)")
    elif not scene.settable:
        skipped.append("the clock of the server, since no Redis here starts with libfaketime")
    possible = kinds(
        server=scene.server is not None,
        disk=scene.disk is not None,
        clocks=scene.clocks is not None,
        settable=scene.settable,
    )
    return possible, skipped


@contextmanager
def scene_of(chosen: Options) -> Generator[Scene]:
    """The store and what may befall it, of our own, all ended afterwards."""
    with ExitStack() as stack:
        place, disk = stack.enter_context(small_disk(256 + int(300 * chosen.minutes)))
        if chosen.store == "sqlite":
            clocks = stack.enter_context(clocks_of(PLACES, shared=True))
            yield Scene(place, None, disk, clocks)
            return
        clocks = stack.enter_context(clocks_of(PLACES, shared=False))
        environment: Mapping[str, str] = {} if clocks is None else clocks.of_store()
        able = settable(chosen.store, environment)
        server = running_server(chosen.store, place, environment if able else {})
        yield Scene(place, stack.enter_context(server), disk, clocks, able)


@contextmanager
def folder_of(chosen: Options) -> Generator[Path]:
    """Where the ledgers are written: a place of their own, or one that is gone afterwards."""
    if chosen.ledgers is not None:
        chosen.ledgers.mkdir(parents=True)
        yield chosen.ledgers
        return
    with tempfile.TemporaryDirectory(prefix="tenure-chaos-") as name:
        yield Path(name)


def options() -> Options:
    parser = argparse.ArgumentParser(description="Disturb a store under load, and check each job.")
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, help="a file for the numbers, as Markdown")
    parser.add_argument("--ledgers", type=Path, help="a new folder, where the ledgers stay")
    chosen = parser.parse_args(namespace=Options())
    if chosen.ledgers is not None and chosen.ledgers.exists():
        parser.error(f"--ledgers: {chosen.ledgers} is there already; name a new folder")
    return chosen


def main() -> int:
    chosen = options()
    print(chosen.title, flush=True)
    with folder_of(chosen) as folder, scene_of(chosen) as scene:
        problems = asyncio.run(perform(chosen, folder, scene))
    for problem in problems[:50]:
        print(f"wrong: {problem}", file=sys.stderr)
    if len(problems) > 50:
        print(f"and {len(problems) - 50} more", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
