"""The program: its commands, and how each run of it ends. Does no command's work."""

import logging
import os
import platform
import sys
from collections.abc import Sequence

import click

from tenure.cli.asked import Asked, shared
from tenure.cli.bench import bench
from tenure.cli.check import check
from tenure.cli.complaints import complain
from tenure.cli.completion import completion
from tenure.cli.demo import demo
from tenure.cli.dev import dev
from tenure.cli.doctor import doctor
from tenure.cli.enqueue import enqueue
from tenure.cli.exits import Exit
from tenure.cli.families import Family
from tenure.cli.health import health
from tenure.cli.jobs import jobs
from tenure.cli.limits import limits
from tenure.cli.moving import export, import_
from tenure.cli.prune import prune
from tenure.cli.queues import queues
from tenure.cli.schedules import schedules
from tenure.cli.schema import schema
from tenure.cli.stats import stats
from tenure.cli.top import top
from tenure.cli.worker import worker
from tenure.cli.workers import workers
from tenure.version import VERSION

__all__ = ["main", "program"]


@click.group(
    "tenure",
    cls=Family,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(
    VERSION, message=f"tenure %(version)s (Python {platform.python_version()})", prog_name="tenure"
)
@shared
def program() -> None:
    """Durable background jobs: run workers, and look after the jobs of a store."""


for _command in (
    *(bench, check, completion, demo, dev, doctor, enqueue, export, health, import_, jobs, limits),
    *(prune, queues, schedules, schema, stats, top, worker, workers),
):
    program.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code. The arguments are those of the process by default."""
    asked = Asked()
    logging.getLogger("tenure").setLevel(logging.ERROR)
    # What its callbacks find when a call was cancelled under them, as by Ctrl-C, is no news.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    try:
        ended = program.main(
            None if arguments is None else list(arguments),
            prog_name="tenure",
            standalone_mode=False,
            obj=asked,
        )
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone, as `head` does: that is no error, and no second one at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except (Exception, KeyboardInterrupt) as error:
        return complain(error, asked)
    return ended if isinstance(ended, int) else Exit.DONE
