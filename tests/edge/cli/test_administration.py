"""Looking after the jobs of a store, on each store, with nothing but its URL."""

import asyncio
import json
import os
import platform
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import tenure
from tests.edge.cli.running import call, lines, run

T = TypeVar("T")


def on(url: str, use: Callable[[tenure.Queue], Awaitable[T]]) -> T:
    async def main() -> T:
        async with tenure.connect(url) as queue:
            return await use(queue)

    return asyncio.run(main())


async def _boom(payload: object) -> None:
    raise ValueError("no \x1b[31mluck")


async def _quick(payload: object) -> object:
    return payload


async def _run_all(queue: tenure.Queue) -> None:
    """Let a worker run what is due: `boom` fails, everything else completes."""
    worker = tenure.Worker(queue)
    worker.register("boom", _boom)
    worker.register("quick", _quick)
    async with worker.run() as handle:
        counts = await queue.counts()
        while counts.pending or counts.processing:
            await asyncio.sleep(0.02)
            counts = await queue.counts()
        while handle.try_next_error() is not None:
            pass


def test_a_job_is_dispatched_with_all_its_options(each_url: str) -> None:
    ran = call(
        *("enqueue", "mail", '{"to": "a@b", "n": [1, 2.5, null]}', "--queue", "slow"),
        *("--priority", "7", "--at", "2030-01-31T09:00+01:00", "--max-attempts", "4"),
        *("--timeout", "1m30s", "--unique", "key", "--limit", "api", "--limit", "customer:1"),
        *("--header", "tenant=x", "--header", "trace=a=b", "--id", "mine", "--json"),
        url=each_url,
    )
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == {"id": "mine", "created": True}
    job = on(each_url, lambda queue: queue.get("mine"))
    assert (job.name, job.payload) == ("mail", {"to": "a@b", "n": [1, 2.5, None]})
    assert (job.queue, job.priority, job.max_attempts, job.timeout) == ("slow", 7, 4, 90.0)
    assert job.run_at == datetime(2030, 1, 31, 8, tzinfo=UTC)
    assert job.unique is not None
    assert job.unique.key == "key"
    assert job.limits == ("api", "customer:1")
    assert dict(job.headers) == {"tenant": "x", "trace": "a=b"}
    again = call("enqueue", "other", "--unique", "key", url=each_url)
    assert (again.code, again.out) == (0, "mine\n")
    assert "holds the key" in again.err
    shown = call("jobs", "show", "mine", "--json", url=each_url).json
    assert shown["job"]["payload"] == job.payload
    assert shown["history"] == []
    text = call("jobs", "show", "mine", url=each_url).out
    assert '{"to":"a@b","n":[1,2.5,null]}' in text
    assert "2030-01-31 08:00:00.000Z" in text


def test_jobs_in_all_states_are_listed_retried_and_deleted(each_url: str) -> None:
    bad, good, late, gone = (
        call("enqueue", *arguments, url=each_url).out.strip()
        for arguments in (["boom"], ["quick", "1"], ["quick", "--delay", "1h"], ["quick"])
    )
    assert call("jobs", "cancel", gone, url=each_url).code == 0
    on(each_url, _run_all)
    listed = call("jobs", "list", "--json", url=each_url).json["jobs"]
    states = {job["id"]: job["state"] for job in listed}
    assert states == {bad: "failed", good: "completed", late: "pending", gone: "cancelled"}
    failed = call("jobs", "list", "--state", "failed", url=each_url)
    assert bad in failed.out
    assert good not in failed.out
    assert "\x1b" not in failed.out, "what a handler raised must not command the terminal"
    assert "\x1b" not in call("jobs", "show", bad, url=each_url).out
    counts = call("stats", "--json", url=each_url).json["counts"]
    assert (counts["failed"], counts["completed"], counts["scheduled"]) == (1, 1, 1)
    assert call("jobs", "retry", "--state", "failed", url=each_url).code == 0
    assert on(each_url, lambda queue: queue.get(bad)).state == "pending"
    refused = call("jobs", "retry", good, late, url=each_url)
    assert refused.code == 1
    assert f"{good} (finished), {late} (live)" in refused.err
    assert (
        call("jobs", "cancel", "--name", "quick", "--json", "--yes", url=each_url).json["done"] == 1
    )
    assert call("jobs", "delete", "--state", "completed", "-y", url=each_url).code == 0
    assert call("jobs", "delete", bad, gone, "--yes", url=each_url).code == 0
    left = call("jobs", "list", "--json", url=each_url).json["jobs"]
    assert [job["id"] for job in left] == [late]


