"""Every kind of item, written by a later release and then by this one: nothing unknown is lost.

One tour goes through all that writes, in a store where each new item has an attribute, and each
document a member, that this release does not know (`later_store.py`). Kinds that may lose them say
why (`kinds.py`). Where messages move to parcels of their own is shown in `test_later_parcels.py`.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.service.conftest import TestQueue
from tests.service.half import Producers
from tests.service.kinds import KINDS, Kind, kind_of
from tests.service.later_store import LaterStore
from tests.service.test_repeated_sends import attempt
from tests.service.topics import Schedules, TestTopic

import cirrusmq
from cirrusmq.access import keys, shares
from cirrusmq.fanout import parking_lot
from cirrusmq.fanout.parked_items import parked_item
from cirrusmq.invoking import slots
from cirrusmq.model.answer_sample import AnswerSample
from cirrusmq.model.invoke import Invoke
from cirrusmq.model.source import queue_source
from cirrusmq.queues.queues import get_queue
from cirrusmq.queues.wake_ups.items import put_waiting, put_wake_up
from cirrusmq.receiving import rounds
from cirrusmq.receiving.heads.items import put_mark
from cirrusmq.receiving.heads.watermark import HeadMark
from cirrusmq.storage import lease
from cirrusmq.subscriptions.failed_answers import FailedAnswer, keep_answer
from cirrusmq_local.testing import Client, World

LARGE = random.Random(1).randbytes(3_000).hex()
KEYS = re.compile(r"([A-Z])#")


def resources(alice: Client) -> None:
    """Documents and counts of the Directory, each made, changed and taken back."""
    alice.put("/queues/dead")
    for name in ("one", "two"):
        limits = {"queue": "dead", "max_receives": 2}
        assert alice.put(f"/queues/{name}", {"dead_letter": limits}).status == 201
        alice.patch(f"/queues/{name}", {"delay_seconds": 1})
        alice.put(f"/queues/one/receivers/{name}", {})
        topic = TestTopic(alice, name)
        alice.patch(f"/topics/{name}", {"max_message_bytes": 1_024})
        topic.subscribe("group", dead_letter_queue="dead")
        topic.subscribe("hook", "http")
        alice.patch(f"/topics/{name}/subscriptions/hook", {"rate": 5})
        for permission in ("send", "full"):
            alice.put(f"/queues/{name}/grants/bob", {"permission": permission})
        for permission in ("publish", "subscribe"):
            alice.put(f"/topics/{name}/grants/bob", {"permission": permission})
    for _ in range(2):
        made = alice.post("/keys", {"account": "alice"}).json["access_key_id"]
        alice.post(f"/keys/{made}/rotate")
        keys.create_key(alice.world.core, "root", keys.KeyRights(admin=True, manages_keys=True))
    alice.patch("/queues/two", {"send_rate": 10, "receive_rate": 10})
    alice.send("two", "x")
    alice.receive("two")
    alice.put("/queues/shared", {"fair": True, "partitions": 1, "rate": 10})
    for _ in range(2):
        alice.send("shared", "x", group="acme")
        alice.receive("shared", 1)
    alice.patch("/queues/two", {"dead_letter": None})
    for name in ("daily", "hourly"):
        for seconds in (120, 60):
            ticks = {"queue": "one", "every_seconds": seconds, "message": {"body": "tick"}}
            assert alice.put(f"/schedules/{name}", ticks).status in (200, 201)
    alice.delete("/schedules/daily")
    alice.delete("/topics/two")
    alice.delete("/queues/two")
    alice.world.settle()


def messages(alice: Client) -> None:
    """Parcels, their notes, archives and log records; operations and what they leave."""
    world, limits = alice.world, {"queue": "dead", "max_age_seconds": 300}
    attributes = {"dead_letter": limits, "partitions": 1, "rewind_seconds": 3_600}
    alice.put("/queues/work", attributes)
    work = TestQueue(alice, "work")
    begun = alice.get("/health").json["time"]
    work.send("a", "b", deduplication_id="x")
    (late,) = work.send("c", delay_seconds=60)
    for seconds in (90, 120):
        reply = alice.patch(f"/queues/work/messages/{late['id']}", {"delay_seconds": seconds})
        assert reply.status == 200, reply.text
    first, *_ = received = work.receive()
    work.hold(first, 100)
    work.delete(*received)
    work.send("d")
    work.give_back(*work.receive(), delay_seconds=20)
    assert work.run("rewind", to=begun)["state"] == "succeeded"
    work.add_receiver("late", start="earliest")
    Schedules(world, sweeps=True, sweep_minutes=5).pass_seconds(2 * 3_600)
    # A repeated send of which the first try stored its record alone, for a shorter time.
    alice.put("/queues/plain", {"partitions": 1})
    plain, own = TestQueue(alice, "plain"), attempt(world)
    plain.try_send([{"body": LARGE}], attempt=own)
    beginning = f"Q#{plain.show()['id']}#"
    (parcel,) = (each for each in world.items() if each["pk"]["S"].startswith(beginning))
    place = {name: parcel[name] for name in ("pk", "sk")}
    world.core.store.write("DeleteItem", {"TableName": world.tables.messages, "Key": place})
    plain.patch(message_retention_seconds=1_000_000)
    assert plain.try_send([{"body": LARGE}], attempt=own).status == 201
    alice.put("/queues/ordered", {"ordered": True})
    for _ in range(2):
        alice.send("ordered", "e", group="g")
        alice.send("plain", "f", replace="k")
    alice.send("plain", "g", reply={"seconds": 600})
    alice.put("/queues/urgent", {"priorities": 4, "partitions": 2})
    for _ in range(2):
        alice.send("urgent", "h", priority=3)
        alice.receive("urgent", 1)
        world.clock.pass_seconds(1)
    held = {each["id"]: each for each in plain.receive_all() if "reply_by" in each}
    for id, asked in held.items():
        given = {"receipt": asked["receipt"], "reply": {"body": "h"}}
        assert alice.post(f"/queues/plain/messages/{id}/reply", given).status == 200


def published(alice: Client) -> None:
    """Half messages, their marks, deliveries and retries."""
    world = alice.world
    topic = TestTopic(alice, "half", partitions=1)
    topic.subscribe("hook", "http", retry={"policy": "custom", "waits": [60] * 4})
    world.endpoint = lambda url: "status 500"
    producers = Producers(topic)
    committed, _ = (producers.prepare("x", check_after_seconds=30) for _ in range(2))
    producers.commit(committed)
    group = topic.subscribe("group")
    (message,) = topic.publish("z")
    for _ in range(2):
        group.delete(*group.receive())
        again = {"ids": [message["id"]]}
        assert alice.post(f"{group.path}/redeliver", again).status == 202
        world.settle()
    world.clock.pass_seconds(120)
    producers.prepare("y", check_after_seconds=30)
    producers.receive()
    schedules = Schedules(world, sweeps=True, sweep_minutes=5)
    schedules.pass_seconds(600)
    topic.client.post("/topics/half/subscriptions/hook/pause")
    topic.client.post("/topics/half/subscriptions/hook/resume")
    schedules.pass_seconds(3_600)


def hints_and_leases(alice: Client) -> None:
    """What is written in a hurry, or long after: by the functions that write it."""
    world, core = alice.world, alice.world.core
    queue = get_queue(core, "alice", "plain")
    source, invoke = queue_source(queue, core.now_ms()), Invoke(function="f", max_concurrency=1)
    slot = slots.take(core, source.id, invoke)
    assert slot is not None
    world.clock.pass_seconds(60)
    assert slots.renew(core, slot, invoke) is not None
    for seconds in (50, 40):
        assert slots.set_alarm(core, source.id, core.now_ms() + seconds * 1_000)
    assert slots.take(core, source.id, invoke) is None
    for _ in range(2):
        put_waiting(core, source.id, core.now_ms() + 20_000)
        put_wake_up(core, source.id, "0001", core.now_ms())
    for _ in range(2):
        parking_lot.mark(core, source.id)
    held = parking_lot.hold(core, source.id)
    assert held is not None
    lease.release(core, held)
    (record, *_) = (each for each in world.items() if each["pk"]["S"].startswith("L#"))
    core.store.put_if_absent(core.tables.messages, parked_item(source.id, record, in_order=True))
    head, now_ms = f"Q#{source.id}#0", core.now_ms()
    for version in (1, 2):
        mark = HeadMark(before="", until_ms=now_ms, version=version)
        core.store.write("PutItem", put_mark(core.tables.messages, head, mark, now_ms))
    for _ in range(2):
        left = rounds._Round(behind="", begun_ms=now_ms, done_ms=now_ms, again_ms=now_ms)
        rounds._write(core, source, 0, left)
    for _ in range(2):
        sample = AnswerSample(body=b"no room")
        kept = FailedAnswer(
            error="status 500", at_ms=core.now_ms(), took_ms=40, message_id="m", sample=sample
        )
        keep_answer(core, source.id, kept)
        world.clock.pass_seconds(10)


def rates(alice: Client) -> None:
    """Counts of an account's calls, of its waiting receives and of what it has at work."""
    world = alice.world
    settings = msgspec.structs.replace(
        world.core.settings,
        account_requests_per_second=1_000,
        account_waiting_receives=2,
        slow_pushes=8,
    )
    world.core = msgspec.structs.replace(world.core, settings=settings, memories={})
    for _ in range(40):
        alice.get("/queues")
        world.clock.pass_seconds(1)
    for _ in range(2):
        TestQueue(alice, "plain").send("a")
        world.settle()
        world.clock.pass_seconds(2 * 3_600)
        world.run("sweep")
    settings = msgspec.structs.replace(world.core.settings, offers_in_process=True)
    world.core = msgspec.structs.replace(world.core, settings=settings)
    world.run("sweep")
    directory = world.core.tables.directory
    (told,) = [each for each in world.items("directory") if each["sk"]["S"] == "formats"]
    earlier = {"TableName": directory, "Item": {**told, "reads": {"N": "0"}}}
    world.core.store.write("PutItem", earlier)  # as the release before this one would
    world.run("sweep")
    alice.put("/queues/empty")
    for _ in range(25):
        assert alice.receive("empty", wait_seconds=20) == []
        with shares.posting(world.core, "alice", 1_000):
            shares.note_demotion(world.core, "alice")
    world.clock.pass_seconds(90_000)
    alice.get("/queues")


