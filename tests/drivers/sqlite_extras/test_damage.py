"""Records that were changed by other hands: each harms only itself, and can be looked at (I12)."""

import sqlite3
from pathlib import Path

import pytest

from tenure.outcomes import Completed
from tenure.types import JobFilter, Recorded
from tests.drivers.sqlite_extras.support import claim, jobs, opened

DAMAGES = {
    "headers": "headers = '{broken'",
    "error": "error = '[]'",
    "unique_key": "unique_key = '{broken'",
    "limits": "limits = '7'",
    "attempt": "attempt = -5",
    "serial": "serial = 9223372036854775807",
    "stalls": "stalls = 9223372036854775807",
    "created_at": "created_at = 9223372036854775807",
    "updated_at": "run_at = -9223372036854775807",
    "name": "name = CAST(x'ff00fe' AS TEXT)",
}


@pytest.mark.parametrize("field", DAMAGES)
async def test_a_damaged_record_is_claimed_with_its_damage(tmp_path: Path, field: str) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.enqueue(jobs(3))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute(f"UPDATE tenure_jobs SET {DAMAGES[field]} WHERE id = 'job-1'")
        other.close()
        assert await driver.get("job-1") is not None
        assert len((await driver.list(JobFilter(), None, 10)).jobs) == 3
        claims = await claim(driver)
        damaged = {claimed.job.id: claimed.damage for claimed in claims}
        assert set(damaged) == {"job-0", "job-1", "job-2"}
        assert damaged["job-0"] is damaged["job-2"] is None
        assert (damaged["job-1"] is None) == (field == "name")  # readable, with a mark in it
        answers = await driver.record([(claimed.hold, Completed()) for claimed in claims])
        assert answers == [Recorded.APPLIED] * 3
