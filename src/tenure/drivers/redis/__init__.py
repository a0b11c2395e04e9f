"""The Redis store: jobs in one namespace of a Redis or Valkey server, shared by many machines."""

from tenure.drivers.redis.driver import RedisDriver

__all__ = ["RedisDriver"]
