"""Receipts that were tampered with beside good ones; a great number is in `tests/security`."""

from __future__ import annotations

import base64
import random
from typing import Any

import msgspec
from tests.service.conftest import TestQueue

from cirrusmq_local.testing import World

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


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


def test_a_forged_receipt_does_not_hinder_the_good_ones(queue: TestQueue) -> None:
    """Its call has receipts of messages sent alone and together, small and large."""
    queue.send("a")
    queue.send("b", "c", "d" * 2_000)
    receipts = [message["receipt"] for message in queue.receive_all()]
    forged = [repack(receipts[0], {2: "k" * 1_100}), repack(receipts[0], {2: ""}), "rubbish"]

    reply = queue.client.post(f"{queue.path}/messages/delete", {"receipts": [*forged, *receipts]})

    assert reply.json["deleted"] == receipts
    assert [entry["receipt"] for entry in reply.json["failed"]] == forged


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
