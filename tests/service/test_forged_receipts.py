"""Thousands of receipts that were tampered with: none of them does anything."""

from __future__ import annotations

import base64
import random
from typing import Any

import msgspec
import pytest
from tests.service.conftest import MakeQueue, TestQueue

from cirrusmq_local.testing import Client, World

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
TAMPERED = 2_400


def repack(text: str, change: dict[int, Any]) -> str:
    """The receipt with fields changed: an attacker knows the encoding."""
    fields = msgspec.msgpack.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    for place, value in change.items():
        fields[place] = value
    packed: bytes = msgspec.msgpack.encode(fields)
    return str(base64.urlsafe_b64encode(packed), "ascii").rstrip("=")


def tamper(text: str, chance: random.Random) -> str:
    """Another text than `text`, close to it."""
    place = chance.randrange(len(text))
    match chance.randrange(8):
        case 0:
            return text[:place] or "x"
        case 1:
            return text[:place] + chance.choice(ALPHABET) + text[place + 1 :]
        case 2:
            return text + chance.choice(ALPHABET + "= \0é")
        case 3:
            return text[:place] + chance.choice(ALPHABET + "=+/ \n") + text[place:]
        case 4:
            odd = (text.swapcase(), text[::-1], f" {text}", f"{text}==", text * 20)
            return chance.choice(odd)
        case 5:
            return base64.urlsafe_b64encode(chance.randbytes(chance.randrange(1, 90))).decode()
        case 6:
            return repack(text, {chance.randrange(7): chance.choice(STRANGE)})
        case _:
            return repack(text, {6: chance.randbytes(16)})


STRANGE: list[Any] = [
    None, True, -1, 0, 1, 2, 15, 16, 17, 255, 256, 2**53, 2**63, 2**64 - 1, 1.5, float("nan"),
    "", "x", "~", "\0", "é" * 400, "k" * 1_100, "k" * 1_024, b"", bytes(16), bytes(1_000), [], {},
]  # fmt: skip


@pytest.fixture
def held(make_queue: MakeQueue) -> tuple[TestQueue, list[str]]:
    """A queue with held messages, alone and together, small and large, and their receipts."""
    make_queue("dead")
    queue = make_queue("orders", dead_letter={"queue": "dead", "max_receives": 9})
    queue.send("a")
    queue.send("b", "c", "d" * 2_000)
    messages = queue.receive_all(visibility_timeout_seconds=43_200)
    return queue, [message["receipt"] for message in messages]


@pytest.mark.parametrize("verb", ["delete", "give-back", "dead-letter", "visibility"])
def test_a_tampered_receipt_changes_nothing_and_learns_nothing(
    world: World, held: tuple[TestQueue, list[str]], verb: str
) -> None:
    queue, receipts = held
    chance = random.Random(verb)
    before = [world.items(table) for table in ("directory", "messages", "usage")]
    for _ in range(TAMPERED // 4 // 16):
        forged = {tamper(chance.choice(receipts), chance)[:2_048] for _ in range(16)}
        forged -= set(receipts)
        texts = sorted(forged)
        body: dict[str, Any] = {"receipts": texts}
        if verb == "visibility":
            body = {
                "entries": [{"receipt": each, "visibility_timeout_seconds": 5} for each in texts]
            }
        reply = queue.client.post(f"{queue.path}/messages/{verb}", body)
        assert reply.status == 200, (reply.text, texts)
        assert [entry["receipt"] for entry in reply.json["failed"]] == texts
        assert {(entry["code"], entry["detail"]) for entry in reply.json["failed"]} == {
            (
                "ReceiptExpired",
                "The receipt is not the message's newest, or the message is gone.",
            )
        }
    assert [world.items(table) for table in ("directory", "messages", "usage")] == before
    assert queue.client.post(f"{queue.path}/messages/delete", {"receipts": receipts}).json == {
        "deleted": receipts,
        "failed": [],
    }


def test_a_forged_receipt_does_not_hinder_the_good_ones(
    held: tuple[TestQueue, list[str]],
) -> None:
    queue, receipts = held
    forged = [repack(receipts[0], {2: "k" * 1_100}), repack(receipts[0], {2: ""}), "rubbish"]

    reply = queue.client.post(f"{queue.path}/messages/delete", {"receipts": [*forged, *receipts]})

    assert reply.json["deleted"] == receipts
    assert [entry["receipt"] for entry in reply.json["failed"]] == forged


def test_a_receipt_works_for_its_own_queue_alone(
    world: World, bob: Client, make_queue: MakeQueue, held: tuple[TestQueue, list[str]]
) -> None:
    _, receipts = held
    other = make_queue("other")
    bob.put("/queues/orders")
    before = world.items()
    for client, path in ((other.client, "/queues/other"), (bob, "/queues/orders")):
        reply = client.post(f"{path}/messages/delete", {"receipts": receipts})
        assert reply.status == 200
        assert {entry["code"] for entry in reply.json["failed"]} == {"ReceiptExpired"}
        assert reply.json["deleted"] == []
    assert world.items() == before


def test_a_receivers_receipt_names_its_receiver(world: World, queue: TestQueue) -> None:
    shown = queue.add_receiver("copy")
    queue.send("x")
    world.settle()
    (default,) = queue.receive()
    (copy,) = queue.receive(receiver="copy")
    before = world.items()

    crossed = [
        repack(default["receipt"], {0: shown["id"]}),
        repack(copy["receipt"], {0: queue.show()["id"]}),
    ]

    reply = queue.client.post(f"{queue.path}/messages/delete", {"receipts": crossed})
    assert reply.json["deleted"] == []
    assert world.items() == before
    queue.delete(default)
    assert queue.counts() == {}
    queue.delete(copy)


def test_an_answer_may_hold_a_receipt_of_2048_characters(queue: TestQueue) -> None:
    reply = queue.client.post(f"{queue.path}/messages/delete", {"receipts": ["x" * 2_048]})

    assert reply.json["failed"][0]["code"] == "ReceiptExpired"
