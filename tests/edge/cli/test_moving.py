"""`tenure export` and `tenure import`: a store becomes a file, and a file a store."""

import asyncio
import json
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import pytest

import tenure
from tenure.outcomes import Completed
from tenure.types import Hold, Recorded
from tests.edge.cli.filled import after_a_move, fill, see
from tests.edge.cli.running import Ran, call, lines, run

T = TypeVar("T")

PAIRS = [("sqlite", "postgres"), ("postgres", "redis"), ("redis", "sqlite"), ("sqlite", "sqlite")]


def on(url: str, use: Callable[[tenure.Queue], Awaitable[T]]) -> T:
    async def main() -> T:
        async with tenure.connect(url) as queue:
            return await use(queue)

    return asyncio.run(main())


def _address(request: pytest.FixtureRequest, kind: str, folder: Path) -> str:
    own = f"move_{uuid4().hex}"
    match kind:
        case "redis":
            return f"{request.getfixturevalue('redis_server').url}?namespace={own}"
        case "postgres":
            return f"{request.getfixturevalue('postgres_server').url}?schema={own}"
        case _:
            return f"sqlite:///{folder / own}.db?synchronous=NORMAL"


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_store_is_moved_to_another_with_nothing_lost(
    source: str, target: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Compared by what the ordinary calls show on both sides."""
    old, new = _address(request, source, tmp_path), _address(request, target, tmp_path)
    on(old, fill)
    before = on(old, see)
    assert {job.state.value for job in before.jobs} == {s.value for s in tenure.State} - {"blocked"}
    file = str(tmp_path / "all.ndjson")
    exported = call("export", file, url=old)
    assert (exported.code, exported.out) == (0, "")
    number = len(before.jobs)
    assert f"{number} jobs, 2 schedules, 2 limits exported" in exported.err
    assert "2 jobs processing" in exported.err
    imported = call("import", file, url=new)
    assert (imported.code, imported.out) == (0, "")
    assert f"{number} jobs stored; 2 schedules, 2 limits" in imported.err

    right, found = after_a_move(before), on(new, see)
    assert found.jobs == right.jobs
    assert found.histories == right.histories
    assert found.limits == right.limits
    assert found.schedules == right.schedules
    assert found.paused == right.paused == {"slow"}

    on(new, _keys_are_held)
    on(new, _the_old_worker_is_fenced)
    again = call("import", file, "--json", url=new)
    assert (again.code, again.err) == (0, "")
    assert (again.json["stored"], again.json["known"]) == (0, number)
    assert again.json["schedules"] == again.json["limits"] == {"stored": 0, "known": 2}
    assert on(new, see).jobs == found.jobs


async def _keys_are_held(queue: tenure.Queue) -> None:
    """By a job that waits, by one that was running, and by the mark of a throttle."""
    for key, holder in (("only one", "scheduled"), ("running", "running"), ("rate", "throttled")):
        handle = await queue.dispatch("work", unique=key)
        assert (handle.id, handle.created) == (holder, False)


async def _the_old_worker_is_fenced(queue: tenure.Queue) -> None:
    driver = await queue.driver()
    late = Hold("running", 1, "token of running")
    assert list(await driver.record([(late, Completed())])) == [Recorded.FENCED]


def test_an_export_goes_through_a_pipe_on_each_store(each_url: str, tmp_path: Path) -> None:
    on(each_url, fill)
    exported = call("export", "--json", url=each_url)
    assert exported.code == 0
    told = json.loads(exported.err)
    documents = [json.loads(line) for line in exported.out.splitlines()]
    jobs = [each for each in documents if each["type"] == "job"]
    assert documents[0]["type"] == "header"
    assert documents[0]["store"] == each_url.partition(":")[0]
    assert documents[-1] | {"digest": ""} == {
        **{"type": "end", "jobs": len(jobs), "schedules": 2, "limits": 2, "paused": 1},
        "digest": "",
    }
    assert told["jobs"] == len(jobs)
    assert told["states"]["processing"] == 2
    assert (told["file"], told["damaged"], told["unwritten"]) == (None, [], [])
    empty = f"sqlite:///{tmp_path / 'other.db'}"
    imported = call("import", "-", "--json", url=empty, stdin=exported.out)
    assert (imported.code, imported.json["stored"]) == (0, len(jobs))
    assert on(empty, see).histories == on(each_url, see).histories


def test_an_empty_store_is_exported_and_imported(url: str, tmp_path: Path) -> None:
    on(url, lambda queue: queue.counts())
    file = str(tmp_path / "none")
    assert call("export", file, url=url).code == 0
    ran = call("import", file, url=f"sqlite:///{tmp_path / 'other.db'}")
    assert (ran.code, ran.err) == (0, "0 jobs stored; 0 schedules, 0 limits\n")


# --- the file -----------------------------------------------------------------------------------


def test_a_file_is_for_its_owner_and_appears_when_it_is_whole(url: str, tmp_path: Path) -> None:
    on(url, fill)
    file = tmp_path / "all.ndjson"
    file.write_text("an earlier export")
    assert call("export", str(file), url=url).code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().count("\n") > 10
    before = file.read_bytes()
    gone = call("export", str(file), url="redis://127.0.0.1:1/0")
    assert gone.code == 3
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir() if ".part" in each.name] == []


def test_a_file_that_cannot_be_written_or_read_is_told(url: str, tmp_path: Path) -> None:
    on(url, fill)
    for command in ("export", "import"):
        ran = call(command, str(tmp_path / "no" / "such"), url=url)
        cause, _ = lines(ran)
        assert ran.code == 2
        assert "No such file or directory" in cause
    assert list(tmp_path.glob(".*")) == []


def test_an_export_goes_to_what_is_no_file(url: str) -> None:
    on(url, fill)
    ran = call("export", "/dev/null", "--json", url=url)
    assert (ran.code, ran.json["file"]) == (0, "/dev/null")
    assert not os.path.isfile("/dev/null")


# --- what is refused ----------------------------------------------------------------------------


def _exported(url: str) -> str:
    on(url, fill)
    return call("export", url=url).out


def _refused(text: str, url: str) -> tuple[str, Ran]:
    ran = call("import", "-", url=url, stdin=text)
    cause, remedy = lines(ran)
    assert ran.code == 1
    assert "nothing was stored" in remedy
    assert on(url, lambda queue: queue.counts()) == tenure.Counts()
    return cause, ran


def test_a_damaged_file_is_refused_with_line_and_path(url: str, tmp_path: Path) -> None:
    text = _exported(url)
    empty = f"sqlite:///{tmp_path / 'empty.db'}"
    number = text.count("\n")
    job = next(n for n, line in enumerate(text.splitlines(), 1) if '"id":"waits"' in line)
    for changed, place in (
        (text.replace('"priority":7', '"priority":700'), f"line {job}, $.priority: "),
        (text.replace('"priority":7', '"priority":8'), f"line {number}, $.digest: "),
        (text.replace('"priority":7', '"urgency":7'), f"line {job}, $: "),
        (text.replace('"timeout":1.5', '"timeout":-1'), f"line {job}, $.timeout: "),
        (text.replace('"format":1', '"format":2'), "line 1, $.format: is 2"),
        (text.partition("\n")[2], "line 1, $: is no header"),
        (text[: text.index('{"type":"end"')], f"line {number}, $: is missing: the file was cut"),
        (text[: text.index('"priority":7')], f"line {job}, $: is no JSON"),
        (text + text, f"line {number + 1}, $: stands after the end"),
        ("", "line 1, $: is missing"),
        ("\n", "line 1, $: is no header"),
        ("[1]\n", "line 1, $: is no header"),
    ):
        assert changed != text
        cause, _ = _refused(changed, empty)
        assert place in cause, cause


def test_a_file_without_its_digest_may_be_edited(url: str, tmp_path: Path) -> None:
    first, *rest, end = _exported(url).splitlines()
    kept = [line for line in rest if '"id":"waits"' in line]
    last = {"type": "end", "jobs": len(kept), "schedules": 0, "limits": 0, "paused": 0}
    edited = [first, kept[0].replace('"priority":7', '"priority":8'), json.dumps(last), ""]
    empty = f"sqlite:///{tmp_path / 'empty.db'}"
    ran = call("import", "-", url=empty, stdin="\n".join(edited))
    assert ran.code == 0, ran.err
    assert on(empty, lambda queue: queue.get("waits")).priority == 8
    assert "digest" in end


def test_a_dry_run_checks_the_file_and_stores_nothing(url: str, tmp_path: Path) -> None:
    text = _exported(url)
    path = tmp_path / "empty.db"
    ran = call("import", "-", "--dry-run", "--json", url=f"sqlite:///{path}", stdin=text)
    assert (ran.code, ran.json["dry_run"], ran.json["schedules"]) == (0, True, 2)
    assert ran.json["jobs"] == sum(ran.json["states"].values()) == text.count('"type":"job"')
    assert not path.exists()
    assert run("import", "-", "--dry-run", stdin=text[:-30]).code == 1


def test_another_job_under_the_same_id_is_named(url: str, tmp_path: Path) -> None:
    text = _exported(url)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    on(other, lambda queue: queue.dispatch("work", "another", id="waits"))
    ran = call("import", "-", url=other, stdin=text)
    cause, remedy = lines(ran)
    assert ran.code == 1
    assert "the job 'waits' is in the store with other content; nothing is stored" in cause
    assert "import again" in remedy
    assert [job.id for job in on(other, see).jobs] == ["waits"]
    on(other, lambda queue: queue.delete("waits"))
    on(other, lambda queue: queue.dispatch("work", unique="only one", id="holder"))
    cause, _ = lines(call("import", "-", url=other, stdin=text.replace('"waits"', '"later"', 1)))
    assert "$.digest" in cause
    end = text.rindex(',"digest"')
    cause, _ = lines(
        call("import", "-", url=other, stdin=text[:end].replace('"waits"', '"later"', 1) + "}\n")
    )
    assert "the job 'scheduled' cannot hold the unique key 'only one'" in cause
    assert "which the job 'holder' holds" in cause


def test_other_limits_and_schedules_are_refused_before_anything_is_stored(
    url: str, tmp_path: Path
) -> None:
    text = _exported(url)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    on(other, lambda queue: queue.limit("api", concurrent=77))
    ran = call("import", "-", url=other, stdin=text)
    assert (ran.code, "limit 'api' is in the store with other bounds" in ran.err) == (1, True)
    on(other, lambda queue: queue.remove_limit("api"))
    on(other, lambda queue: queue.schedule("nightly", "@daily", "other"))
    ran = call("import", "-", url=other, stdin=text)
    assert (ran.code, "schedule 'nightly' is in the store with another" in ran.err) == (1, True)
    assert on(other, see).jobs == []


def test_an_unreachable_store_ends_with_three(url: str, tmp_path: Path) -> None:
    on(url, fill)
    file = str(tmp_path / "all")
    assert call("export", file, url=url).code == 0
    assert call("import", file, url="redis://127.0.0.1:1/0").code == 3


def test_the_program_itself_exports_and_imports(url: str, tmp_path: Path) -> None:
    """As users run it: processes, and bytes through real pipes."""
    on(url, fill)
    exported = run("export", url=url)
    assert (exported.code, "exported" in exported.err) == (0, True)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    imported = run("import", "-", url=other, stdin=exported.out)
    assert (imported.code, imported.out) == (0, ""), imported.err
    assert on(other, see).jobs == after_a_move(on(url, see)).jobs
