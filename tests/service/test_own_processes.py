"""What a client may do in its own process, and what its policy refuses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from tests.service.conftest import TestQueue, sweep

from cirrusmq.base.formats import FORMAT, WRITTEN_FORMAT
from cirrusmq.runtime.core import Core
from cirrusmq.storage.deployment_formats import note_formats
from cirrusmq_local.cloud.own_policy import ATTRIBUTES, own_policy
from cirrusmq_local.cloud.policy_guard import PolicyGuard, allows
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import Client, World

LARGE = random.Random(1).randbytes(20_000).hex()
BATCH = [random.Random(number).randbytes(300).hex() for number in range(16)]
PARCEL = {"pk", "sk", "v", "k", "r", "f", "t", "x", "z", "j", "b", "expires_at"}


@pytest.fixture
def world() -> Iterator[World]:
    made = World(in_process=True)
    yield made
    assert made.own is not None
    assert made.own.refused == []
    made.engine.close()


def made(alice: Client, name: str = "orders", **attributes: Any) -> TestQueue:
    assert alice.put(f"/queues/{name}", attributes).status == 201
    return TestQueue(alice, name)


def own_calls(world: World) -> dict[str, int]:
    assert world.own is not None
    return dict(world.own.done)


def test_a_life_of_a_message_needs_no_function(world: World, alice: Client) -> None:
    queue = made(alice)
    queue.send("a")
    (message,) = queue.receive()
    queue.hold(message, 60)
    queue.delete(message)

    assert own_calls(world) == {"messages": 1, "receive": 1, "visibility": 1, "delete": 1}
    assert queue.counts() == {}


def test_it_costs_as_many_units_as_by_the_url(world: World, alice: Client) -> None:
    queue = made(alice)
    queue.send("before")
    queue.delete(*queue.receive())
    assert world.write_units(lambda: queue.send("a")) == 1
    held: list[Any] = []
    assert world.write_units(lambda: held.extend(queue.receive(1))) == 1
    assert world.write_units(lambda: queue.delete(*held)) == 1


@pytest.mark.parametrize(
    "attributes",
    [
        {"ordered": True},
        {"fair": True},
        {"rewind_seconds": 60},
        {"sender": "key"},
        {"send_rate": 100},
        {"receive_rate": 100},
        {"priorities": 3},
    ],
)
def test_other_kinds_of_queues_are_left_to_the_service(
    world: World, alice: Client, attributes: dict[str, Any]
) -> None:
    queue = made(alice, **attributes)
    queue.send("a", group="g")
    queue.delete(*queue.receive())
    assert own_calls(world) == {}


def test_a_batch_needs_no_function(world: World, alice: Client) -> None:
    queue = made(alice)
    queue.send(*BATCH)
    held = queue.receive(16)
    queue.delete(*held)

    assert own_calls(world) == {"messages": 1, "receive": 1, "delete": 1}
    assert sorted(message["body"] for message in held) == sorted(BATCH)
    assert queue.counts() == {}


def test_a_batch_costs_as_many_write_units_as_by_the_url(world: World, alice: Client) -> None:
    def units(queue: TestQueue) -> list[float]:
        held: list[Any] = []
        queue.send("before")
        queue.delete(*queue.receive())
        sent = world.write_units(lambda: queue.send(*BATCH))
        received = world.write_units(lambda: held.extend(queue.receive(16)))
        return [sent, received, world.write_units(lambda: queue.delete(*held))]

    here = units(made(alice, "here", partitions=1))
    own, world.own = world.own, None
    there = units(made(alice, "there", partitions=1))
    world.own = own

    assert own_calls(world)["messages"] == 2
    assert here == there


def test_a_batch_of_the_service_is_received_here(world: World, alice: Client) -> None:
    queue = made(alice)
    own, world.own = world.own, None
    queue.send(*BATCH)
    world.own = own

    assert sorted(queue.bodies()) == sorted(BATCH)
    assert own_calls(world)["receive"] >= 1


def test_a_policy_without_records_leaves_batches_unclaimed(
    world: World, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = made(alice)
    queue.send(*BATCH)
    _forbid_records(monkeypatch)

    held = queue.receive(16)

    assert len(held) == len(BATCH)
    assert {message["receive_count"] for message in held} == {1}
    assert own_calls(world) == {"messages": 1}
    assert world.own is not None
    assert len(world.own.refused) == 1
    world.own.forget_refusals()


def _forbid_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """As policies that were printed before batches were stored here."""

    def older(*arguments: Any, **named: Any) -> dict[str, Any]:
        policy = own_policy(*arguments, **named)
        kept = [each for each in policy["Statement"] if not each["Sid"].endswith("Records")]
        return {**policy, "Statement": kept}

    monkeypatch.setattr("cirrusmq_local.testing.own_processes.own_policy", older)


def test_a_large_message_is_sent_and_received_by_the_service(world: World, alice: Client) -> None:
    queue = made(alice, partitions=1)
    queue.send(LARGE)
    assert own_calls(world) == {}

    queue.send("small")
    received = queue.receive_all()

    assert {message["body"] for message in received} == {LARGE, "small"}


def test_a_held_large_message_holds_up_no_receive_here(world: World, alice: Client) -> None:
    queue = made(alice, partitions=1)
    queue.send(LARGE)
    queue.receive()
    queue.send("small")

    (message,) = queue.receive()

    assert message["body"] == "small"
    assert own_calls(world) == {"messages": 1, "receive": 1}


def test_deduplication_ids_are_left_to_the_service(world: World, alice: Client) -> None:
    queue = made(alice)
    assert queue.send("a", deduplication_id="k") == queue.send("b", deduplication_id="k")
    assert own_calls(world) == {}


def test_receipts_of_another_queue_are_left_to_the_service(world: World, alice: Client) -> None:
    queue, other = made(alice), made(alice, "other")
    queue.send("a")
    (message,) = queue.receive()
    assert other.act("delete", message)["failed"][0]["code"] == "ReceiptExpired"
    assert own_calls(world) == {"messages": 1, "receive": 1}


def test_giving_back_is_left_to_the_service(world: World, alice: Client) -> None:
    queue = made(alice)
    queue.send("a")
    (message,) = queue.receive()
    queue.hold(message, 0)
    assert own_calls(world) == {"messages": 1, "receive": 1}
    assert queue.receive()


def test_a_used_up_message_is_not_received_here_and_the_service_moves_it(
    world: World, alice: Client
) -> None:
    dead = made(alice, "dead")
    queue = made(alice, dead_letter={"queue": "dead", "max_receives": 1})
    queue.send("a")
    queue.receive(visibility_timeout_seconds=1)
    world.clock.pass_seconds(2)
    assert queue.receive() == []
    world.settle()
    assert dead.counts() == {}

    own, world.own = world.own, None
    assert queue.receive() == []
    world.settle()
    world.own = own

    assert dead.bodies() == ["a"]


def test_a_revoked_key_does_nothing_here(world: World, alice: Client) -> None:
    queue = made(alice)
    reply = alice.post("/keys", {"scope": {"send": {"queues": ["orders"]}}})
    sender = Client(world, f"Bearer {reply.json['access_key_id']}:{reply.json['secret']}")
    sender.send("orders", "a")
    assert own_calls(world) == {"messages": 1}
    assert sender.post("/queues/orders/messages/receive", {}).status == 403

    assert alice.delete(f"/keys/{reply.json['access_key_id']}").status == 204

    assert sender.post("/queues/orders/messages", {"messages": [{"body": "b"}]}).status == 401
    assert queue.bodies() == ["a"]


def test_a_key_holder_is_told_the_tables_if_the_operator_allows_it(
    world: World, alice: Client
) -> None:
    assert alice.get("/endpoints").json == {}
    world.core = _offering(world)
    told = alice.get("/endpoints").json["in_process"]
    assert told | {"region": ""} == {
        "region": "",
        "directory": world.tables.directory,
        "messages": world.tables.messages,
        "account": "alice",
        "format": WRITTEN_FORMAT,
    }
    assert Client(world, "").get("/endpoints").status == 401


def test_the_sweep_tells_the_formats_if_the_operator_allows_it() -> None:
    world = World()
    place = {"pk": {"S": "deployment"}, "sk": {"S": "formats"}}
    world.run("sweep")
    assert not [each for each in world.items("directory") if each["sk"] == place["sk"]]

    world.core = _offering(world)
    world.run("sweep")
    (told,) = [each for each in world.items("directory") if each["sk"] == place["sk"]]

    assert told == place | {"reads": {"N": str(FORMAT)}, "writes": {"N": str(WRITTEN_FORMAT)}}
    assert world.units(lambda: note_formats(world.core)) == (0, 0.5)
    world.engine.close()


def _offering(world: World) -> Core:
    """The service's core, in a deployment with InProcess."""
    core = world.core
    return replace(core, settings=replace(core.settings, offers_in_process=True))


