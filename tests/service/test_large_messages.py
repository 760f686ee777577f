"""Messages of up to 4 MiB: through every way that a message may take, within Lambda's limits."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.service.buckets import give_bucket
from tests.service.conftest import LAMBDA_BYTES, MakeQueue, Message, TestQueue
from tests.service.topics import Schedules, TestSubscription, TestTopic, log_bodies

from cirrusmq.access.keys import SIGNING_ID, Caller
from cirrusmq.base import limits
from cirrusmq.base.shapes import read_values
from cirrusmq.model.message import OF_SDKS
from cirrusmq.publishing.publish import PublishRequest, publish
from cirrusmq.storage.sizes import UNIT_BYTES, item_bytes
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_local.testing import Client, Subscriber, World

pytestmark = pytest.mark.usefixtures("envelopes")
MAX = 4_194_304
_chance = random.Random(14)


def noise(size: int = MAX) -> dict[str, str]:
    """A message of bytes that nothing packs: 5.6 MB of JSON."""
    return {"body_base64": base64.b64encode(_chance.randbytes(size)).decode()}


def text(least: int, limit: int, size: int = MAX) -> dict[str, str]:
    """A message of that many characters of ASCII, each by chance from `least` to before `limit`."""
    to = bytes(least + code % (limit - least) for code in range(256))
    return {"body": _chance.randbytes(size).translate(to).decode()}


def repeated(least: int, limit: int) -> dict[str, str]:
    """A message of other characters, of as many bytes as one may have."""
    piece = "".join(map(chr, range(least, limit)))
    size = len(piece.encode())
    return {"body": piece * (MAX // size)}


KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "bytes": noise,
    "all of ASCII": lambda: text(0, 128),
    "control characters": lambda: text(1, 32),
    "quotes": lambda: {"body": '"' * MAX},
    "Chinese": lambda: repeated(0x4E00, 0x9FFF),
    "emoji": lambda: repeated(0x1F300, 0x1F600),
}


LIKE_THESE = ("all of ASCII", "control characters", "quotes", "emoji")


@pytest.fixture
def alice(world: World) -> Client:
    """She gzips her requests, and takes gzipped answers."""
    made = world.client("alice", admin=True)
    made.gzips = True
    return made


@pytest.fixture
def queue(make_queue: MakeQueue) -> TestQueue:
    return make_queue(partitions=1, max_message_bytes=MAX)


@pytest.fixture
def topic(alice: Client) -> TestTopic:
    return TestTopic(alice, max_message_bytes=MAX)


def content(message: Message) -> dict[str, str]:
    return {name: message[name] for name in ("body", "body_base64") if name in message}


def without_gzip(queue: TestQueue) -> TestQueue:
    """As one who takes no gzipped answers calls it."""
    plain = Client(queue.client.world, queue.client.authorization)
    return TestQueue(plain, queue.name)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "kind",
    [
        *("bytes", "Chinese"),
        *(pytest.param(kind, marks=pytest.mark.long) for kind in LIKE_THESE),
    ],
)
def test_the_largest_message_of_any_kind_is_sent_and_received(
    world: World, queue: TestQueue, kind: str
) -> None:
    sent = KINDS[kind]()
    assert queue.try_send([sent]).status == 201
    assert max(map(item_bytes, world.items())) <= UNIT_BYTES
    (peeked,) = queue.peek()
    (received,) = queue.receive()
    assert content(received) == content(peeked) == sent
    assert world.write_units(lambda: queue.delete(received)) == 1


@pytest.mark.long
@pytest.mark.parametrize("world", [True], indirect=True, ids=["direct"])
def test_so_it_is_at_the_functions_own_urls(queue: TestQueue, topic: TestTopic) -> None:
    group, sent = topic.subscribe(), noise()
    assert queue.try_send([sent]).status == 201
    assert content(queue.receive()[0]) == sent
    topic.try_publish([sent])
    topic.client.world.settle()
    assert content(group.receive()[0]) == sent


def test_a_fitting_answer_is_plain_and_a_larger_one_is_gzipped(
    queue: TestQueue, envelopes: list[int]
) -> None:
    queue.send("x" * MAX)
    (message,) = without_gzip(queue).receive()
    assert message["body"] == "x" * MAX
    assert max(envelopes) > MAX
    assert queue.try_send([noise()]).status == 201
    request = {"max": 16, "wait_seconds": 0}
    reply = queue.client.post(f"{queue.path}/messages/receive", request)
    assert reply.headers["Content-Encoding"] == "gzip"


def test_whoever_takes_no_gzip_is_told_before_anything_is_claimed(
    world: World, queue: TestQueue
) -> None:
    queue.try_send([noise()])
    plain = without_gzip(queue)
    before = world.items()
    for verb, request in (
        ("receive", {"max": 16, "wait_seconds": 0}),
        ("receive", {"max": 1, "wait_seconds": 5}),
        ("peek", {"max": 16}),
    ):
        reply = plain.client.post(f"{queue.path}/messages/{verb}", request)
        assert (reply.status, reply.code) == (413, "MessageTooLarge")
        assert "Accept-Encoding: gzip" in reply.json["detail"]
    assert world.items() == before
    (message,) = queue.receive()
    assert message["receive_count"] == 1


def test_and_still_gets_the_others(queue: TestQueue) -> None:
    large = noise()
    queue.try_send([large])
    queue.send("small")
    plain = without_gzip(queue)
    assert [message["body"] for message in plain.peek()] == ["small"]
    (small,) = plain.receive()
    receipts = [small["receipt"]]
    request = {"max": 16, "wait_seconds": 0, "delete": receipts}
    reply = plain.client.post(f"{queue.path}/messages/receive", request)
    assert (reply.status, reply.json["deleted"]) == (200, receipts)
    assert reply.json["error"]["code"] == "MessageTooLarge"
    assert content(queue.receive()[0]) == large


@pytest.mark.long
@pytest.mark.parametrize("ordered", [False, True])
def test_a_receive_of_many_large_messages_answers_fewer(
    world: World, make_queue: MakeQueue, ordered: bool
) -> None:
    queue = make_queue(partitions=1, max_message_bytes=MAX, ordered=ordered)
    fields = {"group": "g"} if ordered else {}
    sent = [{**noise(1_500_000), **fields} for _ in range(5)] + [{**noise(), **fields}]
    for message in sent:
        assert queue.try_send([message]).status == 201
        world.clock.pass_seconds(0.01)
    answers = []
    while some := queue.receive():
        answers.append([content(message) for message in some])
        queue.delete(*some)
    assert [len(answer) for answer in answers] == [2, 2, 1, 1]
    expected = [{"body_base64": message["body_base64"]} for message in sent]
    assert [message for answer in answers for message in answer] == expected


def test_a_full_batch_comes_as_fast_as_answers_hold(queue: TestQueue) -> None:
    sent = [noise(MAX // 16) for _ in range(16)]
    assert queue.try_send(sent).status == 201
    answers = []
    while some := queue.receive():
        answers.append(some)
    assert [len(answer) for answer in answers] == [13, 3]
    assert [content(each) for answer in answers for each in answer] == sent


@pytest.mark.long
def test_a_repeated_receive_has_the_same_message(queue: TestQueue) -> None:
    queue.try_send([noise()])
    attempt = "01M7Q5CQG00000000000000001"
    (first,) = queue.receive(attempt=attempt)
    (again,) = queue.receive(attempt=attempt, repeat=True)
    assert again == first


@pytest.mark.long
def test_the_results_of_deletes_have_room_beside_the_largest_message(queue: TestQueue) -> None:
    queue.try_send([text(0, 128)])
    receipts = ["".join(_chance.choices("\x01\x02\x03abcdefgh", k=2_047)) for _ in range(16)]
    request = {"max": 16, "wait_seconds": 0, "delete": receipts}
    reply = queue.client.post(f"{queue.path}/messages/receive", request)
    assert [each["receipt"] for each in reply.json["failed"]] == receipts
    assert len(reply.json["messages"]) == 1


class TestRefusals:
    @pytest.mark.few(1)
    @pytest.mark.parametrize("atomic", [True, False])
    def test_a_message_larger_than_any_answer_is_refused_at_the_send(
        self, world: World, queue: TestQueue, topic: TestTopic, atomic: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        topic.subscribe()
        monkeypatch.setattr(limits, "GZIPPED_ANSWER_BYTES", 600_000)
        before = world.items()
        messages: list[Any] = [text(0, 128, 700_000)]
        for reply in (
            queue.try_send(messages, atomic=atomic),
            topic.try_publish(messages, atomic=atomic),
        ):
            told = reply.json if atomic else reply.json["messages"][0]["error"]
            assert (told["status"], told["code"]) == (413, "MessageTooLarge")
            assert told["parameter"] == "messages[0].body"
            assert "at most 600,000" in told["detail"]
        assert world.items() == before

    def test_a_request_too_large_for_lambda_is_refused_by_the_gateway(
        self, queue: TestQueue
    ) -> None:
        queue.client.gzips = False
        reply = queue.try_send([text(1, 32)])
        assert (reply.status, reply.json) == (413, {"message": "Request Too Long"})

    def test_without_the_bucket_the_limits_are_those_of_the_tables(
        self, world: World, alice: Client, queue: TestQueue, topic: TestTopic
    ) -> None:
        give_bucket(world, 0)
        told = "must be an integer from 1,024 to 262,144"
        for path in ("/queues/other", "/topics/other"):
            assert alice.put(path, {"max_message_bytes": 262_144}).status == 201
        for call, path in (
            (alice.put, "/queues/more"), (alice.patch, "/queues/other"),
            (alice.put, "/topics/more"), (alice.patch, "/topics/other"),
        ):  # fmt: skip
            reply = call(path, {"max_message_bytes": 262_145})
            assert (reply.status, reply.json["parameter"]) == (400, "max_message_bytes")
            assert told in reply.json["detail"]
            assert "BodiesInS3From" in reply.json["detail"]
        assert alice.patch("/queues/orders", {"description": "as before"}).status == 200
        for reply in (
            queue.try_send([{"body": "x" * 262_145}]),
            topic.try_publish([{"body": "x" * 262_145}]),
        ):
            assert (reply.status, reply.code) == (413, "BatchTooLarge")
        assert queue.try_send([{"body": "x" * 262_144}]).status == 201
        assert queue.try_send([{"body": "x" * 2_000_000}]).code == "RequestTooLarge"


class TestOtherWays:
    @pytest.mark.long
    def test_receivers_dead_letters_redrives_and_rewinds(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        dead = make_queue("dead", partitions=1)  # its own bound is of sends alone
        queue = make_queue(
            partitions=1, max_message_bytes=MAX, rewind_seconds=3_600,
            dead_letter={"queue": "dead", "max_receives": 1},
        )  # fmt: skip
        queue.add_receiver("copy")
        sent = noise()
        queue.try_send([sent])
        world.settle()
        (copied,) = queue.receive(receiver="copy")
        assert content(copied) == sent
        (first,) = queue.receive()
        queue.act("dead-letter", first)
        (held,) = dead.receive()
        assert (content(held), held["id"]) == (sent, first["id"])
        dead.give_back(held)
        assert dead.run("redrive")["done"] == 1
        (back,) = queue.receive()
        queue.delete(back)
        to = first["sent_at"]
        assert queue.run("rewind", to=to)["state"] == "succeeded"
        (again,) = queue.receive()
        assert (content(again), again["id"]) == (sent, first["id"])

    @pytest.mark.parametrize(
        "kind", ["bytes", pytest.param("all of ASCII", marks=pytest.mark.long)]
    )
    def test_groups_and_queues_of_a_topic_and_its_log(
        self,
        world: World,
        topic: TestTopic,
        group: TestSubscription,
        make_queue: MakeQueue,
        kind: str,
    ) -> None:
        loud = topic.subscribe("loud", mode="broadcasting")
        target = make_queue("target")
        topic.subscribe("queue", protocol="queue", endpoint="target")
        sent, behind = KINDS[kind](), {"body": "behind"}
        for message in (sent, behind):
            assert topic.try_publish([message]).status == 201
            world.clock.pass_seconds(0.01)
        world.settle()
        records = [item for item in world.items() if "g" in item]
        assert max(map(item_bytes, records)) < 2 * UNIT_BYTES
        for each in (group, target):
            got = [content(message) for message in each.receive_all()]
            assert sorted(got, key=str) == sorted([sent, behind], key=str)
        world.clock.pass_seconds(10)
        for log in (topic.log, loud.log):
            page = log()
            assert [content(message) for message in page["messages"]] == [sent]
            assert log_bodies(log(after=page["cursor"])) == ["behind"]

    def test_attributes_of_an_sdk_to_their_bound_are_in_the_record_and_arrive(
        self, world: World, topic: TestTopic, group: TestSubscription, make_queue: MakeQueue
    ) -> None:
        target = make_queue("target", partitions=1)
        topic.subscribe("to-queue", protocol="queue", endpoint="target")
        tags = [chr(0x1F300 + n) * 64 for n in range(10)]
        names = [f"{n:_>64}" for n in range(16)]
        value = 262_144 // 16 // 16 - 64
        values = {name: noise(value)["body_base64"] for name in names}
        attributes = {name: {"base64": held} for name, held in values.items()}
        sent = [{**noise(20_000), "attributes": attributes, "tags": tags} for _ in range(16)]
        request = read_values({"messages": sent}, PublishRequest)
        sender = Caller(account="alice", key_id=f"{SIGNING_ID}{'0' * 32}")
        found_topic = get_topic(world.core, "alice", topic.name)
        publish(world.core, found_topic, sender, request, OF_SDKS)
        world.settle()
        (record,) = (item for item in world.items() if "g" in item and "e" in item)
        assert item_bytes(record) < 400 * UNIT_BYTES
        for reader in (group, target):
            found = reader.receive_all()
            assert [each["attributes"] for each in found] == [attributes] * 16
            assert [each["tags"] for each in found] == [tags] * 16

    def test_a_log_reader_without_gzip_is_told(self, world: World, topic: TestTopic) -> None:
        topic.subscribe("group")
        topic.try_publish([{"body": "before"}])
        world.clock.pass_seconds(0.01)
        topic.try_publish([noise()])
        world.clock.pass_seconds(10)
        plain = Client(world, topic.client.authorization)
        page = plain.get(f"{topic.path}/messages").json
        assert log_bodies(page) == ["before"]
        reply = plain.get(f"{topic.path}/messages", f"after={page['cursor']}")
        assert (reply.status, reply.code) == (413, "MessageTooLarge")

    @pytest.mark.long
    def test_a_look_up_and_a_trace_show_the_body_only_with_gzip(
        self, world: World, queue: TestQueue, topic: TestTopic
    ) -> None:
        topic.subscribe("group")
        sent = noise()
        (in_queue,) = queue.try_send([sent]).json["messages"]
        (in_topic,) = topic.try_publish([sent]).json["messages"]
        plain = Client(world, queue.client.authorization)
        for path in (
            f"{queue.path}/messages/{in_queue['id']}",
            f"{topic.path}/messages/{in_topic['id']}",
        ):
            assert sent["body_base64"] in queue.client.get(path, "body=true").text
            assert plain.get(path).status == 200
            reply = plain.get(path, "body=true")
            assert (reply.status, reply.code) == (413, "MessageTooLarge")

    def test_half_messages_must_fit_into_one_answer_to_the_checker(self, topic: TestTopic) -> None:
        transaction = {"group": "shop"}
        fits = topic.try_publish([{"body": "x" * 262_144}], transaction=transaction)
        assert fits.status == 201
        reply = topic.try_publish([{"body": "x" * 262_145}], transaction=transaction)
        assert (reply.status, reply.code) == (413, "BatchTooLarge")

    @pytest.mark.few(1)
    @pytest.mark.parametrize("size", [MAX // 16, pytest.param(MAX, marks=pytest.mark.long)])
    @pytest.mark.parametrize("content_format", ["json", "simplified"])
    def test_a_url_gets_them_and_gets_them_again(
        self, world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules,
        content_format: str, size: int,
    ) -> None:  # fmt: skip
        """`size`: of the text, which has six times as many bytes in JSON."""
        topic.subscribe("hook", protocol="http", content_format=content_format)
        failing = True
        world.endpoint = lambda url: "status 500" if failing else None
        sent = [noise(), text(1, 32, size)]
        for message in sent:
            assert topic.try_publish([message]).status == 201
            world.clock.pass_seconds(0.01)
        world.settle()
        failing = False
        schedules.pass_seconds(10)
        bodies = [body for _, _, body in world.posts]
        assert len(bodies) >= 3
        raw = base64.b64decode(sent[0]["body_base64"]), sent[1]["body"].encode()
        if content_format == "simplified":
            assert (bodies[0], bodies[-1]) == raw
        else:
            assert json.loads(bodies[0])["msgBody"] == sent[0]["body_base64"]
            assert json.loads(bodies[-1])["msgBody"] == sent[1]["body"]

    def test_a_function_gets_as_much_as_its_event_holds(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(max_message_bytes=MAX, invoke={"function": "handler"})
        sent = noise()
        assert queue.try_send([sent]).status == 201
        world.settle()
        ((record,),) = world.batches
        assert record["body"] == sent["body_base64"]
        assert len(json.dumps({"Records": [record]})) < LAMBDA_BYTES
        reply = queue.try_send([{"body": "\x01" * 1_100_000}])
        assert (reply.status, reply.code) == (413, "MessageTooLarge")
        assert "event of the queue's function" in reply.json["detail"]

    def test_a_message_too_large_for_an_event_stays_and_the_others_come(
        self, world: World, make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
    ) -> None:
        queue = make_queue(partitions=1, max_message_bytes=MAX)
        queue.send("\x01" * 1_100_000)
        queue.patch(invoke={"function": "handler"})
        world.clock.pass_seconds(1)
        queue.send("small")
        world.settle()
        assert [[record["body"] for record in batch] for batch in world.batches] == [["small"]]
        assert "more than the event of its function has" in caplog.text
        assert [message["receive_count"] for message in queue.receive()] == [1]


def test_compressible_messages_are_small_in_the_bucket_and_never_in_the_tables(
    world: World, queue: TestQueue
) -> None:
    rows = json.dumps([{"row": number, "state": "done"} for number in range(110_000)])
    queue.send(rows[:MAX])
    assert max(map(item_bytes, world.items())) <= UNIT_BYTES
    assert queue.receive()[0]["body"] == rows[:MAX]
