"""A test of one's own consumer; pytest finds the fixture `cirrusmq` by itself."""

from __future__ import annotations

from cirrusmq_client import DeadLetter, Message, Received, Retry
from cirrusmq_local.testing import Service


def handle(message: Received) -> Retry | DeadLetter | None:
    if message.text == "refused":
        return DeadLetter("no such dish")
    return Retry(after=60) if message.receive_count == 1 else None


def test_an_order_is_tried_again_after_a_minute(cirrusmq: Service) -> None:
    cirrusmq.client.create_queue("orders")
    cirrusmq.client.send("orders", [Message("soup"), Message("refused")])
    assert len(cirrusmq.consume("orders", handle)) == 2
    assert cirrusmq.consume("orders", handle) == []
    cirrusmq.pass_seconds(60)
    assert [message.text for message in cirrusmq.consume("orders", handle)] == ["soup"]
    assert cirrusmq.client.show_queue("orders")["counts"]["active"] == 0
    assert [each.text for each in cirrusmq.client.receive("dlq-orders")] == ["refused"]
