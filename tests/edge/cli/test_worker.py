"""`tenure worker APP` and `tenure check APP` as processes: jobs, signals, exit codes."""

import json
import signal
import sys
from pathlib import Path

import pytest

from tests.edge.cli.programs import Start, entered, state, wait_for
from tests.edge.cli.running import Ran, call, lines, run


def gate(url: str, folder: Path) -> str:
    return waits("shop.gate", folder / "go", url)


def waits(name: str, path: Path, url: str) -> str:
    return call("enqueue", name, json.dumps({"path": str(path)}), url=url).out.strip()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_jobs_run_on_each_store_until_a_signal_ends_it_with_0(
    each_url: str, start: Start, loop: str
) -> None:
    if loop == "uvloop" and sys.platform == "win32":
        pytest.skip("uvloop is not for Windows")
    program = start("shop:app", "--loop", loop, on=each_url)
    sent = call("enqueue", "shop.send", '{"to": "a"}', "--queue", "mail", url=each_url).out.strip()
    wait_for(each_url, sent, "completed")
    program.says("worker process 1")
    program.send(signal.SIGTERM)
    assert program.wait() == 0, program.stderr
    assert "Traceback" not in program.stderr


def test_the_first_signal_drains_and_says_what_the_next_one_does(
    url: str, folder: Path, start: Start
) -> None:
    """W25."""
    job = gate(url, folder)
    program = start("shop:app")
    entered(folder / "go")
    program.send(signal.SIGINT, "the next signal puts them back")
    (folder / "go").touch()
    assert program.wait() == 0
    assert state(url, job) == "completed"


def test_8_the_second_signal_hands_jobs_back(url: str, folder: Path, start: Start) -> None:
    """W23, W25: also of a thread that nothing can interrupt; no attempt is spent."""
    job = gate(url, folder)
    program = start("shop:app", "--processes", "2", "--log-format", "json")
    entered(folder / "go")
    program.send(signal.SIGTERM, "the next signal puts them back")
    program.send(signal.SIGTERM, "the next signal kills the processes")
    assert program.wait() == 8
    shown = call("jobs", "show", job, "--json", url=url).json["job"]
    assert (shown["state"], shown["attempt"]) == ("pending", 0), program.stderr
    logged = [json.loads(line) for line in program.stderr.splitlines()]
    assert all(set(line) >= {"at", "level", "logger", "message"} for line in logged)


def test_8_two_signals_that_are_heard_at_once(url: str, folder: Path, start: Start) -> None:
    """A loop that was held up hears of both together; it must still hand back, and leave."""
    job = gate(url, folder)
    program = start("shop:app")
    entered(folder / "go")
    waits("shop.hold_up", folder / "on", url)
    entered(folder / "on")
    program.send(signal.SIGTERM, "the next signal puts them back")
    program.send(signal.SIGTERM, "the next signal kills the processes")
    (folder / "on").touch()
    assert program.wait() == 8
    shown = call("jobs", "show", job, "--json", url=url).json["job"]
    assert (shown["state"], shown["attempt"]) == ("pending", 0), program.stderr


def test_8_jobs_that_outlast_the_drain_time_are_handed_back(
    url: str, folder: Path, start: Start
) -> None:
    job = gate(url, folder)
    program = start("shop:app", "--drain-timeout", "0.2s")
    entered(folder / "go")
    program.send(signal.SIGTERM)
    assert program.wait() == 8
    assert state(url, job) == "pending"


def test_130_the_third_signal_kills(url: str, folder: Path, start: Start) -> None:
    gate(url, folder)
    program = start("shop:app")
    entered(folder / "go")
    program.send(signal.SIGTERM, "the next signal puts them back")
    program.send(signal.SIGTERM, "the next signal kills the processes")
    program.send(signal.SIGTERM)
    # It may be gone by then: whatever thread is left ends with its process.
    assert program.wait() in (130, 8)


def test_sigusr1_stops_claiming_and_lets_the_rest_go_on(
    url: str, folder: Path, start: Start
) -> None:
    running = gate(url, folder)
    program = start("shop:app")
    entered(folder / "go")
    program.send(signal.SIGUSR1, "no job is started any more")
    waiting = call("enqueue", "shop.send", '{"to": "a"}', "--queue", "mail", url=url).out.strip()
    (folder / "go").touch()
    wait_for(url, running, "completed")
    assert state(url, waiting) == "pending"
    program.send(signal.SIGTERM)
    assert program.wait() == 0
    assert state(url, waiting) == "pending"


def test_sigusr2_shows_what_runs(url: str, folder: Path, start: Start) -> None:
    job = gate(url, folder)
    program = start("shop:app")
    entered(folder / "go")
    program.send(signal.SIGUSR2, "in gate")
    assert "tasks" in program.stderr
    (folder / "go").touch()
    wait_for(url, job, "completed")
    program.send(signal.SIGTERM)
    assert program.wait() == 0


def test_a_process_is_replaced_after_so_many_jobs(url: str, start: Start) -> None:
    program = start("shop:app", "--max-jobs", "2")
    for replaced in (1, 2):
        for _ in range(2):
            call("enqueue", "shop.send", '{"to": "a"}', "--queue", "mail", url=url)
        program.says("takes its place now", replaced)
    assert call("stats", "--json", url=url).json["counts"]["completed"] == 4
    program.send(signal.SIGTERM)
    assert program.wait() == 0
    assert "takes its place in" not in program.stderr, "to end in order is no quick death"


