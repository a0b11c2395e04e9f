"""The built-in observer: one line for each outcome and each error, to the `tenure.*` loggers.

Always on, configures nothing, never logs a payload. Outcomes are INFO, starts and claims DEBUG,
errors WARNING, so that a program without any logging set up sees just the errors on stderr.
"""

import logging
from typing import assert_never

from tenure.events import (
    ErrorReported,
    Event,
    JobClaimed,
    JobFenced,
    JobSettled,
    JobsReclaimed,
    JobStarted,
    LeaseEnded,
    ScheduleFired,
    TicksSkipped,
)
from tenure.outcomes import Retried, Snoozed

__all__ = ["log_event", "logs_jobs"]

_jobs = logging.getLogger("tenure.job")
_worker = logging.getLogger("tenure.worker")


def logs_jobs() -> bool:
    """Whether a line about a single job would go anywhere."""
    return _jobs.isEnabledFor(logging.INFO)


def log_event(event: Event) -> None:
    match event:
        case JobSettled(job=job, attempt=attempt, outcome=outcome, seconds=seconds):
            if _jobs.isEnabledFor(logging.INFO):
                extra = _about(job.id, job.name, job.queue, attempt)
                extra |= {"outcome": type(outcome).__name__.lower(), "seconds": round(seconds, 6)}
                if isinstance(outcome, Retried | Snoozed):
                    extra["delay"] = outcome.delay
                _jobs.info("job %s %s: %s", job.id, job.name, extra["outcome"], extra=extra)
        case JobClaimed(job=job):
            _jobs.debug("job claimed", extra=_about(job.id, job.name, job.queue, job.attempt))
        case JobStarted(job=job, attempt=attempt):
            _jobs.debug("job started", extra=_about(job.id, job.name, job.queue, attempt))
        case JobFenced(job=job, operation=operation):
            _jobs.debug(
                "write fenced",
                extra=_about(job.id, job.name, job.queue, job.attempt) | {"operation": operation},
            )
        case LeaseEnded(job=job):
            _jobs.debug("lease lost", extra=_about(job.id, job.name, job.queue, job.attempt))
        case JobsReclaimed(job_ids=job_ids):
            _worker.info("reclaimed %d jobs whose lease had run out", len(job_ids))
        case ScheduleFired(schedule_id=schedule_id, job_id=job_id):
            _worker.debug("schedule fired", extra={"schedule": schedule_id, "job_id": job_id})
        case TicksSkipped(schedule_id=schedule_id, skipped=skipped, capped=capped):
            _worker.warning(
                "schedule %s: %s%d missed ticks were skipped",
                schedule_id,
                "at least " if capped else "",
                skipped,
                extra={"schedule": schedule_id, "skipped": skipped},
            )
        case ErrorReported(error=error, dropped=dropped):
            _worker.warning(
                "%s: %s%s",
                type(error).__name__,
                error,
                " (dropped: nobody reads the errors of this worker)" if dropped else "",
                extra={"error": type(error).__name__, "dropped": dropped},
            )
        case _:
            assert_never(event)


def _about(job_id: str, name: str, queue: str, attempt: int) -> dict[str, object]:
    return {"job_id": job_id, "job_name": name, "queue": queue, "attempt": attempt}
