"""The list of an account's operations: its order, filters and pages, and who sees what of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from tests.listings import key_id, read_all
from tests.service.conftest import TestQueue

from cirrusmq.base.limits import LOOKED_AT_ENTRIES
from cirrusmq.base.timestamps import format_time
from cirrusmq.queues.operations import Operation, first_id
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import operation_key
from cirrusmq_local.testing import Client, World

if TYPE_CHECKING:
    from tests.service.conftest import MakeQueue


def listed(client: Client, query: str = "") -> list[dict[str, Any]]:
    """All operations of a listing, page after page."""
    return read_all(client, "/operations", "operations", query)


def ids(client: Client, query: str = "") -> list[str]:
    return [each["id"] for each in listed(client, query)]


def with_scope(client: Client, scope: dict[str, Any]) -> Client:
    made = client.post("/keys", {"scope": scope}).json
    return Client(client.world, f"Bearer {made['access_key_id']}:{made['secret']}")


def fill(world: World, account: str, count: int) -> None:
    """Put finished purges into the store, as many calls would have."""
    begun_ms = world.clock.now_ms() - count
    for first in range(0, count, 100):
        writes = []
        for number in range(first, min(first + 100, count)):
            operation = Operation(
                id=f"{first_id(begun_ms + number)}filled{number:06d}",
                account=account,
                kind="purge",
                queue="filled",
                queue_id="filled",
                details={"until_ms": 0},
                started_ms=begun_ms + number,
                state="succeeded",
            )
            place = operation_key(account, operation.id)
            writes.append(directory_writes.put(world.core, place, operation))
        world.core.store.transact(writes)


def test_the_newest_is_first_with_its_queue_and_its_key(
    world: World, make_queue: MakeQueue
) -> None:
    orders, dead = make_queue("orders", rewind_seconds=3_600), make_queue("dead")
    begun = []
    for queue, kind, body in (
        (orders, "purge", {}),
        (orders, "rewind", {"to": format_time(world.clock.now_ms())}),
        (dead, "redrive", {"to": "orders"}),
    ):
        begun.append(queue.start(kind, **body))
        world.clock.pass_seconds(0.001)

    found = listed(orders.client)

    assert [each["id"] for each in found] == begun[::-1]
    assert [each["kind"] for each in found] == ["redrive", "rewind", "purge"]
    assert [each["queue"] for each in found] == ["dead", "orders", "orders"]
    assert {each["state"] for each in found} == {"running"}
    assert {each["key_id"] for each in found} == {key_id(orders.client)}
    assert found[-1] == orders.client.get(f"/operations/{begun[0]}").json
    world.settle()
    assert {each["state"] for each in listed(orders.client)} == {"succeeded"}


def test_backfills_and_replays_are_among_them(world: World, queue: TestQueue) -> None:
    client = queue.client
    queue.patch(rewind_seconds=3_600)
    queue.send("before")
    queue.add_receiver("copy", start="earliest")
    client.put("/topics/news")
    group = {"protocol": "pull", "start": "earliest"}
    assert client.put("/topics/news/subscriptions/late", group).status == 201
    world.settle()

    replay, backfill = listed(client)

    assert (replay["kind"], replay["topic"], replay["subscription"]) == ("replay", "news", "late")
    assert "queue" not in replay
    assert (backfill["kind"], backfill["receiver"]) == ("backfill", "copy")
    assert backfill["queue"] == queue.name
    assert {replay["key_id"], backfill["key_id"]} == {key_id(client)}


def test_filters_choose_by_state_kind_queue_and_topic(world: World, make_queue: MakeQueue) -> None:
    one, other = make_queue("one", rewind_seconds=60), make_queue("other")
    client = one.client
    done = one.start("purge")
    client.put("/topics/news")
    client.put("/topics/news/subscriptions/late", {"protocol": "pull", "start": "earliest"})
    world.settle()
    failed = other.start("purge")
    client.delete(other.path)
    world.settle()
    running = one.start("rewind", to=format_time(world.clock.now_ms()))

    assert ids(client, "state=running") == [running]
    assert ids(client, "state=failed") == [failed]
    assert ids(client, "queue=one") == [running, done]
    assert ids(client, "kind=purge") == [failed, done]
    assert ids(client, "kind=purge&queue=one&state=succeeded") == [done]
    assert [each["kind"] for each in listed(client, "topic=news")] == ["replay"]
    assert ids(client, "queue=nobody") == []


def test_a_key_sees_the_operations_of_its_manage_scope(world: World, make_queue: MakeQueue) -> None:
    mine, other = make_queue("mine"), make_queue("other")
    client = mine.client
    own = mine.start("purge")
    theirs = other.start("purge")
    world.clock.pass_seconds(1)
    client.put("/topics/news")
    client.put("/topics/news/subscriptions/late", {"protocol": "pull", "start": "earliest"})
    (replay,) = ids(client, "kind=replay")

    of_queue = with_scope(client, {"manage": {"queues": ["mine"]}, "send": "all"})
    of_topic = with_scope(client, {"manage": {"topics": ["news"]}})

    assert ids(of_queue) == [own]
    assert ids(of_queue, "queue=other") == []
    assert ids(of_topic) == [replay]
    assert ids(with_scope(client, {"manage": "all"})) == [replay, theirs, own]
    assert with_scope(client, {"send": "all"}).get("/operations").code == "Forbidden"


def test_they_are_listed_for_7_days(world: World, queue: TestQueue) -> None:
    operation = queue.start("purge")
    world.settle()
    world.clock.pass_seconds(7 * 86_400 - 2)
    assert ids(queue.client) == [operation]

    world.clock.pass_seconds(2)

    assert ids(queue.client) == []


def test_one_without_a_time_in_its_id_is_found_by_it_alone(world: World, queue: TestQueue) -> None:
    """As the ids of operations were before they could be listed."""
    begun = queue.start("purge")
    world.settle()
    held = directory.read(world.core, operation_key("alice", begun), Operation)
    assert held is not None
    older = msgspec.structs.replace(held.value, id="Op-zz9gcx4d01kq")
    place = operation_key("alice", older.id)
    world.core.store.transact([directory_writes.put_new(world.core, place, older)])

    assert ids(queue.client) == [begun]
    assert queue.client.get(f"/operations/{older.id}").json["state"] == "succeeded"


def test_a_newer_operation_is_on_no_later_page(queue: TestQueue) -> None:
    begun = [queue.start("purge") for _ in range(4)]
    page = queue.client.get("/operations", "limit=2").json
    queue.start("purge")

    following = queue.client.get("/operations", f"limit=2&cursor={page['cursor']}").json

    assert [each["id"] for each in following["operations"]] == begun[1::-1]


def test_a_page_reads_no_more_than_it_shows(world: World, queue: TestQueue) -> None:
    fill(world, "alice", 300)

    written, read = world.units(lambda: queue.client.get("/operations", "limit=10"))

    assert (written, read <= 2) == (0, True)


def test_a_filter_looks_at_a_bounded_number_however_many_there_are(
    world: World, queue: TestQueue
) -> None:
    wanted = queue.start("purge")
    fill(world, "alice", LOOKED_AT_ENTRIES + 100)
    client = queue.client
    pages: list[Any] = []

    def read_page(query: str) -> float:
        return world.units(lambda: pages.append(client.get("/operations", query).json))[1]

    few = read_page("queue=nobody")
    fill(world, "alice", 3 * LOOKED_AT_ENTRIES)
    many = read_page("queue=nobody")

    assert few == many <= 200
    assert [page["operations"] for page in pages] == [[], []]
    assert all("cursor" in page for page in pages)
    assert ids(client, f"queue={queue.name}") == [wanted]


def test_a_cursor_is_of_one_filter_alone(queue: TestQueue) -> None:
    for _ in range(3):
        queue.start("purge")
    cursor = queue.client.get("/operations", "kind=purge&limit=1").json["cursor"]

    for query in ("", "kind=rewind&", "kind=purge&state=running&"):
        reply = queue.client.get("/operations", f"{query}cursor={cursor}")
        assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "cursor")


def test_listing_costs_no_write_when_an_operation_begins(world: World, queue: TestQueue) -> None:
    """A purge adds itself, the pointer for the sweep, and its change in the audit."""
    queue.start("purge")
    before = len(world.items("directory"))

    queue.start("purge")

    added = {"operation", "pointer", "change"}
    assert len(world.items("directory")) - before == len(added)
