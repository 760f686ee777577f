"""The changes of an account as its keys can read them: items beside the lines of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.listings import key_id, read_all
from tests.service.conftest import TestQueue
from tests.service.crashes import before_each_call
from tests.service.faults import Throttled

from cirrusmq.access.audit import AuditEntry, keep
from cirrusmq.base.limits import LOOKED_AT_ENTRIES
from cirrusmq.base.timestamps import format_time
from cirrusmq_lambda import audit
from cirrusmq_local.cloud.invocation import Context
from cirrusmq_local.testing import Client, World

Change = dict[str, Any]


def changes(client: Client, query: str = "") -> list[Change]:
    """All changes of a listing, page after page."""
    return read_all(client, "/audit", "changes", query)


def calls(client: Client, query: str = "") -> list[tuple[str, str]]:
    """The calls of a listing and what they changed, the oldest first."""
    return [(each["route"], each["resource"]) for each in reversed(changes(client, query))]


def with_key(client: Client, **rights: Any) -> Client:
    made = client.post("/keys", rights).json
    return Client(client.world, f"Bearer {made['access_key_id']}:{made['secret']}")


def kept(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items("directory") if item["pk"]["S"].startswith("E#")]


def is_of_the_audit(operation: str, request: Mapping[str, Any]) -> bool:
    return operation == "PutItem" and request["Item"]["pk"]["S"].startswith("E#")


def tick(world: World) -> None:
    world.clock.pass_seconds(1)


def test_every_kind_of_change_is_there_the_newest_first(world: World, alice: Client) -> None:
    made: list[str] = []

    def change(method: str, path: str, body: object = None) -> None:
        tick(world)
        reply = alice.call(method, path, body)
        assert reply.status < 300, reply.text
        made.append(format_time(world.clock.now_ms()))

    change("PUT", "/queues/orders", {"rewind_seconds": 60})
    change("PUT", "/queues/orders/receivers/copy")
    change("PUT", "/queues/orders/grants/bob", {"permission": "send"})
    change("PUT", "/topics/news")
    change("PUT", "/topics/news/subscriptions/all", {"protocol": "pull"})
    change("POST", "/queues/orders/purge")
    change("DELETE", "/queues/orders/grants/bob")

    found = changes(alice)

    assert [(each["route"], each["resource"]) for each in reversed(found)] == [
        ("PUT /queues/{queue}", "orders"),
        ("PUT /queues/{queue}/receivers/{receiver}", "orders/copy"),
        ("PUT /queues/{queue}/grants/{account}", "orders/bob"),
        ("PUT /topics/{topic}", "news"),
        ("PUT /topics/{topic}/subscriptions/{subscription}", "news/all"),
        ("POST /queues/{queue}/purge", "orders"),
        ("DELETE /queues/{queue}/grants/{account}", "orders/bob"),
    ]
    assert {each["code"] for each in found} == {"Ok"}
    assert {(each["account"], each["key_id"]) for each in found} == {("alice", key_id(alice))}
    assert [each["at"] for each in found] == sorted((each["at"] for each in found), reverse=True)
    assert found[0]["at"] == made[-1]
    assert all(each["request_id"] for each in found)


def test_messages_and_readings_are_not_in_it(queue: TestQueue) -> None:
    before = changes(queue.client)
    queue.send("x")
    queue.delete(*queue.receive())
    queue.show()
    queue.client.get("/audit")

    assert changes(queue.client) == before


def test_a_message_costs_no_more(world: World, queue: TestQueue) -> None:
    def life() -> None:
        queue.send("x")
        queue.delete(*queue.receive())

    queue.receive()  # who receives is noted once in five minutes
    assert world.write_units(life) == 3


def test_refused_calls_write_nothing(world: World, queue: TestQueue) -> None:
    client = queue.client
    nothing = with_key(client, scope={})
    before = world.items("directory")

    for caller, method, path, body in (
        (Client(world, "Bearer CK000000000000000000:x"), "DELETE", queue.path, None),
        (nothing, "DELETE", queue.path, None),
        (client, "PATCH", queue.path, {"delay_seconds": -1}),
        (client, "PATCH", "/queues/nowhere", {}),
        (client, "PUT", queue.path, {"fair": True}),
    ):
        assert 400 <= caller.call(method, path, body).status < 500

    assert world.items("directory") == before


def test_filters_are_by_time_key_and_resource(world: World, alice: Client) -> None:
    other = with_key(alice)
    tick(world)
    for client, path in (
        (alice, "/queues/orders"),
        (other, "/queues/orders/receivers/copy"),
        (other, "/queues/orders2"),
        (alice, "/topics/orders"),
    ):
        assert client.put(path).status == 201
        tick(world)
    _, _, second, first, _ = (each["at"] for each in changes(alice))

    assert calls(alice, f"key_id={key_id(other)}") == [
        ("PUT /queues/{queue}/receivers/{receiver}", "orders/copy"),
        ("PUT /queues/{queue}", "orders2"),
    ]
    of_orders = ["orders", "orders/copy", "orders"]
    assert [name for _, name in calls(alice, "resource=orders")] == of_orders
    assert [name for _, name in calls(alice, "resource=alice:ORDERS")] == of_orders
    assert [name for _, name in calls(alice, "resource=orders/copy")] == ["orders/copy"]
    assert calls(alice, "resource=order") == []
    between = f"from={first}&to={second}"
    assert [name for _, name in calls(alice, between)] == ["orders", "orders/copy"]
    assert calls(alice, f"{between}&key_id={key_id(alice)}") == [("PUT /queues/{queue}", "orders")]
    assert calls(alice, f"from={second}&to={first}") == []
    assert calls(alice, "to=0001-01-01T00:00:00Z") == []


def test_only_a_manager_of_keys_and_everything_reads_it(alice: Client) -> None:
    for rights in (
        {"manages_keys": False},
        {"scope": {"manage": "all"}},
        {"scope": {"manage": {"queues": ["orders"]}}, "manages_keys": True},
        {"scope": {"send": "all"}},
    ):
        assert with_key(alice, **rights).get("/audit").code == "Forbidden", rights

    manager = with_key(alice, scope={"manage": "all"}, manages_keys=True)
    assert manager.get("/audit").status == 200


def test_another_accounts_change_by_a_grant_is_in_both(alice: Client, bob: Client) -> None:
    alice.put("/queues/orders")
    alice.put("/queues/orders/grants/bob", {"permission": "admin"})
    assert bob.patch("/queues/alice:orders", {"delay_seconds": 1}).status == 200
    assert bob.delete("/queues/alice:orders").code == "Forbidden"

    (own,) = changes(bob)
    last = changes(alice, "resource=orders")[0]

    assert last == own
    assert (own["account"], own["key_id"]) == ("bob", key_id(bob))
    assert (own["route"], own["resource"]) == ("PATCH /queues/{queue}", "alice:orders")


def test_an_admins_changes_to_keys_of_an_account_are_in_both(world: World, alice: Client) -> None:
    admin = world.client("operator", admin=True)
    made = admin.post("/keys", {"account": "alice"}).json["access_key_id"]
    tick(world)
    admin.post(f"/keys/{made}/rotate")
    tick(world)
    admin.delete(f"/keys/{made}")

    expected = [
        ("POST /keys", made),
        ("POST /keys/{id}/rotate", made),
        ("DELETE /keys/{id}", made),
    ]
    assert calls(alice) == calls(admin) == expected


def test_the_first_admin_key_is_there_and_no_key_made_it(world: World) -> None:
    made = world.run("manage", {"create_admin_key": {"account": "carol"}})
    carol = Client(world, f"Bearer {made['access_key_id']}:{made['secret']}")

    (change,) = changes(carol)

    assert (change["route"], change["resource"]) == ("create_admin_key", made["access_key_id"])
    assert change["key_id"] is None
    assert made["secret"] not in repr(kept(world))


def test_changes_are_kept_for_90_days(world: World, alice: Client) -> None:
    alice.put("/queues/orders")
    (item,) = kept(world)
    at = world.clock.now_ms() // 1_000
    assert int(item["expires_at"]["N"]) - at == 90 * 86_400
    world.clock.pass_seconds(90 * 86_400 - 2)
    assert len(changes(alice)) == 1

    world.clock.pass_seconds(2)

    assert changes(alice) == []


def test_a_change_costs_one_unit_more(world: World, queue: TestQueue) -> None:
    def change(seconds: int) -> float:
        return world.write_units(lambda: queue.patch(delay_seconds=seconds))

    store = Throttled(world, is_of_the_audit)
    without = change(1)
    store.end()

    assert change(2) == without + 1


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_hold_each_once(world: World, alice: Client, limit: int) -> None:
    names = [f"q{number}" for number in range(6)]
    for name in names:
        alice.put(f"/queues/{name}")
        tick(world)

    page = alice.get("/audit", f"limit={limit}").json

    assert len(page["changes"]) == min(limit, 6)
    assert ("cursor" in page) == (limit < 6)
    assert [name for _, name in calls(alice, f"limit={limit}")] == names


def test_a_filter_looks_at_a_bounded_number_however_many_there_are(
    world: World, alice: Client
) -> None:
    def fill(count: int) -> None:
        for number in range(count):
            at_ms = world.clock.now_ms() + number
            entry = AuditEntry(
                at_ms=at_ms, request_id=str(number), route="PUT", resource="x", code="Ok"
            )
            keep(world.core, "alice", entry)
        world.clock.pass_seconds(count / 1_000)

    fill(LOOKED_AT_ENTRIES + 100)
    pages: list[Any] = []

    def read_page() -> float:
        return world.units(lambda: pages.append(alice.get("/audit", "resource=y").json))[1]

    few = read_page()
    fill(LOOKED_AT_ENTRIES)
    many = read_page()

    assert abs(few - many) <= 1
    assert many <= 50
    assert [page["changes"] for page in pages] == [[], []]
    assert all("cursor" in page for page in pages)


def test_a_call_succeeds_though_its_item_is_refused(
    world: World, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    store = Throttled(world, is_of_the_audit)

    assert alice.put("/queues/orders").status == 201

    assert store.refused > 0
    assert changes(alice) == []
    assert alice.get("/queues/orders").status == 200
    (line,) = (each for each in caplog.records if each.name == audit.SERVICE)
    assert vars(line)["resource"] == "orders"
    assert "a change is in the log alone" in caplog.text


def test_a_call_with_little_time_left_answers_instead(
    alice: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "get_remaining_time_in_millis", lambda _: audit.ITEM_MS - 1)
    assert alice.put("/queues/orders").status == 201
    assert changes(alice) == []
    assert audit.SERVICE in [each.name for each in caplog.records]


class StoppedError(BaseException):
    """The function's environment is gone."""


