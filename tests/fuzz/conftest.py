"""How far to search: the same few examples each time, or TENURE_FUZZ_EXAMPLES new ones."""

import os

from hypothesis import HealthCheck, settings

from tests.servers.postgres import postgres_server
from tests.servers.redis import redis_server

__all__ = ["postgres_server", "redis_server"]

_wanted = os.environ.get("TENURE_FUZZ_EXAMPLES")
settings.register_profile(
    "fuzz",
    deadline=None,
    derandomize=_wanted is None,
    max_examples=int(_wanted or 60),
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fuzz")