def test_a_list_goes_on_where_it_ended(each_url: str) -> None:
    ids = [job.id for job in on(each_url, _five)]
    seen: list[str] = []
    cursor: list[str] = []
    while True:
        page = call("jobs", "list", "--limit", "2", "--json", *cursor, url=each_url).json
        seen += [job["id"] for job in page["jobs"]]
        if page["cursor"] is None:
            break
        cursor = ["--cursor", page["cursor"]]
    assert seen == ids[::-1]


async def _five(queue: tenure.Queue) -> list[tenure.JobHandle]:
    return [*await queue.dispatch_many([tenure.Call("quick", n) for n in range(5)])]


def test_queues_are_paused_resumed_and_purged(each_url: str) -> None:
    on(each_url, _five)
    ran = call("queues", "pause", "defualt", url=each_url)
    assert ran.code == 0
    assert "did you mean 'default'?" in ran.err
    assert call("queues", "resume", "defualt", url=each_url).code == 0
    assert call("queues", "pause", "default", url=each_url).code == 0
    (listed,) = (
        queue
        for queue in call("queues", "list", "--json", url=each_url).json
        if queue["name"] == "default"
    )
    assert (listed["paused"], listed["counts"]["pending"]) == (True, 5)
    asked = call("queues", "purge", "default", "--state", "pending", url=each_url)
    assert asked.code == 2, "nobody is there to be asked"
    assert "5 jobs of default (pending) will be deleted" in asked.err
    assert on(each_url, lambda queue: queue.counts()).pending == 5
    purged = call("queues", "purge", "default", "--state", "pending", "--yes", url=each_url)
    assert purged.code == 0
    assert on(each_url, lambda queue: queue.counts()).pending == 0


def test_schedules_are_listed_run_paused_and_resumed(each_url: str) -> None:
    async def put(queue: tenure.Queue) -> None:
        await queue.schedule("nightly", "0 3 * * *", "report", {"full": True}, zone="UTC")

    on(each_url, put)
    assert [s["id"] for s in call("schedules", "list", "--json", url=each_url).json] == ["nightly"]
    instants = call("schedules", "next", "nightly", "--count", "3", "--json", url=each_url).json
    assert [at["at"][11:19] for at in instants] == ["03:00:00"] * 3
    job_id = call("schedules", "run", "nightly", url=each_url).out.strip()
    assert on(each_url, lambda queue: queue.get(job_id)).payload == {"full": True}
    assert call("schedules", "pause", "nightly", url=each_url).code == 0
    assert call("schedules", "list", "--json", url=each_url).json[0]["paused"] is True
    assert call("schedules", "next", url=each_url).out == ""
    assert call("schedules", "resume", "nightly", url=each_url).code == 0
    assert call("schedules", "list", "--json", url=each_url).json[0]["paused"] is False