def test_the_line_is_written_first(
    world: World,
    alice: Client,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(operation: str, request: Mapping[str, Any]) -> None:
        if is_of_the_audit(operation, request):
            raise StoppedError

    before_each_call(world, monkeypatch, stop)

    with pytest.raises(StoppedError):
        alice.put("/queues/orders")

    monkeypatch.undo()
    assert alice.get("/queues/orders").status == 200
    assert changes(alice) == []
    assert [vars(each)["resource"] for each in caplog.records if each.name == audit.SERVICE] == [
        "orders"
    ]


def test_a_call_with_a_possible_change_is_there(world: World, queue: TestQueue) -> None:
    tick(world)
    queue.client.put(f"{queue.path}/grants/bob", {"permission": "admin"})
    bob = world.client("bob")
    tick(world)
    store = Throttled(world, lambda operation, _: operation == "TransactWriteItems")
    assert queue.patch(delay_seconds=5).status == 503
    assert bob.patch("/queues/alice:orders", {"delay_seconds": 5}).status == 503
    store.end()

    (failed, granted, _) = changes(queue.client)

    assert (failed["route"], failed["code"]) == ("PATCH /queues/{queue}", "Unavailable")
    # Nor can another account write into this one's audit while calls fail before they are refused.
    assert granted["route"] == "PUT /queues/{queue}/grants/{account}"
    assert [each["code"] for each in changes(bob)] == ["Unavailable"]
