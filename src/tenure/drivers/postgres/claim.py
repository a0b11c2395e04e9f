"""The operation that takes due jobs, in the order of claims (I11)."""

from datetime import datetime

from tenure.drivers.postgres.heads import Heads
from tenure.drivers.postgres.pool import Runner
from tenure.drivers.postgres.rows import read_claims
from tenure.types import Claim, ClaimRequest

__all__ = ["arguments", "claim"]


async def claim(
    runner: Runner, request: ClaimRequest, now: datetime | None, heads: Heads
) -> list[Claim]:
    """See `Driver.claim`.

    A repeated request that finds holds of its token takes no new jobs: it may, and what the first
    call took is then never mixed with what is taken now.
    """
    if request.again:
        held = await _held(runner, request)
        if held:
            return held
    if request.limit <= 0:
        return []
    with heads.claiming(request, whole=now is not None) as look:
        rows = await runner.fetch("claim", *arguments(request), now, *look.arguments)
    claims = read_claims(rows, request.token, [queue.name for queue in request.queues])
    heads.learn(look, request, rows, claims)
    return claims


def arguments(request: ClaimRequest) -> tuple[object, ...]:
    """What the statement takes, but for now and where to begin."""
    return (
        [queue.name for queue in request.queues],
        [queue.limit for queue in request.queues],
        request.limit,
        request.token,
        request.worker,
        request.lease,
        request.max_bytes,
    )


async def _held(runner: Runner, request: ClaimRequest) -> list[Claim]:
    """What the token holds already, within the limits of the request."""
    room = {queue.name: queue.limit for queue in request.queues}
    rows = await runner.fetch("held", request.token)
    claims: list[Claim] = []
    size = 0
    for claimed in read_claims(rows, request.token, list(room)):
        if room.get(claimed.job.queue, 0) <= 0:
            continue
        size += len(claimed.job.payload)
        if len(claims) >= request.limit or (claims and size > request.max_bytes):
            break
        room[claimed.job.queue] -= 1
        claims.append(claimed)
    return claims
