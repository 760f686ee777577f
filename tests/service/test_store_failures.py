"""When the store refuses or cannot be reached: 503, and the call is safe to repeat."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import TestQueue
from tests.service.crashes import BrokenStore

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.receipt import NONCE_BYTES
from cirrusmq.model.source import queue_source
from cirrusmq.queues.queues import get_queue
from cirrusmq.receiving.claim import Claim, claim
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.scan import scan_pages
from cirrusmq_local.testing import World


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("size", [1, 3_000])
def test_an_answer_lost_at_any_call_of_a_send_is_repaired_by_its_repeat(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch, applied: bool, size: int
) -> None:
    store = BrokenStore(world, monkeypatch)
    messages: list[dict[str, Any]] = [
        {"body": "a" * size},
        {"body": "b" * size, "delay_seconds": 1},
        {"body": "c", "deduplication_id": "k"},
    ]
    for calls in range(20):
        token = f"01M7Q5CQG0{calls:016d}"
        messages[2]["deduplication_id"] = f"{calls}"
        store.break_after(calls, applied=applied)
        first = queue.try_send(messages, attempt=token)
        store.mend()
        if store.failed:
            assert (first.status, first.code) == (503, "Unavailable")

        second = queue.try_send(messages, attempt=token)

        assert second.status == 201
        world.clock.pass_seconds(1)
        received = queue.receive_all()
        assert sorted(message["body"][0] for message in received) == ["a", "b", "c"]
        assert sorted(message["id"] for message in received) == sorted(
            sent["id"] for sent in second.json["messages"]
        )
        queue.delete(*received)
        if not store.failed:
            return
    raise AssertionError("20 calls were not enough for a send")


def test_a_store_that_cannot_be_reached_is_unavailable_everywhere(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.send("x")
    (held,) = queue.receive()
    store = BrokenStore(world, monkeypatch)
    store.break_after(0)
    before = [("POST", "/messages/delete"), ("POST", "/messages/give-back")]
    for method, path in before:
        body = {"receipts": [held["receipt"]]}
        reply = queue.client.call(method, queue.path + path, body)
        assert (reply.status, reply.code) == (503, "Unavailable")
    assert queue.client.get(queue.path).status == 503
    store.mend()

    queue.delete(held)


def test_a_claim_repeated_on_an_old_reading_is_told_how_long_it_holds(
    world: World, queue: TestQueue
) -> None:
    """A repeated receive may read what was before its first try, and meet its own nonce."""
    queue.send("x")
    source = queue_source(get_queue(world.core, "alice", "orders"), world.clock.now_ms())
    (parcel,) = [
        parcel
        for partition in range(source.partitions)
        for page in scan_pages(world.core, partition_key(PARCELS, source.id, partition))
        for parcel in page.parcels
    ]

    def repeat() -> Claim | Parcel | None:
        return claim(world.core, source, parcel, [0], 5, lambda *_: b"n" * NONCE_BYTES)

    first = repeat()
    assert isinstance(first, Claim)
    world.clock.pass_seconds(4)
    second = repeat()
    assert isinstance(second, Claim)
    assert second.parcel.visible_ms == first.parcel.visible_ms
    world.clock.pass_seconds(2)
    assert isinstance(repeat(), Parcel)
