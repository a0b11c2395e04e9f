"""The sync twin of a queue: the same verbs, which block their thread and return plain values.

For scripts and programs without an event loop of their own. It adds nothing to what a queue does.
"""

from tenure.sync.job_handle import SyncJobHandle
from tenure.sync.queue import SyncQueue

__all__ = ["SyncJobHandle", "SyncQueue"]