@pytest.fixture(scope="module")
def tour() -> Iterator[LaterStore]:
    world = World()
    store = LaterStore(world)
    alice = world.client("alice", admin=True)
    for part in (resources, messages, published, hints_and_leases, rates):
        part(alice)
    yield store
    world.engine.close()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_write_over_an_item_keeps_its_unknown_fields(kind: Kind, tour: LaterStore) -> None:
    assert kind.name in tour.seen
    assert kind.once or kind.hint or tour.written[kind.name] > 0
    assert not (kind.once and tour.written[kind.name])
    assert kind.hint or tour.lost[kind.name] == 0


def test_an_item_of_no_kind_is_found() -> None:
    for pk, sk in (("X#a", "b"), ("Q#a#b#c", "d"), ("A#a#0", "b")):
        with pytest.raises(AssertionError, match="list messages"):
            kind_of("messages", {"pk": {"S": pk}, "sk": {"S": sk}})


def test_every_prefix_in_the_core_is_listed() -> None:
    """Texts that begin with a letter and `#`, and letters of which keys are made."""
    listed = {kind.pk[0] for kind in KINDS if KEYS.match(kind.pk)}
    found: dict[str, str] = {}
    for path in Path(cirrusmq.__file__).parent.rglob("*.py"):
        for text in _key_texts(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(text[0], path.name)
    assert found.keys() <= listed, found
    assert listed <= found.keys()


def _key_texts(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        whole = isinstance(node, ast.Assign | ast.Call)
        for each in _parts(node):
            text = each.value if isinstance(each, ast.Constant) else None
            if isinstance(text, str) and re.match("[A-Z]$" if whole else "[A-Z]#", text):
                yield text


def _parts(node: ast.AST) -> list[ast.expr]:
    """The first part of a formatted text, what is assigned, or what makes a key of shards."""
    if isinstance(node, ast.JoinedStr):
        return node.values[:1]
    if isinstance(node, ast.Assign):
        return node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    if isinstance(node, ast.Call) and getattr(node.func, "id", "").startswith("shard_key"):
        return node.args
    return []
