"""Every check there is, by subject. Their names are unique."""

from tenure.testing.conformance import (
    admitting,
    claiming,
    content,
    controlling,
    counting,
    dumping,
    enqueueing,
    exchanging,
    extending,
    fencing,
    histories,
    holding,
    inspecting,
    leftovers,
    limiting,
    moving_keys,
    moving_schedules,
    ordering,
    pacing,
    pruning,
    reclaiming,
    recording,
    recovering,
    refusing,
    repeating,
    restoring,
    retrying,
    scheduling,
    uniqueness,
    waiting,
)
from tenure.testing.conformance.check import Check

__all__ = ["CHECKS"]

CHECKS: tuple[Check, ...] = tuple(
    value
    for subject in (
        enqueueing,
        claiming,
        ordering,
        recording,
        fencing,
        extending,
        reclaiming,
        recovering,
        exchanging,
        repeating,
        controlling,
        retrying,
        inspecting,
        counting,
        waiting,
        pruning,
        content,
        uniqueness,
        holding,
        refusing,
        histories,
        scheduling,
        limiting,
        pacing,
        admitting,
        leftovers,
        dumping,
        restoring,
        moving_schedules,
        moving_keys,
    )
    for value in vars(subject).values()
    if isinstance(value, Check)
)
