"""Checks of I10: payload, result, headers and texts come back as they were given.

A driver never looks inside the bytes, so half of them here are not JSON at all.
"""

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed, Failed
from tenure.testing.conformance.builders import (
    T0,
    claim,
    claim_one,
    enqueue,
    failure,
    ids,
    new_job,
    record,
    started,
    stored,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import JobFilter

BYTES = (
    b"",
    b"null",
    b"{}",
    b"[]",
    b'""',
    b' { "b" : 1.0, "a":1e2,"a": 1 }\r\n',
    b'"\\u0000 \\ud83d\\ude00"',
    '"\u2028\u00e9\u0065\u0301\ufeff\U0001f600\u202e"'.encode(),
    b"12345678901234567890.123456789012345678901234567890",
    b"\x00",
    b"NULL",
    b"'; --",
    bytes(range(256)),
    b"\xff\xfe\xc3\x28 not UTF-8",
)
TEXTS = (
    "\u043a\u043b\u044e\u0447",
    "e\u0301 and \u00e9",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\u202eright to left",
    "\ufeffmark",
    "\u2028",
    "a:b/c{d}*?[e]%_'\"\\`;--",
    " spaces ",
    "NULL",
    "\u00ff" * 128,
    "\U0001f600" * 64,
    "x" * 256,
)


@check("I10")
async def a_payload_comes_back_byte_for_byte(store: Driver) -> None:
    await enqueue(store, *(new_job(f"job-{n}", payload=data) for n, data in enumerate(BYTES)))
    got = [claimed.job.payload for claimed in await claim(store)]
    expect(got, list(BYTES), "the payloads")


@check("I10")
async def a_payload_of_a_megabyte_comes_back_byte_for_byte(store: Driver) -> None:
    large = bytes(range(256)) * 4096
    await enqueue(store, new_job("a", payload=large))
    claimed = await claim_one(store)
    expect(len(claimed.job.payload), len(large), "the length of the payload")
    expect(claimed.job.payload == large, True, "whether the payload is the same")


@check("I10", [Capability.INSPECT])
async def a_result_comes_back_byte_for_byte(store: Driver) -> None:
    results = [None, *BYTES, b"x" * 1024 * 1024]
    for number, result in enumerate(results):
        claimed = await started(store, f"job-{number}", payload=b"in")
        await record(store, claimed.hold, Completed(result))
        job = await stored(store, f"job-{number}")
        expect(job.result, result, "the result")
        expect(job.payload, b"in", "the payload beside it")


@check("I10", [Capability.PROGRESS, Capability.INSPECT])
async def progress_comes_back_byte_for_byte(store: Driver) -> None:
    claimed = await started(store, "a")
    for value in BYTES:
        await store.progress(claimed.hold, value, now=T0)
        expect((await stored(store, "a")).progress, value, "the progress")


@check("I10")
async def headers_come_back_as_they_were_given(store: Driver) -> None:
    every: dict[str, str] = dict(zip(TEXTS, reversed(TEXTS), strict=True))
    for number, headers in enumerate([{}, {"a": ""}, every, {"n": "1", "true": "true"}]):
        await enqueue(store, new_job(f"job-{number}", headers=headers))
        claimed = await claim_one(store)
        expect(dict(claimed.job.headers), headers, "the headers")


@check("I10")
async def ids_names_and_queues_take_any_text(store: Driver) -> None:
    for text in TEXTS:
        given = new_job(text, name=text, queue=text)
        await enqueue(store, given)
        await enqueue(store, given)
        claimed = await claim_one(store, text)
        got = claimed.job.id, claimed.job.name, claimed.job.queue, claimed.hold.job_id
        expect(got, (text,) * 4, "id, name, queue and the hold's id")
        await record(store, claimed.hold, Completed())
    queues = set((await store.counts(now=T0)).by_queue)
    expect(set(TEXTS) - queues, set[str](), "the queues missing in the counts")


@check("I10", [Capability.INSPECT])
async def a_failure_comes_back_as_it_was_recorded(store: Driver) -> None:
    for number, text in enumerate(["", "line\nline\ttab\r\n", "'; --", *TEXTS, "x" * 20_000]):
        claimed = await started(store, f"job-{number}")
        given = failure(text, kind="panic")
        await record(store, claimed.hold, Failed(given))
        expect((await stored(store, f"job-{number}")).error, given, "the error")


@check("I10", [Capability.INSPECT])
async def a_list_shows_the_same_content_as_a_claim(store: Driver) -> None:
    jobs = [
        new_job(f"job-{n}", payload=data, headers={"n": str(n)}) for n, data in enumerate(BYTES)
    ]
    await enqueue(store, *jobs)
    page = await store.list(JobFilter(), None, 100)
    shown = {job.id: (job.payload, dict(job.headers)) for job in page.jobs}
    for job in jobs:
        expect(shown.get(job.id), (job.payload, dict(job.headers)), f"the listed {job.id}")


@check("I10", [Capability.CONTROL, Capability.INSPECT])
async def control_verbs_find_a_job_by_any_id(store: Driver) -> None:
    await enqueue(store, *(new_job(text) for text in TEXTS))
    for text in TEXTS:
        expect((await stored(store, text)).id, text, "the id")
    answers = {str(answer) for answer in await store.cancel(list(TEXTS), now=T0)}
    expect(answers, {"done"}, "the answers of cancel")
    answers = {str(answer) for answer in await store.delete(list(TEXTS), now=T0)}
    expect(answers, {"done"}, "the answers of delete")
    expect(ids(await claim(store)), [], "the claim")
