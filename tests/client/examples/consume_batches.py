"""Consume in batches: up to 100 messages, or what there is after 2 seconds."""

from __future__ import annotations

from cirrusmq_client import Batches, Consumer, Received


def handle(messages: list[Received]) -> None:
    print(len(messages), sum(len(message.data) for message in messages), flush=True)


Consumer("orders", handle, batches=Batches(max_batch=100, max_await=2)).run()