class TestPolicy:
    def test_a_parcel_naming_another_accounts_log_is_refused(
        self, world: World, alice: Client
    ) -> None:
        queue = made(alice)
        queue.send("a")
        (parcel,) = world.items()
        queue_id, tables = parcel["pk"]["S"].split("#")[1], world.tables
        policy = self._policy(queue_id, tables.directory, tables.messages)
        guard = PolicyGuard(world.engine, policy)
        taken = {"pk": parcel["pk"], "sk": {"S": "0000000000001#x"}}
        put = {"TableName": world.tables.messages}
        assert guard.execute("PutItem", put | {"Item": parcel | taken}) is not None

        forged = parcel | taken | {"l": {"S": "bobsqueue000#0"}}
        with pytest.raises(EngineError, match="not allowed"):
            guard.execute("PutItem", put | {"Item": forged})
        with pytest.raises(EngineError, match="not allowed"):
            guard.execute(
                "UpdateItem",
                put
                | {
                    "Key": taken,
                    "UpdateExpression": "SET #a = :log",
                    "ExpressionAttributeNames": {"#a": "l"},
                    "ExpressionAttributeValues": {":log": {"S": "bobsqueue000#0"}},
                },
            )
        with pytest.raises(EngineError, match="not allowed"):
            guard.execute(
                "TransactWriteItems", {"TransactItems": [{"Put": put | {"Item": forged}}]}
            )

        engine = world.engine
        engine.execute("DeleteItem", put | {"Key": taken})

    @pytest.mark.parametrize("attribute", [*"cdhilmnsuy", "g0", "a0"])
    def test_no_attribute_beyond_those_of_a_plain_message_is_written(self, attribute: str) -> None:
        policy = self._policy("ours")
        for action in ("dynamodb:PutItem", "dynamodb:UpdateItem"):
            assert allows(policy, action, "Messages", "Q#ours#0", PARCEL)
            assert not allows(policy, action, "Messages", "Q#ours#0", {*PARCEL, attribute})
        assert attribute not in ATTRIBUTES

    @pytest.mark.parametrize("attribute", [*"ceghlqy", "later"])
    def test_a_record_believed_by_fan_out_or_the_meter_is_refused(self, attribute: str) -> None:
        policy, record = self._policy("ours"), {"pk", "sk", "t", "x", "b", "p", "expires_at"}
        put = "dynamodb:PutItem"
        assert allows(policy, put, "Messages", "L#ours#0", record)
        assert not allows(policy, put, "Messages", "L#ours#0", {*record, attribute})
        assert not allows(policy, put, "Messages", "L#theirs#0", record)
        assert not allows(policy, "dynamodb:DeleteItem", "Messages", "L#ours#0", {"pk", "sk"})
        assert not allows(policy, "dynamodb:BatchGetItem", "Messages", "L#theirs#0", ())

    @pytest.mark.parametrize(
        ("action", "table", "partition"),
        [
            ("PutItem", "Messages", "Q#theirs#0"),
            ("Query", "Messages", "Q#theirs#0"),
            ("Query", "Messages", "L#ours#0"),
            ("PutItem", "Messages", "R#ours#0"),
            ("DeleteItem", "Messages", "H#ours#0"),
            ("PutItem", "Messages", ""),
            ("Scan", "Messages", ""),
            ("Query", "Directory", "A#alice"),
            ("GetItem", "Directory", "A#bob"),
            ("GetItem", "Directory", "K#key"),
            ("PutItem", "Directory", "A#alice"),
            ("PutItem", "Directory", "deployment"),
            ("UpdateItem", "Usage", "C#0"),
        ],
    )
    def test_other_items_are_out_of_reach(self, action: str, table: str, partition: str) -> None:
        policy = self._policy("ours")
        assert not allows(policy, f"dynamodb:{action}", table, partition, {"pk", "sk"})

    def test_an_id_with_the_same_prefix_is_another_queue(self) -> None:
        policy = self._policy("ours")
        assert not allows(policy, "dynamodb:Query", "Messages", "Q#ours2#0", ())
        assert not allows(policy, "dynamodb:Query", "Messages", "W#ours2", ())

    def test_poison_in_one_queue_stops_no_other(self, world: World, alice: Client) -> None:
        queue, other = made(alice, partitions=1), made(alice, "other")
        queue.send("a")
        (parcel,) = world.items()
        other.send("b")
        poisons: list[dict[str, Any]] = [
            {"b": {"B": b"\xff"}},
            {"j": {"N": "-1"}},
            {"k": {"L": []}},
        ]
        for number, poison in enumerate(poisons):
            item = parcel | {"sk": {"S": f"000000000000{number}#x"}} | poison
            world.engine.execute("PutItem", {"TableName": world.tables.messages, "Item": item})

        queue.client.post("/queues/orders/messages/receive", {"max": 16, "wait_seconds": 0})
        sweep(world)

        assert other.bodies() == ["b"]
        own, world.own = world.own, None
        other.send("c")
        assert other.bodies() == ["c"]
        world.own = own
        for item in world.items():
            if item["pk"] == parcel["pk"]:
                key = {"pk": item["pk"], "sk": item["sk"]}
                request = {"TableName": world.tables.messages, "Key": key}
                world.engine.execute("DeleteItem", request)

    def _policy(
        self, queue_id: str, directory: str = "Directory", messages: str = "Messages"
    ) -> dict[str, Any]:
        tables = "arn:aws:dynamodb:local:0:table"
        return own_policy(
            "alice",
            [queue_id],
            directory_arn=f"{tables}/{directory}",
            messages_arn=f"{tables}/{messages}",
        )
