"""Receipts and cursors that were tampered with, or are another account's, have no effect.

Forged receipts beside good ones are in `tests/service/test_forged_receipts.py`; here are all that
hand receipts and cursors out beside each other, and the great number.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.security.contract import FOREIGNER, OWNER, Stage, set_stage
from tests.service.test_forged_receipts import tamper

from cirrusmq_local.testing import Client, Reply

FEW, MANY = 4_000, 100_000
VERBS = ("delete", "visibility", "give-back", "dead-letter")
HOUR = 3_600


@dataclass(frozen=True)
class Holder:
    """A place from which messages are received, with receipts that are still good."""

    client: Client
    path: str
    receipts: tuple[str, ...]

    def act(self, verb: str, receipts: list[str]) -> Reply:
        body: dict[str, object] = {"receipts": receipts}
        if verb == "visibility":
            body = {
                "entries": [{"receipt": each, "visibility_timeout_seconds": 7} for each in receipts]
            }
        return self.client.post(f"{self.path}/messages/{verb}", body)


@dataclass(frozen=True)
class Listing:
    """A call that hands out cursors, with one that is good."""

    client: Client
    path: str
    query: str
    parameter: str
    cursor: str

    def page(self, cursor: str) -> Reply:
        return self.client.get(self.path, f"{self.query}{self.parameter}={cursor}")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    made = set_stage()
    for client in (made.owner, made.foreigner):
        for name in ("orders", "other"):
            client.put(f"/queues/{name}")
        for name in ("news", "views"):
            client.put(f"/topics/{name}")
            client.put(f"/topics/{name}/subscriptions/one", {"protocol": "pull"})
            client.put(f"/topics/{name}/subscriptions/two", {"protocol": "pull"})
            log = {"protocol": "pull", "mode": "broadcasting"}
            client.put(f"/topics/{name}/subscriptions/log", log)
        client.put("/queues/dead")
        client.patch("/queues/orders", {"dead_letter": {"queue": "dead", "max_receives": 9}})
        made.world.settle()
        client.send("orders", "a", "b", "c")
        client.send("other", "a")
        for name in ("news", "views"):
            for body in ("a", "b", "c"):
                client.post(f"/topics/{name}/messages", {"messages": [{"body": body}]})
        for _ in range(3):
            client.post("/keys")
    made.world.settle()
    made.world.clock.pass_seconds(5)
    yield made
    made.world.engine.close()


@pytest.fixture(scope="module")
def holders(stage: Stage) -> list[Holder]:
    """Two queues, a receiver and two subscriptions of two topics, of either account."""
    found = []
    subscriptions = [f"/topics/{t}/subscriptions/{s}" for t in ("news", "views") for s in ("one",)]
    for client in (stage.owner, stage.foreigner):
        paths = ["/queues/orders", "/queues/other", *subscriptions]
        found += [hold(client, path) for path in [*paths, "/topics/news/subscriptions/two"]]
    found.append(hold(stage.owner, "/queues/orders", receiver="copy"))
    return found


def hold(client: Client, path: str, **fields: str) -> Holder:
    asked = {"max": 16, "wait_seconds": 1, "visibility_timeout_seconds": 12 * HOUR, **fields}
    messages = client.post(f"{path}/messages/receive", asked).json["messages"]
    assert messages, path
    return Holder(client, path, tuple(message["receipt"] for message in messages))


@pytest.fixture(scope="module")
def listings(stage: Stage) -> list[Listing]:
    """Every call of either account that hands cursors out."""
    asked = [
        ("/queues", "", "cursor"),
        ("/queues", "prefix=o&", "cursor"),
        ("/topics", "", "cursor"),
        ("/keys", "", "cursor"),
        ("/topics/news/messages", "", "after"),
        ("/topics/views/messages", "", "after"),
        ("/topics/news/subscriptions/log/messages", "", "after"),
        ("/topics/views/subscriptions/log/messages", "", "after"),
    ]
    found = []
    for client, (path, query, parameter) in itertools.product(
        (stage.owner, stage.foreigner), asked
    ):
        page = client.get(path, f"{query}limit=1").json
        found.append(Listing(client, path, query, parameter, page["cursor"]))
    return found


@pytest.mark.parametrize(
    "number", [FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_tampered_receipts_change_nothing(stage: Stage, holders: list[Holder], number: int) -> None:
    chance = random.Random(number)
    good = {receipt for holder in holders for receipt in holder.receipts}
    before = stage.everything()
    tried = 0
    while tried < number:
        holder, verb = chance.choice(holders), chance.choice(VERBS)
        whose = chance.choice([holder, holder, chance.choice(holders)]).receipts
        texts = list({tamper(chance.choice(whose), chance)[:2_048] for _ in range(16)} - good)
        reply = holder.act(verb, texts)
        assert reply.status == 200, reply.text
        assert {entry["receipt"] for entry in reply.json["failed"]} == set(texts)
        # Nothing tells one that is none from one that is stale.
        assert {(entry["code"], entry["detail"]) for entry in reply.json["failed"]} == {
            (
                "ReceiptExpired",
                "The receipt is not the message's newest, or the message is gone.",
            )
        }
        tried += len(texts)
        if tried % 1_000 < 16:
            assert stage.everything() == before, (holder.path, verb)
    assert stage.everything() == before


def test_a_good_receipt_is_worth_nothing_elsewhere(stage: Stage, holders: list[Holder]) -> None:
    before = stage.everything()
    for whose, holder in itertools.permutations(holders, 2):
        if (whose.path, whose.client) == (holder.path, holder.client):
            continue  # a receipt carries its receiver: the queue is the same
        for verb in VERBS:
            reply = holder.act(verb, list(whose.receipts))
            assert {entry["code"] for entry in reply.json["failed"]} == {"ReceiptExpired"}
            assert len(reply.json["failed"]) == len(whose.receipts)
    assert stage.everything() == before


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "number", [FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_tampered_cursors_are_refused(listings: list[Listing], number: int) -> None:
    chance = random.Random(number)
    legal = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for _ in range(number):
        listing = chance.choice(listings)
        cursor = listing.cursor
        place = chance.randrange(len(cursor))
        forged = chance.choice(
            [
                cursor[:place],
                cursor[:place] + chance.choice(legal) + cursor[place + 1 :],
                cursor[:place] + chance.choice(legal + "%=.~") + cursor[place:],
                cursor + chance.choice(legal + "="),
                cursor[place:],
                cursor.swapcase(),
                "".join(chance.choices(legal, k=chance.randrange(90))),
                "%00" + cursor,
                cursor * 9,
            ]
        )
        if forged == cursor:
            continue
        reply = listing.page(forged)
        assert (reply.status, reply.code) == (400, "InvalidParameter"), (listing.path, forged)
        assert reply.json["parameter"] == listing.parameter


def test_a_good_cursor_is_worth_nothing_elsewhere(listings: list[Listing]) -> None:
    for whose, listing in itertools.product(listings, listings):
        reply = listing.page(whose.cursor)
        if whose is listing:
            assert reply.status == 200, reply.text
        else:
            assert (reply.status, reply.code) == (400, "InvalidParameter"), (whose, listing)


def test_the_good_ones_still_work_at_the_end(stage: Stage) -> None:
    """The receipts above are refused because they are forged."""
    for account in (OWNER, FOREIGNER):
        client = stage.world.client(account)
        client.put("/queues/last")
        client.send("last", "a", "b", "c")
        held = hold(client, "/queues/last")
        for verb, receipt in zip(VERBS, held.receipts, strict=False):
            assert held.act(verb, [receipt]).json["failed"] == []
