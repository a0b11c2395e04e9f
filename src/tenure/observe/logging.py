"""Which job a log record comes from. For a program that configures its own logging.

    handler = logging.StreamHandler()
    handler.addFilter(JobContext())

Nothing is installed by itself. It looks at a record and at the job that runs where it was made, and
never at a payload.
"""

import logging

from tenure._runtime.current import CURRENT

__all__ = ["JobContext"]


class JobContext(logging.Filter):
    """Gives each record that is made inside of a handler the job that runs there; drops none.

    Add it to a `logging.Handler`, so that it sees the records of all loggers. It sets `job_id`,
    `job_name`, `queue` and `attempt` where the record has none of its own, as those of the logger
    tenure.job have: also in a plain function, which runs in a thread, in what a handler calls or
    starts, and in a process of the pool that sets up its logging in the same way. A record that is
    made elsewhere is left as it is; `logging.Formatter(..., defaults=...)` says what is shown then.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True."""
        running = CURRENT.get(None)
        if running is None:
            return True
        job = running()
        about = {"job_id": job.id, "job_name": job.name, "queue": job.queue, "attempt": job.attempt}
        for name, value in about.items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True
