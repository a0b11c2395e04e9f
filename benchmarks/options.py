"""The command line of the suite."""

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks.contestants import contestants
from benchmarks.stores import STORES, Store, named

__all__ = ["MEASURES", "Options", "options"]

MEASURES = (
    "drain",
    "raw",
    "dispatch",
    "pickup",
    "latency",
    "idle",
    "imports",
    "recovery",
    "cores",
    "steady",
    "costs",
)
_RARE = ("recovery", "cores", "steady", "costs")  # minutes: only by name


class Options(argparse.Namespace):
    """The command line."""

    store: list[Store]
    peers: list[str]
    only: list[str]
    jobs: int
    concurrency: list[int]
    processes: list[int]
    rounds: int
    samples: int
    load: float
    idle: float
    steady: float
    crowd: int
    patience: float
    folder: str | None
    environments: Path
    json: Path | None

    @property
    def slots(self) -> int:
        """The concurrency where only one is measured: the middle one."""
        return sorted(self.concurrency)[len(self.concurrency) // 2]


def options(arguments: list[str] | None = None) -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure tenure and its peers.", allow_abbrev=False
    )
    add = parser.add_argument
    names = [name for name in contestants() if name != "tenure"]
    add("--store", type=_checked(named, "a store"), default=named("all"),
        help=f"of {', '.join(STORES)}; sqlite, redis, all: the usual ones of these")  # fmt: skip
    add("--peers", type=_names("a peer", names, names), default=[],
        help=f"all, or of {', '.join(names)}")  # fmt: skip
    usual = [measure for measure in MEASURES if measure not in _RARE]
    add("--only", type=_names("a measure", MEASURES, usual), default=usual,
        help=f"of {', '.join(MEASURES)}; {', '.join(_RARE)} only when named here")  # fmt: skip
    add("--jobs", type=_count, default=20_000, help="jobs of each drain and bulk dispatch, at most")
    add("--concurrency", type=_counts, default=[16, 64, 256], help="slots, such as 16,64,256")
    add("--processes", type=_counts, default=[1, 2],
        help="worker processes; more than one only at the middle concurrency")  # fmt: skip
    add("--rounds", type=_count, default=3)
    add("--samples", type=_count, default=100, help="pick-ups in each round")
    add("--load", type=float, default=3.0, help="seconds of half load in each round")
    add("--idle", type=float, default=5.0, help="seconds of idleness in each round")
    add("--steady", type=float, default=120.0, help="seconds of `steady` in each round")
    add("--crowd", type=_count, default=1_000_000, help="jobs that `costs` puts beside the others")
    add("--patience", type=float, default=120.0, help="seconds that a measurement may take")
    add("--folder", help="where the store files go, for another disk (default: temporary)")
    add("--environments", type=Path, default=Path.home() / ".cache" / "tenure-bench",
        help="where the environments of peers are made and kept")  # fmt: skip
    add("--json", type=Path, metavar="FILE", help="write all rounds to this file as well")
    return parser.parse_args(arguments, namespace=Options())


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _counts(text: str) -> list[int]:
    return [_count(part) for part in text.split(",")]


def _names(
    what: str, known: "list[str] | tuple[str, ...]", everything: list[str]
) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        if text == "all":
            return everything
        for word in text.split(","):
            if word not in known:
                raise argparse.ArgumentTypeError(
                    f"{word!r} is not {what}: expected all, or of {', '.join(known)}"
                )
        return text.split(",")

    return parse


def _checked(parse: Callable[[str], list[Store]], what: str) -> Callable[[str], list[Store]]:
    def checked(text: str) -> list[Store]:
        try:
            return parse(text)
        except KeyError as error:
            raise argparse.ArgumentTypeError(f"{error} is not {what}") from None

    return checked
