"""What the statements are called with: jobs like those of a drain, claims and outcomes in batches.

The raw limit of a store is what the driver's own statements reach back to back, in batches as large
as the concurrency of a drain, with no queue, worker or handler around them.
"""

from collections.abc import Sequence
from secrets import token_hex

import msgspec

import tenure
from benchmarks.protocol.client import PAYLOAD
from tenure.driver import RecordItem

__all__ = ["completed", "new_jobs", "request"]


def new_jobs(count: int, *, name: str = "nothing", **fields: object) -> list[tenure.NewJob]:
    payload = msgspec.json.encode(PAYLOAD)
    plain = tenure.NewJob(id="", name=name, payload=payload)
    return [msgspec.structs.replace(plain, id=token_hex(12), **fields) for _ in range(count)]


def request(limit: int, *, lease: float = 60.0) -> tenure.ClaimRequest:
    return tenure.ClaimRequest(
        token=token_hex(8),
        queues=(tenure.QueueLimit("default", limit),),
        limit=limit,
        worker="bench",
        lease=lease,
    )


def completed(claims: Sequence[tenure.Claim]) -> list[RecordItem]:
    return [(claim.hold, tenure.Completed()) for claim in claims]
