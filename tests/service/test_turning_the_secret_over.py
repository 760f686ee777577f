"""The deployment's secret is turned over while it is in use: nothing that it signed is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import msgspec
import pytest
from tests.service.test_repeated_receives import attempt

from cirrusmq.runtime.secret import KEPT_MS, READ_AGAIN_MS, USED_AFTER_MS, turned_over
from cirrusmq_local.cloud.invocation import running
from cirrusmq_local.cloud.template import TEMPLATE, load
from cirrusmq_local.testing import Client, World, is_signed, read_secret
from cirrusmq_local.testing.core import GuardedSecret

URL = "http://127.0.0.1:9/hook"
HOOK = {"protocol": "http", "endpoint": URL}
SECRET = "/topics/news/subscriptions/web/secret"
MAY_READ = {"receive", "subscribe", "manage", "push", "push_slow"}


def turn_over(world: World) -> None:
    """As `cirrusmq secret rotate` does it."""
    key = world.random.randbytes(32)
    world.secret = turned_over(world.secret, world.clock.now_ms(), key)


def moments(world: World) -> Iterator[str]:
    """Before a turn-over, then while environments learn of it, then when the new one signs."""
    yield "before"
    turn_over(world)
    yield "turned over"
    world.clock.pass_seconds(READ_AGAIN_MS / 1_000)
    yield "known"
    world.clock.pass_seconds((USED_AFTER_MS - READ_AGAIN_MS) / 1_000)
    yield "in use"


def signed_by(world: World, secret: str) -> bool:
    _, headers, body = world.posts[-1]
    return is_signed(read_secret(secret), headers, body, world.clock.now_ms() / 1_000)


def test_a_cursor_continues_its_listing(world: World, alice: Client) -> None:
    for number in range(9):
        alice.put(f"/queues/queue-{number}")
    page = alice.get("/queues", "limit=1").json
    names = [page["queues"][0]["name"]]
    for _ in moments(world):
        page = alice.get("/queues", f"limit=2&cursor={page['cursor']}").json
        names += [each["name"] for each in page["queues"]]
    assert names == [f"queue-{number}" for number in range(9)]


def test_a_cursor_of_two_generations_ago_is_none(world: World, alice: Client) -> None:
    for number in range(3):
        alice.put(f"/queues/queue-{number}")
    cursor = alice.get("/queues", "limit=1").json["cursor"]
    for _ in range(2):
        list(moments(world))
        world.clock.pass_seconds(KEPT_MS / 1_000)

    assert alice.get("/queues", f"cursor={cursor}").json["parameter"] == "cursor"


def test_a_cursor_of_an_unreadable_generation_is_not_refused(world: World, alice: Client) -> None:
    for number in range(2):
        alice.put(f"/queues/queue-{number}")
    idle = world.core
    idle.secret.signing_key()
    turn_over(world)
    world.clock.pass_seconds(USED_AFTER_MS / 1_000)
    another = GuardedSecret(world.clock, lambda: world.secret)
    world.core = msgspec.structs.replace(idle, secret=another)
    cursor = alice.get("/queues", "limit=1").json["cursor"]
    world.core, written = idle, world.secret

    world.secret = "cannot be read"
    reply = alice.get("/queues", f"cursor={cursor}")
    assert (reply.status, reply.code) == (503, "Unavailable")
    world.secret = written
    world.clock.pass_seconds(60)
    (left,) = alice.get("/queues", f"cursor={cursor}").json["queues"]
    assert left["name"] == "queue-1"


def test_a_repeated_receive_finds_its_messages(world: World, alice: Client) -> None:
    """Its nonces derive from the secret of the attempt's time."""
    alice.put("/queues/orders", {"visibility_timeout_seconds": 43_200})
    alice.send("orders", *map(str, range(4)))
    turn_over(world)
    world.core.secret.signing_key()
    world.clock.pass_seconds(USED_AFTER_MS / 1_000 - 1)
    token = attempt(world)
    first = alice.receive("orders", 4, attempt=token)
    assert len(first) == 4
    world.clock.pass_seconds(60)

    again = alice.receive("orders", 4, attempt=token, repeat=True)

    assert again == first
    receipts = [each["receipt"] for each in first]
    assert alice.post("/queues/orders/messages/delete", {"receipts": receipts}).status == 200


