"""The PostgreSQL driver: jobs in a schema of a database that is there already."""

from tenure.drivers.postgres.driver import PostgresDriver

__all__ = ["PostgresDriver"]
