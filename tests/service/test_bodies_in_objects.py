"""Large sends into queues: their messages are in an object of the bucket, written first."""

from __future__ import annotations

import logging
import random
import re
from typing import Any

import pytest
from tests.service.buckets import Bucket, give_bucket
from tests.service.conftest import MakeQueue, Message, TestQueue
from tests.service.crashes import BrokenStore
from tests.service.test_costs import b64
from tests.service.test_published_objects import bodies

from cirrusmq.storage.parcels import LOG
from cirrusmq.storage.sizes import UNIT_BYTES, item_bytes
from cirrusmq_local.testing import World

MIN = 16_384
_chance = random.Random(1)


def large(count: int = 1, size: int = 20_000) -> list[dict[str, Any]]:
    """Messages that cannot be packed into less."""
    return [{"body_base64": b64(_chance.randbytes(size))} for _ in range(count)]


def parts(messages: list[Message]) -> list[tuple[str, str]]:
    return sorted((each["id"], each["body_base64"]) for each in messages)


def items(world: World, kind: str) -> list[dict[str, Any]]:
    return [item for item in world.items() if item["pk"]["S"].startswith(f"{kind}#")]


class TestSends:
    def test_a_large_send_costs_three_write_units_in_its_life(
        self, world: World, queue: TestQueue, bucket: Bucket
    ) -> None:
        sent = large(1, 60_000)
        held: list[Message] = []
        queue.receive()  # who receives is noted once in five minutes
        assert world.write_units(lambda: queue.try_send(sent)) == 1
        assert world.write_units(lambda: held.extend(queue.receive())) == 1
        assert held[0]["body_base64"] == sent[0]["body_base64"]
        assert world.write_units(lambda: queue.delete(*held)) == 1
        assert bucket.calls == ["put", "get"]

    def test_the_key_has_the_class_of_life_and_the_sends_id(
        self, queue: TestQueue, bucket: Bucket
    ) -> None:
        (sent,) = queue.try_send(large()).json["messages"]
        (key,) = bucket.keys
        assert re.fullmatch(rf"d05/[0-9a-f]{{3}}/{sent['id'][4:30]}", key)

    def test_messages_packed_small_are_in_the_table(
        self, world: World, queue: TestQueue, bucket: Bucket
    ) -> None:
        queue.send("x" * 60_000)
        queue.send(*("y" * 20 for _ in range(16)))
        assert bucket.calls == []
        assert len(items(world, LOG)) == 0
        assert len(queue.receive_all()) == 17

    def test_off_nothing_is_written_and_existing_objects_are_read(
        self, world: World, queue: TestQueue, bucket: Bucket
    ) -> None:
        sent = queue.try_send(large()).json["messages"]
        off = give_bucket(world, 0)
        off.__dict__ = bucket.__dict__
        queue.try_send(large())
        assert bucket.calls == ["put"]
        assert len(items(world, LOG)) == 1
        assert sent[0]["id"] in [each["id"] for each in queue.receive_all()]

    def test_all_messages_of_a_request_are_in_the_object_at_its_repetition_too(
        self, world: World, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        queue = make_queue(max_message_bytes=30_000)
        messages = [*large(2), *large(1, 40_000), *large(1)]
        messages[3]["deduplication_id"] = "k"
        queue.try_send([{**large()[0], "deduplication_id": "k"}])
        before = set(bucket.keys)
        attempt = f"01M7Q5CQG0{7:016d}"
        first = queue.try_send(messages, attempt=attempt, atomic=False)
        (key,) = set(bucket.keys) - before
        written = bucket.get(key)
        second = queue.try_send(messages, attempt=attempt, atomic=False)
        assert first.json == second.json
        assert [entry.get("error", {}).get("code") for entry in first.json["messages"]] == [
            *(None, None, "MessageTooLarge", None)
        ]
        assert bucket.get(key) == written
        assert written is not None
        assert len(written) > 100_000
        world.clock.pass_seconds(1)
        bodies = {each["body_base64"] for each in queue.receive_all()}
        assert {messages[0]["body_base64"], messages[1]["body_base64"]} < bodies

    def test_messages_with_delays_of_their_own_share_the_object(
        self, world: World, queue: TestQueue, bucket: Bucket
    ) -> None:
        messages = large(4)
        for number, message in enumerate(messages):
            message["delay_seconds"] = number % 2 * 5
        sent = queue.try_send(messages).json["messages"]
        soon = queue.receive_all()
        world.clock.pass_seconds(5)
        later = queue.receive_all()
        expected = [
            (entry["id"], message["body_base64"])
            for entry, message in zip(sent, messages, strict=True)
        ]
        assert len(soon) == len(later) == 2
        assert parts([*soon, *later]) == sorted(expected)
        assert bucket.calls.count("put") == 1

    @pytest.mark.parametrize("kind", ["ordered", "fair"])
    def test_messages_of_groups_share_the_object(
        self, world: World, make_queue: MakeQueue, bucket: Bucket, kind: str
    ) -> None:
        queue = make_queue(**{kind: True})
        messages = [{**each, "group": f"g{n % 3}"} for n, each in enumerate(large(6))]
        queue.try_send(messages)
        held = queue.receive_all()
        assert sorted((each["group"], each["body_base64"]) for each in held) == sorted(
            (each["group"], each["body_base64"]) for each in messages
        )
        assert all("own" not in each for each in held)
        assert bucket.calls.count("put") == 1
        queue.delete(*held)
        assert items(world, "Q") == []

    def test_a_parcel_of_16_stays_within_a_unit(
        self, world: World, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        make_queue("dead")
        queue = make_queue(
            "q" * 64,
            message_retention_seconds=1_296_000,
            retry={"policy": "custom", "waits": [43_199.999], "jitter": 0.9},
            dead_letter={"queue": "dead", "max_receives": 1_000},
        )
        queue.add_receiver("audit")
        messages = [
            {**each, "visibility_timeout_seconds": 43_000, "group": "g" * 128}
            for each in large(16, 15_000)
        ]
        assert queue.try_send(messages).status == 201
        world.settle()
        for source in ("default", "audit"):
            held = queue.receive(receiver=source)
            assert len(held) == 16
            queue.act("give-back", *held[3:5], delay_seconds=70)
        assert max(map(item_bytes, items(world, "Q"))) <= UNIT_BYTES
        assert bucket.keys[0].startswith("d16/")


class TestFailures:
    def test_the_object_is_there_before_the_parcel(
        self, world: World, queue: TestQueue, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = BrokenStore(world, monkeypatch)
        broken.break_after(0, applied=False)
        queue.try_send(large())
        broken.mend()
        queue.try_send(large())
        assert bucket.calls[0] == "put"
        bucket.refused = {"put"}
        while queue.try_send(large()).status != 201:
            pass
        # Every parcel that is there can be read.
        bucket.refused = set()
        world.clock.pass_seconds(31)
        held = queue.receive_all()
        assert sum(len(item["v"]["L"]) for item in items(world, "Q")) == len(held)

    @pytest.mark.parametrize("refusal", ["put", "answer lost"])
    def test_if_the_bucket_refuses_the_messages_go_into_a_log_record(
        self, world: World, queue: TestQueue, bucket: Bucket, refusal: str
    ) -> None:
        bucket.refused = {refusal}
        messages = large(2)
        assert queue.try_send(messages).status == 201
        bucket.lose()
        assert len(items(world, LOG)) == 1
        held = queue.receive_all()
        assert bodies(held) == bodies(messages)

    def test_a_repetition_meets_the_messages_stored_without_the_bucket(
        self, queue: TestQueue, bucket: Bucket
    ) -> None:
        messages, attempt = large(2), f"01M7Q5CQG0{8:016d}"
        bucket.refused = {"put"}
        first = queue.try_send(messages, attempt=attempt)
        bucket.refused = set()
        assert queue.try_send(messages, attempt=attempt).json == first.json
        assert len(queue.receive_all()) == 2

    def test_a_message_not_read_from_the_bucket_is_free_again(
        self, queue: TestQueue, bucket: Bucket
    ) -> None:
        queue.try_send(large())
        bucket.refused = {"get"}
        reply = queue.client.post(f"{queue.path}/messages/receive", {"wait_seconds": 0})
        assert (reply.status, reply.code) == (503, "Unavailable")
        bucket.refused = set()
        (held,) = queue.receive()
        assert held["receive_count"] == 1

    def test_other_messages_are_answered_meanwhile(
        self, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        queue = make_queue(partitions=1)
        queue.try_send(large())
        queue.send("small")
        queue.send("z" * 3_000 + "".join(map(str, range(900))))
        bucket.refused = {"get"}
        assert len(queue.receive()) == 2

    def test_a_message_without_its_object_stays_and_is_told(
        self,
        world: World,
        dead: TestQueue,
        make_queue: MakeQueue,
        bucket: Bucket,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        queue = make_queue(
            partitions=1,
            visibility_timeout_seconds=10,
            dead_letter={"queue": "dead", "max_receives": 1, "max_age_seconds": 300},
        )
        queue.try_send(large())
        bucket.lose()
        for _ in range(60):
            with caplog.at_level(logging.ERROR):
                assert queue.receive() == []
            world.clock.pass_seconds(11)
            world.run("sweep")
        assert "is missing or is none" in caplog.text
        assert dead.counts() == {}
        assert sum(queue.counts().values()) == 1

    def test_a_message_with_a_damaged_object_stays_and_is_told(
        self, queue: TestQueue, bucket: Bucket, caplog: pytest.LogCaptureFixture
    ) -> None:
        queue.try_send(large())
        (key,) = bucket.keys
        whole = bucket.get(key)
        assert whole is not None
        for damaged in (b"", whole[:40], b"\1\1" + whole[2:4] + b"\0\0", b"?" + whole[1:]):
            bucket.put(key, damaged)
            with caplog.at_level(logging.ERROR):
                assert queue.peek() == []
            assert "is missing or is none" in caplog.text
            caplog.clear()
        bucket.put(key, whole)
        assert len(queue.receive()) == 1

    def test_a_lasting_refusal_loses_nothing(
        self, queue: TestQueue, bucket: Bucket, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The key of encryption is disabled: sends go on, and receives wait."""
        queue.try_send(large())
        bucket.forbidden = True
        assert queue.try_send(large()).status == 201
        reply = queue.client.post(f"{queue.path}/messages/peek", {"max": 16})
        assert (reply.status, reply.code) == (503, "Unavailable")
        assert "the bucket refuses the object" in caplog.text
        bucket.forbidden = False
        assert [each["receive_count"] for each in queue.receive_all()] == [1, 1]

    def test_a_message_due_to_be_given_up_does_not_stop_others_while_the_bucket_refuses(
        self, world: World, dead: TestQueue, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        queue = make_queue(
            partitions=1,
            visibility_timeout_seconds=5,
            dead_letter={"queue": "dead", "max_receives": 1},
        )
        queue.try_send(large())
        queue.receive()
        world.clock.pass_seconds(6)
        queue.send("small")
        bucket.refused = {"get", "range", "copy"}
        held = queue.receive()
        assert [each["body"] for each in held] == ["small"]
        queue.delete(*held)
        world.settle()
        assert dead.receive() == []
        bucket.refused = set()
        world.clock.pass_seconds(6)  # it is not tried again at once
        queue.receive()
        world.settle()
        assert len(dead.receive()) == 1

    def test_an_ordered_message_is_not_received_again_while_it_cannot_be_given_up(
        self, world: World, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        dead = make_queue("dead", message_retention_seconds=1_296_000)
        queue = make_queue(
            ordered=True,
            visibility_timeout_seconds=5,
            dead_letter={"queue": "dead", "max_receives": 1},
        )
        queue.try_send([{**each, "group": "g"} for each in large(2)])
        queue.send("small", group="other")
        (first, *_) = (each for each in queue.receive_all() if each["group"] == "g")
        world.clock.pass_seconds(6)
        bucket.refused = {"copy"}
        assert [each for each in queue.receive_all() if each["group"] == "g"] == []
        bucket.refused = set()
        queue.receive_all()
        assert first["id"] in [each["id"] for each in dead.receive_all()]


class TestReads:
    def test_one_call_reads_the_taken_messages_of_an_object(
        self, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        queue = make_queue(partitions=1)
        queue.try_send(large(16, 10_000))
        assert len(queue.receive(5)) == 5
        assert bucket.calls == ["put", "get"]

    def test_one_of_many_large_ones_is_read_by_a_range(
        self, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        queue = make_queue(partitions=1)
        messages = large(16, 15_000)
        queue.try_send(messages)
        assert bodies(queue.receive(1)) == [messages[0]["body_base64"]]
        assert bucket.calls == ["put", "range", "range"]
        assert bodies(queue.receive(2)) == bodies(messages[1:3])
        assert bucket.calls[3:] == ["range", "range"]

    def test_peeks_and_repeated_receives_read_it(self, queue: TestQueue, bucket: Bucket) -> None:
        messages = large(2)
        queue.try_send(messages)
        expected = bodies(messages)
        assert bodies(queue.peek()) == expected
        attempt = f"01M7Q5CQG0{9:016d}"
        held = queue.receive(attempt=attempt)
        again = queue.receive(attempt=attempt, repeat=True)
        assert bodies(held) == expected
        assert again == held

    def test_a_function_gets_it(self, world: World, make_queue: MakeQueue, bucket: Bucket) -> None:
        queue = make_queue(invoke={"function": "handler"})
        messages = large(2)
        queue.try_send(messages)
        world.settle()
        assert len([record for batch in world.batches for record in batch]) == 2
        assert queue.counts() == {}


class TestLife:
    def test_dead_letters_and_redrives_outliving_it_have_it_copied(
        self, world: World, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        dead = make_queue("dead", message_retention_seconds=10 * 86_400)
        queue = make_queue(
            message_retention_seconds=2 * 86_400,
            visibility_timeout_seconds=5,
            dead_letter={"queue": "dead", "max_receives": 1},
        )
        messages = large(3)
        queue.try_send(messages)
        expected = sorted(bodies(messages))
        for _ in range(3):
            world.clock.pass_seconds(1.5 * 86_400)
            assert len(queue.receive_all()) == 3
            world.clock.pass_seconds(6)
            assert queue.receive_all() == []
            world.settle()
            world.clock.pass_seconds(9.8 * 86_400)
            assert sorted(bodies(dead.peek())) == expected
            shown = dead.run("redrive")
            assert (shown["state"], shown["done"]) == ("succeeded", 3)
        world.clock.pass_seconds(1.9 * 86_400)
        assert sorted(bodies(queue.receive_all())) == expected
        assert {key[:3] for key in bucket.keys} == {"d03"}

    def test_a_dead_letter_within_the_objects_life_needs_no_copy(
        self, dead: TestQueue, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        queue = make_queue(dead_letter={"queue": "dead", "max_receives": 9})
        messages = large(2)
        queue.try_send(messages)
        held = queue.receive()
        queue.act("dead-letter", held[1])
        (letter,) = dead.receive()
        assert letter["body_base64"] == messages[1]["body_base64"]
        assert "copy" not in bucket.calls

    def test_a_short_life_between_does_not_hide_the_objects_age(
        self, world: World, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        """Moved without a copy, a message has a newer time of sending than its object."""
        dead = make_queue("dead", message_retention_seconds=3_600)
        queue = make_queue(dead_letter={"queue": "dead", "max_receives": 9})
        queue.try_send(large())
        world.clock.pass_seconds(3 * 86_400)
        queue.act("dead-letter", *queue.receive())
        assert "copy" not in bucket.calls
        dead.run("redrive")
        assert bucket.calls[-1] == "copy"
        world.clock.pass_seconds(4 * 86_400 - 60)
        assert len(queue.receive()) == 1

    def test_a_message_is_not_moved_while_its_object_cannot_be_copied(
        self, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        make_queue("dead", message_retention_seconds=1_296_000)
        queue = make_queue(dead_letter={"queue": "dead", "max_receives": 9})
        queue.try_send(large())
        held = queue.receive()
        bucket.refused = {"copy"}
        receipts = {"receipts": [each["receipt"] for each in held]}
        reply = queue.client.post(f"{queue.path}/messages/dead-letter", receipts)
        assert reply.status == 503
        bucket.refused = set()
        assert queue.act("dead-letter", *held)["failed"] == []

    def test_given_back_messages_and_retries_keep_it(
        self, world: World, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        make_queue("dead")
        queue = make_queue(
            partitions=1,
            retry={"policy": "custom", "waits": [90], "jitter": 0},
            dead_letter={"queue": "dead", "max_receives": 9},
        )
        messages = large(3)
        queue.try_send(messages)
        held = queue.receive()
        queue.give_back(*held[1:], delay_seconds=70)
        queue.give_back(held[0])
        world.clock.pass_seconds(95)
        again = queue.receive_all()
        assert parts(again) == parts(held)
        assert all(each["receive_count"] == 2 for each in again)

    def test_a_rewind_has_it_again(
        self, world: World, make_queue: MakeQueue, bucket: Bucket, now: Any
    ) -> None:
        queue = make_queue(rewind_seconds=345_600)
        queue.try_send(large(2))
        to = now(-1)
        held = queue.receive_all()
        queue.delete(*held)
        world.clock.pass_seconds(4 * 86_400 - 100)
        queue.run("rewind", to=to)
        assert parts(queue.receive_all()) == parts(held)

    def test_an_object_lives_as_long_as_its_messages(
        self, world: World, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        for days in (1, 4, 15):
            queue = make_queue(f"days{days}", message_retention_seconds=days * 86_400)
            queue.try_send(large())
            world.clock.pass_seconds(days * 86_400 - 1)
            assert len(queue.receive()) == 1


class TestReceivers:
    def test_receivers_get_it_by_a_record_without_bodies(
        self, world: World, queue: TestQueue, bucket: Bucket
    ) -> None:
        queue.add_receiver("audit")
        queue.add_receiver("tagged", filter={"tags": ["a"]})
        queue.add_receiver("priced", filter={"sql": "price > 10"})
        messages = large(3)
        messages[0]["tags"] = ["a", "b"]
        messages[1]["attributes"] = {"price": "11"}
        messages[1]["tags"] = ["b"]
        queue.try_send(messages)
        world.settle()
        (record,) = items(world, LOG)
        assert item_bytes(record) < UNIT_BYTES
        for receiver, expected in {
            "default": messages,
            "audit": messages,
            "tagged": messages[:1],
            "priced": messages[1:2],
        }.items():
            held = queue.receive(receiver=receiver)
            assert bodies(held) == bodies(expected), receiver

    def test_ordered_receivers_and_later_ones_get_it(
        self, world: World, make_queue: MakeQueue, bucket: Bucket
    ) -> None:
        queue = make_queue(ordered=True)
        queue.add_receiver("audit")
        messages = [{**each, "group": "g"} for each in large(3)]
        for each in messages:
            queue.try_send([each])
        world.settle()
        queue.add_receiver("late", start="earliest")
        for receiver in ("audit", "late"):
            assert bodies(queue.receive(receiver=receiver)) == bodies(messages)


def test_an_exported_parcel_says_the_same_of_its_messages(world: World) -> None:
    """All that the data jobs read: they sum states, sizes and times."""
    read = ("v", "w", "r", "z", "t", "x", "expires_at")
    shown = []
    for account, least in (("alice", 0), ("bob", 1)):
        give_bucket(world, least)
        client = world.client(account)
        client.put("/queues/work", {"partitions": 1})
        client.send("work", "x" * 30_000, "y" * 9_000, attributes={"a": "b"})
        client.receive("work", 1)
        (item,) = [item for item in items(world, "Q") if ("y" in item) == bool(least)]
        shown.append({name: item.get(name) for name in read})
    assert shown[0] == shown[1]


def test_usage_is_the_same_as_without_the_bucket(make_queue: MakeQueue, world: World) -> None:
    def use(queue: TestQueue) -> None:
        queue.add_receiver("audit")
        queue.try_send([{"body_base64": b64(bytes([n]) * 9_000)} for n in range(4)])
        world.settle()
        held = queue.receive()
        queue.delete(*held[:2])
        queue.act("dead-letter", held[2])
        world.settle()

    make_queue("dead")
    kept = []
    for name, least in (("plain", 0), ("object", 1)):
        bucket = give_bucket(world, least)
        queue = make_queue(name, dead_letter={"queue": "dead", "max_receives": 5})
        use(queue)
        assert bool(bucket.keys) == bool(least)
        shown = queue.show()
        usage = [
            {kind: value for kind, value in record["M"].items() if kind not in ("resource", "id")}
            for item in world.items("usage")
            for record in item.get("records", {"L": []})["L"]
            if record["M"]["resource"]["S"].endswith(name)
        ]
        kept.append((shown["counts"], sorted(map(str, usage))))
    assert kept[0] == kept[1]
