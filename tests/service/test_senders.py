"""Who sent a message: its account, and on a queue's wish the access key, for that account alone."""

from __future__ import annotations

from typing import Any

from tests.service.conftest import MakeQueue, TestQueue
from tests.service.topics import TestSubscription, TestTopic

from cirrusmq.base.reserved_attributes import FROM
from cirrusmq_local.testing import Client, World

ORDERS = "/queues/alice:orders"


def let_send(queue: TestQueue, permission: str = "send") -> None:
    reply = queue.client.put(f"{queue.path}/grants/bob", {"permission": permission})
    assert reply.status == 200, reply.text


def sent_by(message: dict[str, Any]) -> tuple[str, str | None]:
    return message["sender"], message.get("sender_key")


def key_of(client: Client) -> str:
    return client.authorization.removeprefix("Bearer ").partition(":")[0]


def test_a_message_names_its_senders_account(queue: TestQueue, bob: Client) -> None:
    let_send(queue)
    queue.send("own")
    bob.post(f"{ORDERS}/messages", {"messages": [{"body": "bobs"}]})

    found = {each["body"]: each for each in queue.receive()}

    assert {body: sent_by(each) for body, each in found.items()} == {
        "own": ("alice", None),
        "bobs": ("bob", None),
    }
    assert found["bobs"]["attributes"] == {}


def test_nothing_is_stored_of_a_sender_of_the_queues_own_account(
    world: World, queue: TestQueue
) -> None:
    queue.send("own")

    assert FROM not in str(world.items())


def test_a_senders_account_costs_no_unit(world: World, queue: TestQueue, bob: Client) -> None:
    let_send(queue)
    message = {"messages": [{"body": "x" * 100}]}

    for client in (queue.client, bob):
        client.post(f"{ORDERS}/messages", message)  # the first ones read the queue and the grant
    own = world.units(lambda: queue.client.post(f"{ORDERS}/messages", message))
    by_grant = world.units(lambda: bob.post(f"{ORDERS}/messages", message))

    assert by_grant == own == (1, 0)


def test_every_view_shows_the_sender(queue: TestQueue, bob: Client) -> None:
    let_send(queue)
    reply = bob.post(f"{ORDERS}/messages", {"messages": [{"body": "bobs"}]})
    id = reply.json["messages"][0]["id"]

    (peeked,) = queue.client.post(f"{queue.path}/messages/peek", {}).json["messages"]
    found = queue.client.get(f"{queue.path}/messages/{id}", "body=true").json["message"]

    assert [sent_by(each) for each in (peeked, found)] == [("bob", None)] * 2


class TestKeys:
    """`sender: key` of a queue or topic."""

    def test_the_key_is_shown_to_its_own_account_alone(
        self, make_queue: MakeQueue, bob: Client
    ) -> None:
        queue = make_queue(sender="key")
        assert queue.client.get(queue.path).json["sender"] == "key"
        queue.send("own")
        let_send(queue)
        bob.post(f"{ORDERS}/messages", {"messages": [{"body": "bobs"}]})
        let_send(queue, permission="receive")

        seen = queue.client.post(f"{queue.path}/messages/peek", {"max": 16}).json["messages"]
        bobs = bob.post(f"{ORDERS}/messages/peek", {"max": 16}).json["messages"]

        alice_key, bob_key = key_of(queue.client), key_of(bob)
        assert {each["body"]: sent_by(each) for each in seen} == {
            "own": ("alice", alice_key),
            "bobs": ("bob", None),
        }
        assert {each["body"]: sent_by(each) for each in bobs} == {
            "own": ("alice", None),
            "bobs": ("bob", bob_key),
        }

    def test_the_wish_holds_for_later_messages(self, queue: TestQueue) -> None:
        queue.send("before")
        queue.client.patch(queue.path, {"sender": "key"})
        queue.send("after")

        keys = {each["body"]: sent_by(each)[1] for each in queue.receive()}

        assert keys == {"before": None, "after": key_of(queue.client)}


class TestTopics:
    """What is published by a grant keeps its sender on every way."""

    def test_copies_name_their_publisher(
        self, world: World, topic: TestTopic, make_queue: MakeQueue, bob: Client
    ) -> None:
        queue = make_queue("target")
        topic.client.patch(topic.path, {"sender": "key"})
        group = topic.subscribe("group")
        topic.subscribe("to-queue", protocol="queue", endpoint="target")
        topic.client.put(f"{topic.path}/grants/bob", {"permission": "publish"})
        bob.post("/topics/alice:news/messages", {"messages": [{"body": "bobs"}]})
        topic.publish("own")
        world.settle()

        expected = {"bobs": ("bob", None), "own": ("alice", key_of(topic.client))}

        for reader in (group, queue):
            assert {each["body"]: sent_by(each) for each in reader.receive_all()} == expected
        world.clock.pass_seconds(5)
        log = topic.log(after="2020-01-01T00:00:00Z")["messages"]
        assert {each["body"]: sent_by(each) for each in log} == expected

    def test_a_half_message_is_of_its_preparer(
        self, world: World, topic: TestTopic, group: TestSubscription, bob: Client
    ) -> None:
        topic.client.put(f"{topic.path}/grants/bob", {"permission": "publish"})
        given = {"messages": [{"body": "half"}], "transaction": {"check_after_seconds": 60}}
        half = bob.post("/topics/alice:news/messages", given).json["transaction"]
        bob.post("/topics/alice:news/half/commit", {"handle": half["handle"]})
        world.settle()

        assert [sent_by(each) for each in group.receive()] == [("bob", None)]

    def test_no_filter_sees_the_sender(self, world: World, topic: TestTopic, bob: Client) -> None:
        by_name = topic.subscribe("by-name", filter={"sql": f"{FROM} IS NOT NULL"})
        without = topic.subscribe("without", filter={"sql": f"{FROM} IS NULL"})
        topic.client.put(f"{topic.path}/grants/bob", {"permission": "publish"})
        bob.post("/topics/alice:news/messages", {"messages": [{"body": "bobs"}]})
        world.settle()

        assert (len(by_name.receive()), len(without.receive())) == (0, 1)


def test_dead_letters_and_redriven_messages_keep_their_sender(
    world: World, make_queue: MakeQueue, dead: TestQueue, bob: Client
) -> None:
    queue = make_queue(dead_letter={"queue": "dead", "max_receives": 5})
    let_send(queue)
    bob.post(f"{ORDERS}/messages", {"messages": [{"body": "bobs"}]})

    queue.act("dead-letter", *queue.receive(), reason="bad")
    assert [sent_by(each) for each in dead.receive(visibility_timeout_seconds=1)] == [("bob", None)]
    world.clock.pass_seconds(2)
    assert queue.client.post("/queues/dead/redrive", {}).status == 202
    world.settle()

    assert [sent_by(each) for each in queue.receive()] == [("bob", None)]


def test_a_function_is_told_the_sender(world: World, make_queue: MakeQueue, bob: Client) -> None:
    got: list[dict[str, Any]] = []
    world.handle = got.append
    queue = make_queue(invoke={"function": "handler"})
    let_send(queue)
    bob.post(f"{ORDERS}/messages", {"messages": [{"body": "bobs"}]})
    world.settle()

    assert got[0]["Records"][0]["attributes"]["SenderId"] == "bob"