def test_workers_limits_and_pruning(each_url: str) -> None:
    call("schema", "migrate", url=each_url)
    assert call("limits", "set", "api", "--per-second", "10", url=each_url).code == 0
    assert call("limits", "list", "--json", url=each_url).json == [
        {"key": "api", "per_second": 10, "concurrent": None}
    ]
    assert call("limits", "remove", "api", url=each_url).code == 0

    async def look(queue: tenure.Queue) -> None:
        worker = tenure.Worker(queue, name="w")
        async with worker.run() as first, worker.run() as second:
            while len(await queue.workers()) < 2:  # noqa: ASYNC110  # the store has no event for it
                await asyncio.sleep(0.02)
            ran = await asyncio.to_thread(call, "workers", "list", "--json", url=each_url)
            assert {w["id"] for w in ran.json} == {first.worker_id, second.worker_id}
            here = {"name": "w", "host": socket.gethostname(), "pid": os.getpid()}
            here |= {"queues": ["default"], "concurrency": 16, "running": 0, "jobs": []}
            here |= {"version": tenure.__version__, "python": platform.python_version()}
            assert all(here.items() <= w.items() for w in ran.json)
            assert all({"started_at", "seen_at", "claimed_at"} <= w.keys() for w in ran.json)
            listed = await asyncio.to_thread(call, "workers", "list", url=each_url)
            assert "LAST CLAIM" in listed.out
            assert (await asyncio.to_thread(call, "health", url=each_url)).code == 0

    on(each_url, look)
    call("enqueue", "quick", url=each_url)
    on(each_url, _run_all)
    ran = call("prune", "--completed", "0", "--json", url=each_url)
    assert ran.code == 2
    pruned = call("prune", "--completed", "0", "--json", "--yes", url=each_url)
    assert pruned.json == {"deleted": 0}, "what ended within the last minute is kept"


def test_a_worker_is_listed_with_the_jobs_that_it_runs(each_url: str) -> None:
    now = datetime.now(UTC)
    info = tenure.WorkerInfo(
        id="w-1", name="w", host="h", pid=1, queues=("a", "b"), concurrency=4, running=2,
        started_at=now, seen_at=now, jobs=("job-1", "job-2"), version="1.2.3", python="3.11.0",
        claimed_at=now,
    )  # fmt: skip

    async def report(queue: tenure.Queue) -> None:
        await (await queue.driver()).report(info, 60.0)

    on(each_url, report)
    [shown] = call("workers", "list", "--json", url=each_url).json
    assert shown["jobs"] == ["job-1", "job-2"]
    assert datetime.fromisoformat(shown["claimed_at"]) == now
    heading, row = call("workers", "list", url=each_url).out.splitlines()
    columns = "ID NAME HOST PID QUEUES RUNNING JOBS LAST CLAIM SEEN VERSION PYTHON"
    assert " ".join(heading.split()) == columns
    assert "w-1  w     h     1    a,b     2/4      job-1 +1  " in row
    assert row.endswith("1.2.3    3.11.0")


def test_a_payload_comes_from_a_file_or_standard_input(url: str, tmp_path: Path) -> None:
    value = {"text": "\u00fc\u2028", "n": 12345678901234567890}
    piped = call("enqueue", "quick", "-", url=url, stdin=json.dumps(value)).out.strip()
    (tmp_path / "payload.json").write_text(json.dumps(value), encoding="utf-8")
    read = call("enqueue", "quick", f"@{tmp_path / 'payload.json'}", url=url).out.strip()
    none = call("enqueue", "quick", url=url).out.strip()
    assert on(url, lambda queue: queue.get(piped)).payload == value
    assert on(url, lambda queue: queue.get(read)).payload == value
    assert on(url, lambda queue: queue.get(none)).payload is None


def test_options_stand_before_or_after_the_command(url: str) -> None:
    run("--url", url, "enqueue", "quick")
    for arguments in (
        ["--url", url, "--json", "stats"],
        ["stats", "--url", url, "--json"],
        ["jobs", "--json", "list", "--url", url],
    ):
        ran = run(*arguments)
        assert ran.code == 0
        assert ran.json


def test_an_error_names_the_store_in_the_command_that_helps(url: str) -> None:
    call("schema", "migrate", url=url)
    ran = run("jobs", "show", "nobody", "--url", url)
    assert f"tenure jobs list --url '{url}'" in lines(ran)[1]


def test_the_versions_are_told() -> None:
    ran = run("--version")
    assert ran.code == 0
    assert ran.out.startswith(f"tenure {tenure.__version__} ")
