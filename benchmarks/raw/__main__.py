"""A process that measures one raw limit, and prints it.

python -m benchmarks.raw '{"kind": "sqlite", "url": "jobs.db", "durability": "FULL", ...}'
"""

import json
import sys


def main(kind: str, url: str, durability: str, jobs: int, batch: int) -> float:
    match kind:
        case "sqlite":
            from benchmarks.raw import sqlite

            return sqlite.settle_all(url, durability, jobs, batch)
        case "redis":
            from benchmarks.raw import redis

            return redis.settle_all(url, jobs, batch)
        case "postgres":
            from benchmarks.raw import postgres

            return postgres.settle_all(url, jobs, batch)
        case _:
            raise ValueError(f"no raw limit of {kind!r}")


if __name__ == "__main__":
    print(main(**json.loads(sys.argv[1])))
