"""When the store refuses or cannot be reached: 503, and the call is safe to repeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from tests.service.conftest import TestQueue
from tests.service.crashes import BrokenStore

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.receipt import NONCE_BYTES
from cirrusmq.model.source import queue_source
from cirrusmq.queues.queues import get_queue
from cirrusmq.receiving.claim import Claim, claim
from cirrusmq.runtime import store
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.queries import scan_pages
from cirrusmq_local.testing import World

if TYPE_CHECKING:
    from tests.service.conftest import MakeQueue


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("size", [1, 3_000])
def test_an_answer_lost_at_any_call_of_a_send_is_repaired_by_its_repeat(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch, applied: bool, size: int
) -> None:
    broken = BrokenStore(world, monkeypatch)
    messages: list[dict[str, Any]] = [
        {"body": "a" * size},
        {"body": "b" * size, "delay_seconds": 1},
        {"body": "c", "deduplication_id": "k"},
    ]
    for calls in range(20):
        token = f"01M7Q5CQG0{calls:016d}"
        messages[2]["deduplication_id"] = f"{calls}"
        broken.break_after(calls, applied=applied)
        first = queue.try_send(messages, attempt=token)
        broken.mend()
        if broken.failed:
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
        if not broken.failed:
            return
    raise AssertionError("20 calls were not enough for a send")


def test_an_unreachable_store_is_unavailable_everywhere(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.send("x")
    (held,) = queue.receive()
    broken = BrokenStore(world, monkeypatch)
    broken.break_after(0)
    before = [("POST", "/messages/delete"), ("POST", "/messages/give-back")]
    for method, path in before:
        body = {"receipts": [held["receipt"]]}
        reply = queue.client.call(method, queue.path + path, body)
        assert (reply.status, reply.code) == (503, "Unavailable")
        assert reply.headers["Retry-After"] == "1"
    assert queue.client.get(queue.path).status == 503
    broken.mend()

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

    def repeat() -> Claim | Parcel | Unavailable | None:
        return claim(world.core, source, parcel, [0], 5, lambda *_: b"n" * NONCE_BYTES)

    first = repeat()
    assert isinstance(first, Claim)
    world.clock.pass_seconds(4)
    second = repeat()
    assert isinstance(second, Claim)
    assert second.parcel.visible_ms == first.parcel.visible_ms
    world.clock.pass_seconds(2)
    assert isinstance(repeat(), Parcel)


class _SentTwice:
    """The next write to a parcel reaches the store twice, as from the SDK after a lost answer.

    `applied`: whether the first one took effect; else it was lost on its way.
    """

    def __init__(self, world: World, patch: pytest.MonkeyPatch, *, applied: bool) -> None:
        self.writes = 0
        execute = world.engine.execute

        def twice(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            settles = operation in ("DeleteItem", "UpdateItem")
            if settles and request["Key"]["pk"]["S"].startswith("Q#"):
                self.writes += 1
                if applied and self.writes == 1:
                    execute(operation, request)
            return execute(operation, request)

        patch.setattr(world.engine, "execute", twice)
        patch.setattr(store, "_repeated", lambda error: True)


@pytest.mark.parametrize("messages", ["a", "ab"])
def test_a_delete_with_an_answer_lost_in_the_sdk_is_answered_while_its_lease_lasts(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch, messages: str
) -> None:
    queue.send(*messages)
    held = queue.receive(visibility_timeout_seconds=10)
    sent = _SentTwice(world, monkeypatch, applied=True)

    queue.delete(*held)

    assert sent.writes
    world.clock.pass_seconds(60)
    assert queue.receive_all() == []


@pytest.mark.parametrize("sent", [1, 2, 3])
def test_a_delete_repeated_by_the_sdk_is_refused_if_the_message_had_moved_away(
    world: World,
    make_queue: MakeQueue,
    monkeypatch: pytest.MonkeyPatch,
    sent: int,
) -> None:
    """Its lease had ended, it became a dead letter, and the empty parcel was removed."""
    dead = make_queue("dead")
    queue = make_queue(
        partitions=1, dead_letter={"queue": "dead", "max_receives": 1}, visibility_timeout_seconds=5
    )
    queue.send(*"abc"[:sent])
    held = queue.receive()
    assert len(held) == sent
    world.clock.pass_seconds(300)
    queue.receive()
    world.settle()  # which moves them, and removes the parcel
    sent_twice = _SentTwice(world, monkeypatch, applied=False)

    answer = queue.act("delete", *held)

    assert sent_twice.writes
    assert [each["code"] for each in answer["failed"]] == ["ReceiptExpired"] * sent
    assert len(dead.receive_all()) == sent
