"""A record that makes no sense harms only itself (I12)."""

import pytest

from tests.drivers.postgres_extras.support import claim, fresh, jobs, opened
from tests.servers.postgres import PostgresServer

DAMAGE = "UPDATE {schema}.jobs SET {change} WHERE id = 'job-1'"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("created_at", "'20000-01-01'"),
        ("created_at", "'infinity'"),
        ("run_at", "'-infinity'"),
        ("finished_at", "'infinity'"),
        ("headers", "'{'"),
        ("error", "'[]'"),
        ("attempt", "-5"),
        ("stalls", "-1"),
    ],
)
async def test_a_value_that_cannot_be_read_is_shown_as_damage_of_its_own_job(
    postgres_server: PostgresServer, column: str, value: str
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await driver.enqueue(jobs(3))
        postgres_server.ask(DAMAGE.format(schema=schema, change=f"{column} = {value}"))
        claims = {each.job.id: each for each in await claim(driver)}
        assert [claims[f"job-{n}"].damage is None for n in range(3)] == [True, False, True]
        assert column in (claims["job-1"].damage or "")
        assert await driver.get("job-1") is not None