def test_receipts_settle_whatever_becomes_of_the_secret(world: World, alice: Client) -> None:
    alice.put("/queues/orders", {"visibility_timeout_seconds": 43_200})
    alice.send("orders", *map(str, range(8)))
    for _ in moments(world):
        (received,) = alice.receive("orders", 1, attempt=attempt(world))
        world.clock.pass_seconds(1_300)
        receipts = {"receipts": [received["receipt"]]}
        deleted = alice.post("/queues/orders/messages/delete", receipts).json
        assert len(deleted["deleted"]) == 1


def test_posts_carry_both_signatures_and_each_secret_shown_is_right(
    world: World, alice: Client
) -> None:
    alice.put("/topics/news")
    first = alice.put("/topics/news/subscriptions/web", HOOK).json["secret"]
    world.settle()
    shown: dict[str, str] = {}
    for moment in moments(world):
        shown[moment] = alice.post(SECRET).json["secret"]
        alice.post("/topics/news/messages", {"messages": [{"body": moment}]})
        world.settle()
        assert signed_by(world, first), "a subscriber that has not taken the new secret yet"
        assert signed_by(world, shown[moment])
        signatures = world.posts[-1][1]["webhook-signature"].split(" ")
        assert len(signatures) == (2 if moment in ("known", "in use") else 1)
    assert [shown[each] == first for each in shown] == [True, True, True, False]


def test_the_signature_tells_a_subscriber_of_two_missed_turn_overs(
    world: World, alice: Client
) -> None:
    alice.put("/topics/news")
    first = alice.put("/topics/news/subscriptions/web", HOOK).json["secret"]
    list(moments(world))
    second = alice.post(SECRET).json["secret"]
    world.clock.pass_seconds(KEPT_MS / 1_000)
    list(moments(world))
    alice.post("/topics/news/messages", {"messages": [{"body": "x"}]})
    world.settle()

    assert not signed_by(world, first)
    assert signed_by(world, second)


def test_a_token_confirms_after_a_turn_over(world: World, alice: Client) -> None:
    strict = msgspec.structs.replace(world.core.settings, confirm_endpoints=True)
    world.core = msgspec.structs.replace(world.core, settings=strict)
    alice.put("/topics/news")
    secret = alice.put("/topics/news/subscriptions/web", HOOK).json["secret"]
    world.settle()
    assert signed_by(world, secret)
    token = json.loads(world.posts[-1][2])["token"]
    list(moments(world))

    nobody = Client(world, "")
    path = "/topics/news/subscriptions/web"
    assert nobody.post(f"{path}/confirm", {"token": token}).status == 204
    assert alice.get(path).json["state"] == "delivering"


def test_the_secret_is_in_no_table(world: World, alice: Client) -> None:
    alice.put("/topics/news")
    alice.put("/topics/news/subscriptions/web", HOOK)
    alice.put("/queues/orders")
    alice.send("orders", "x")
    alice.receive("orders", attempt=attempt(world))
    key = world.core.secret.signing_key()
    held = repr([world.items(table) for table in ("directory", "messages", "usage")])
    assert key.hex() not in held
    assert repr(key)[2:-1] not in held


def test_exactly_the_permitted_functions_read_it(
    world: World, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the service's tests fail where a function reads it without permission."""
    readers: set[str] = set()
    works: Callable[[GuardedSecret], object] = GuardedSecret.generations

    def noted(self: GuardedSecret) -> object:
        invocation = running.get()
        if invocation is not None:
            readers.add(invocation.function.folder.name)
        return works(self)

    monkeypatch.setattr(GuardedSecret, "generations", noted)
    alice.put("/queues/orders")
    alice.put("/queues/others")
    alice.get("/queues", "limit=1")
    alice.receive("orders", attempt=attempt(world))
    alice.put("/topics/news")
    alice.put("/topics/news/subscriptions/web", HOOK)
    for _ in range(2):  # until the first one is posted the subscription is slow
        alice.post("/topics/news/messages", {"messages": [{"body": "x"}]})
        world.settle()

    allowed = {
        function.folder.name
        for function in load(TEMPLATE).functions
        if "secretsmanager:GetSecretValue" in function.permissions.get("Secret", {})
    }
    told = {
        each.folder.name for each in load(TEMPLATE).functions if "SECRET_ARN" in each.environment
    }
    assert readers == allowed == told == MAY_READ
