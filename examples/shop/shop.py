"""A small shop without an event loop: orders, mails to customers, a charge, a report each night.

The jobs are declared here as tasks, with their retries and time limits. Importing this opens
nothing: the program binds the tasks to its queue, and each test binds them to one of its own.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

import tenure
from tenure import INJECTED, Depends

__all__ = [
    "Bank",
    "MailServer",
    "charge",
    "mail_server",
    "open_shop",
    "place_order",
    "report",
    "send_mail",
    "tasks",
    "the_bank",
]

tasks = tenure.Tasks(prefix="shop.")


@dataclass
class MailServer:
    """Stands for the real one."""

    sent: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def send(self, to: str, text: str) -> None:
        self.sent.append((to, text))


class Bank:
    """Stands for the real one."""

    async def charge(self, card: str, cents: int) -> str:
        await asyncio.sleep(0)
        return f"{card} paid {cents}"


_mails, _bank = MailServer(), Bank()


def mail_server() -> MailServer:
    return _mails


def the_bank() -> Bank:
    return _bank


@tasks.task(queue="mail", retry=tenure.RetryPolicy(max_attempts=5, base=60, retry_on=(OSError,)))
def send_mail(
    to: str, text: str, server: Annotated[MailServer, Depends(mail_server)] = INJECTED
) -> None:
    """Try again for some minutes where the server cannot be reached."""
    server.send(to, text)


@tasks.task(timeout=30)
async def charge(
    customer: str, card: str, cents: int, bank: Annotated[Bank, Depends(the_bank)] = INJECTED
) -> str:
    """Charge once, and tell the customer."""
    receipt = await bank.charge(card, cents)
    await send_mail.enqueue(customer, f"Thank you: {receipt}")
    return receipt


@tasks.task
def report(job: tenure.RunningJob) -> None:
    """Tell the owner that the day is over."""
    send_mail.enqueue_sync("owner@example.com", f"The report of {job.headers['tick'][:10]}")


def open_shop(queue: tenure.Queue) -> None:
    """What the program does at its start."""
    queue.sync.schedule("report", "0 3 * * *", report.name, {})


def place_order(customer: str, card: str, cents: int) -> None:
    """What a web page would call."""
    charge.enqueue_sync(customer, card, cents)
