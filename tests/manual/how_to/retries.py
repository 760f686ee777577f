"""A handler that says how long the next retry waits."""

from __future__ import annotations

import httpx

from cirrusmq_client import DeadLetter, Received, Retry

bank = httpx.Client(timeout=10)


def handle(message: Received) -> Retry | DeadLetter | None:
    answer = bank.post("https://bank.example/payments", content=message.data)
    if answer.status_code == 429:
        return Retry(after=int(answer.headers.get("retry-after", 30)))
    if answer.status_code == 422:
        return DeadLetter("the bank refuses it")  # no retry would help
    answer.raise_for_status()  # an exception: the queue's retry policy
    return None
