"""The shop's jobs, tested in milliseconds: retries, a time limit, a night. Nothing sleeps."""

import asyncio

import pytest
import shop

import tenure
from tenure.testing import Bench


class Unreliable(shop.MailServer):
    """Cannot be reached for some times."""

    refusals = 0

    def send(self, to: str, text: str) -> None:
        if self.refusals > 0:
            self.refusals -= 1
            raise ConnectionError("the mail server does not answer")
        super().send(to, text)


@pytest.fixture
def tenure_tasks() -> list[tenure.Tasks]:
    """The bench of these tests runs the shop's tasks."""
    return [shop.tasks]


@pytest.fixture
def mails(tenure_bench: Bench) -> Unreliable:
    server = Unreliable()
    tenure_bench.override(shop.mail_server, lambda: server)
    return server


def test_an_order_is_charged_and_the_customer_is_told(
    tenure_bench: Bench, mails: Unreliable
) -> None:
    shop.place_order("ada@example.com", card="1234", cents=500)
    tenure_bench.assert_dispatched(shop.charge, args={"cents": 500}, queue="default", count=1)
    tenure_bench.assert_dispatched(shop.send_mail, count=0)

    tenure_bench.sync.drain()
    tenure_bench.assert_dispatched(shop.send_mail, args={"to": "ada@example.com"}, queue="mail")
    assert mails.sent == [("ada@example.com", "Thank you: 1234 paid 500")]


def test_a_mail_is_tried_again_until_the_server_answers(
    tenure_bench: Bench, mails: Unreliable
) -> None:
    mails.refusals = 2
    first = tenure_bench.sync.process(shop.send_mail, "ada@example.com", "Hello")
    assert isinstance(first.outcome, tenure.Retried)
    assert first.failure is not None
    assert first.failure.message == "ConnectionError: the mail server does not answer"
    assert mails.sent == []

    [job] = tenure_bench.sync.drain(with_scheduled=True)
    assert (job.state, job.attempt) == ("completed", 3)
    assert mails.sent == [("ada@example.com", "Hello")]


def test_a_mail_is_given_up_after_five_attempts(tenure_bench: Bench, mails: Unreliable) -> None:
    mails.refusals = 100
    shop.send_mail.enqueue_sync("ada@example.com", "Hello")
    [job] = tenure_bench.sync.drain(with_scheduled=True)
    assert (job.state, job.attempt) == ("failed", 5)
    assert mails.refusals == 95


def test_a_bank_that_does_not_answer_is_left_after_thirty_seconds(
    tenure_bench: Bench, mails: Unreliable
) -> None:
    class SilentBank(shop.Bank):
        async def charge(self, card: str, cents: int) -> str:
            await asyncio.Event().wait()
            return "never"

    tenure_bench.override(shop.the_bank, SilentBank)
    began = tenure_bench.now
    charged = tenure_bench.sync.time_out(shop.charge, "ada@example.com", "1234", cents=500)
    assert charged.failure is not None
    assert charged.failure.kind == "timeout"
    assert (tenure_bench.now - began).total_seconds() == 30
    tenure_bench.assert_dispatched(shop.send_mail, count=0)


def test_the_owner_has_a_report_each_night(tenure_bench: Bench, mails: Unreliable) -> None:
    shop.open_shop(tenure_bench.queue)
    tenure_bench.sync.advance(3 * 24 * 3600)  # from midnight on
    assert [text for _, text in mails.sent] == [
        "The report of 2030-01-01",
        "The report of 2030-01-02",
        "The report of 2030-01-03",
    ]