def test_a_process_is_replaced_when_it_has_grown(url: str, start: Start) -> None:
    call("enqueue", "shop.send", '{"to": "a"}', "--queue", "mail", url=url)
    program = start("shop:app", "--max-memory", "1M")
    program.says("grown to")
    program.says("takes its place now")
    program.send(signal.SIGTERM)
    assert program.wait() == 0


def test_a_process_whose_replacement_slots_are_used_up_is_replaced(
    url: str, folder: Path, start: Start
) -> None:
    """W12: threads that nothing can interrupt are left behind with their process, once each."""
    program = start("shop:app", "--log-format", "json", env={"REPLACEMENTS": "1"})
    payload = json.dumps({"path": str(folder / "never")})
    stuck = call("enqueue", "shop.gate", payload, "--timeout", "0.2", url=url).out.strip()
    program.says("takes its place")
    logged = [json.loads(line) for line in program.stderr.splitlines()]
    [why] = [line["message"] for line in logged if "is replaced" in line["message"]]
    assert why == (
        "the process has 1 handler past the time limit that nothing can interrupt, "
        "and no replacement slot left, and is replaced"
    )
    shown = call("jobs", "show", stuck, "--json", url=url).json["job"]
    assert (shown["state"], shown["error"]["kind"]) == ("failed", "timeout")
    sent = call("enqueue", "shop.send", '{"to": "a"}', "--queue", "mail", url=url).out.strip()
    wait_for(url, sent, "completed")
    program.send(signal.SIGTERM)
    assert program.wait() == 0


def test_a_process_whose_slots_are_all_stuck_is_replaced(
    url: str, folder: Path, start: Start
) -> None:
    """Without replacement slots: as long as one slot is left, it works on."""
    program = start("shop:app", "--drain-timeout", "0.2s")
    payload = json.dumps({"path": str(folder / "never")})
    call("enqueue", "shop.gate", payload, "--timeout", "0.2", url=url)
    program.says("JobOverdue")
    sent = call("enqueue", "shop.send", '{"to": "a"}', "--queue", "mail", url=url).out.strip()
    wait_for(url, sent, "completed")
    assert "is replaced" not in program.stderr
    call("enqueue", "shop.gate", payload, "--timeout", "0.2", url=url)
    program.says("and no slot left, and is replaced")
    program.says("takes its place")


def test_other_queues_than_the_apps_are_served(url: str, start: Start) -> None:
    mail = call("enqueue", "shop.send", '{"to": "a"}', "--queue", "mail", url=url).out.strip()
    rush = call("enqueue", "shop.send", '{"to": "a"}', "--queue", "rush", url=url).out.strip()
    program = start("shop:app", "--queues", "rush,other")
    wait_for(url, rush, "completed")
    program.send(signal.SIGTERM)
    assert program.wait() == 0
    assert state(url, mail) == "pending"


WRONG = [
    ("shop:wroker", "shop has no 'wroker'", "app, bare, broken, later, leaving, queue, wrong_kind"),
    ("shop:apps", "did you mean 'app'?", "it has"),
    ("shop:number", "must be a Worker", "another attribute"),
    ("shop:wrong_kind", "must be a Worker", "another attribute"),
    ("shop:broken", "raised LookupError: no such thing", "tenure check"),
    ("shop:leaving", "raised SystemExit: 3", "tenure check"),
    ("shpo:app", "there is no module 'shpo'", "the folder that has it"),
    ("needy:app", "needy imports 'nowhere_at_all', which is not installed", "install"),
    ("shop", "must be module:attribute", "shop.jobs:worker"),
]


def checked(folder: Path, url: str, *arguments: str) -> Ran:
    return run("check", *arguments, url=url, cwd=folder)


@pytest.mark.parametrize(("app", "cause", "remedy"), WRONG)
def test_4_an_app_that_cannot_be_had(
    folder: Path, url: str, app: str, cause: str, remedy: str
) -> None:
    (folder / "needy.py").write_text("import nowhere_at_all\n", encoding="utf-8")
    ran = checked(folder, url, app)
    assert ran.code == 4
    told = lines(ran)
    assert cause in told[0]
    assert remedy in told[1]
    assert not (folder / "jobs.db").exists()


def test_4_a_worker_program_whose_app_cannot_be_had(url: str, start: Start) -> None:
    program = start("shop:wroker")
    assert program.wait() == 4
    cause, hint = program.stderr.splitlines()[-2:]
    assert cause.startswith("error: ")
    assert "shop has no 'wroker'" in cause
    assert "`tenure check shop:wroker`" in hint


@pytest.mark.parametrize("app", ["shop:app", "shop:queue", "shop:later"])
def test_check_shows_what_would_run(folder: Path, url: str, app: str) -> None:
    ran = checked(folder, url, app, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["queues"] == ["default", "mail"]
    names = ["shop.gate", "shop.hold_up", "shop.send"]
    assert [handler["name"] for handler in ran.json["handlers"]] == names
    assert [handler["max_attempts"] for handler in ran.json["handlers"]] == [None, None, 3]
    assert ran.json["warnings"] == []


def test_check_warns_of_an_app_without_handlers(folder: Path, url: str) -> None:
    ran = checked(folder, url, "shop:bare")
    assert ran.code == 0
    assert "warning: the app has no handler" in ran.err


@pytest.mark.parametrize("command", ["worker", "check"])
def test_2_the_store_is_the_apps(folder: Path, url: str, command: str) -> None:
    """An option that would change nothing is refused."""
    ran = run(command, "shop:app", "--url", url, url=url, cwd=folder)
    assert ran.code == 2
    assert "the app names its store" in lines(ran)[0]
