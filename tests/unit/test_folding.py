"""A batch of the stream added up: usage by source, kind and minute, and steps of counters."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import msgpack
from msgspec.structs import replace
from tests.unit.parcels import NOW_MS, SEND_ID, parcel

from cirrusmq.metering.fold import MAX_RESOURCES, StreamRecord, fold
from cirrusmq.metering.usage import Event, Usage, UsageKey
from cirrusmq.model.message import Message, pack
from cirrusmq.model.parcel import DELETED, Parcel
from cirrusmq.model.priority import level_prefix
from cirrusmq.model.reply_note import ReplyNote
from cirrusmq.publishing.records import TopicHeader
from cirrusmq.queues.resources import Resource
from cirrusmq.receiving.replies.items import end_item
from cirrusmq.storage.counters import Kept, rate_name
from cirrusmq.storage.parcels import archive_item, log_item, parcel_item

MINUTE = NOW_MS // 60_000
RESOURCES = {
    "queue": Resource("alice", "queue", "orders"),
    "receiver": Resource("alice", "receiver", "orders/audit"),
    "url": Resource("alice", "subscription", "news/url", pushed=True),
}


def record(before: Any, after: Any, time_ms: int = NOW_MS, *, by_ttl: bool = False) -> StreamRecord:
    return StreamRecord(event_id="e", time_ms=time_ms, before=before, after=after, by_ttl=by_ttl)


def change(before: Parcel | None, after: Parcel | None, time_ms: int = NOW_MS) -> StreamRecord:
    return record(before and parcel_item(before), after and parcel_item(after), time_ms)


def folded(*records: StreamRecord) -> tuple[dict[UsageKey, Usage], dict[str, Kept]]:
    result = fold(records, RESOURCES.__getitem__)
    assert result.records == len(records)
    return result.usage, result.steps


def test_messages_of_a_minute_are_added_up() -> None:
    sent = change(None, parcel(2, sizes=(10, 20)))
    later = change(None, parcel(1, sizes=(40,)), NOW_MS + 60_000)
    usage, steps = folded(sent, sent, later)
    assert usage == {
        UsageKey("queue", "sent", MINUTE): Usage(4, 60),
        UsageKey("queue", "sent", MINUTE + 1): Usage(1, 40),
    }
    assert steps == {"queue": Kept(messages=5, bytes=100)}


def faults(before: Parcel | None, after: Parcel | None) -> list[str]:
    return fold([change(before, after)], RESOURCES.__getitem__).faults


def test_a_write_outside_the_steps_is_a_fault() -> None:
    free, hidden = parcel(), parcel(visible_ms=(NOW_MS + 9_000,))
    assert faults(free, hidden) == [
        f"Q#queue#0 {free.sort_key}: the message at 0 went from free to free, as no step does"
    ]
    assert faults(None, parcel(receives=(-1,))) == [
        f"Q#queue#0 {free.sort_key}: the message at 0 was received less than 0 times"
    ]
    assert faults(None, free) == faults(free, free) == faults(free, None) == []


def test_the_faults_of_a_batch_are_all_told() -> None:
    wrong = change(None, parcel(receives=(-1,)))
    found = fold([wrong, change(None, parcel()), wrong], RESOURCES.__getitem__).faults
    assert len(found) == 2


@pytest.mark.parametrize(("visible_ms", "count"), [(3_000, 0), (3_001, 1)])
def test_clocks_may_differ_by_two_seconds_and_a_record_has_whole_seconds(
    visible_ms: int, count: int
) -> None:
    before = parcel(visible_ms=(NOW_MS + visible_ms,))
    leased = parcel(visible_ms=(NOW_MS + 30_000,), nonces=(b"n" * 16,), receives=(1,))
    assert len(faults(before, leased)) == count


def test_a_step_of_nothing_is_a_step_too() -> None:
    usage, steps = folded(change(parcel(1), parcel(1, receives=(1,))))
    assert usage == {UsageKey("queue", "received", MINUTE): Usage(1, 100)}
    assert steps == {"queue": Kept()}


@pytest.mark.parametrize(("source_id", "kind"), [("queue", "sent"), ("receiver", "delivered")])
def test_a_new_message_is_sent_to_a_queue_and_delivered_to_others(
    source_id: str, kind: Any
) -> None:
    usage, _ = folded(change(None, parcel(1, source_id=source_id)))
    assert usage == {UsageKey(source_id, kind, MINUTE): Usage(1, 100)}


def test_a_reply_is_a_sent_message_and_a_give_up_is_none() -> None:
    note = ReplyNote(asker="bob", queue_id="queue", due_ms=NOW_MS)
    reply = Message(body="x" * 30, attributes={"ab": "c"})
    item = end_item(f"Msg-{SEND_ID}0", note, NOW_MS, reply, b"nonce")
    gave_up = end_item(f"Msg-{SEND_ID}1", note, NOW_MS)
    sent = record(None, item)
    usage, steps = folded(sent, record(None, gave_up), record(item, item), record(item, None))
    assert usage == {UsageKey("queue", "sent", MINUTE): Usage(1, reply.size_bytes)}
    assert steps == {}


def test_a_reply_takes_one_queue_of_the_batchs_resources() -> None:
    notes = [ReplyNote(asker="bob", queue_id=f"q{n}", due_ms=NOW_MS) for n in range(MAX_RESOURCES)]
    items = [end_item(f"Msg-{SEND_ID}0", note, NOW_MS, Message(body="x"), b"n") for note in notes]
    resource = Resource("alice", "queue", "orders")
    result = fold([record(None, item) for item in items], lambda _: resource)
    assert result.records == MAX_RESOURCES


@pytest.mark.parametrize(("by_ttl", "kind"), [(True, "expired"), (False, "deleted")])
def test_a_parcel_removed_by_the_store_has_expired(by_ttl: bool, kind: Any) -> None:
    usage, steps = folded(record(parcel_item(parcel(1)), None, by_ttl=by_ttl))
    assert usage == {UsageKey("queue", kind, MINUTE): Usage(1, 100)}
    assert steps == {"queue": Kept(messages=-1, bytes=-100)}


def test_posts_are_counted_beside_deliveries() -> None:
    before = parcel(1, source_id="url")
    after = parcel(1, source_id="url", receives=(3,), visible_ms=(DELETED,))
    assert folded(change(before, after)) == (
        {UsageKey("url", "delivered", MINUTE): Usage(1, 100, 3)},
        {"url": Kept(messages=-1, bytes=-100, rewindable=1)},
    )


def test_an_archived_parcel_can_be_rewound_and_is_billed_nowhere() -> None:
    archived = archive_item(parcel(2, visible_ms=(DELETED, NOW_MS)), NOW_MS)
    assert folded(record(None, archived)) == ({}, {"queue": Kept(rewindable=1)})
    assert folded(record(archived, None, by_ttl=True)) == ({}, {"queue": Kept(rewindable=-1)})


def test_a_message_deleted_beside_others_can_be_rewound_like_an_archived_one() -> None:
    whole = parcel(2, visible_ms=(NOW_MS, NOW_MS))
    half = parcel(2, visible_ms=(DELETED, NOW_MS))
    spent = archive_item(parcel(2, visible_ms=(DELETED, DELETED)), NOW_MS)
    _, steps = folded(change(whole, half))
    assert steps == {"queue": Kept(messages=-1, bytes=-100, rewindable=1)}
    _, steps = folded(change(half, None), record(None, spent))
    assert steps == {"queue": Kept(messages=-1, bytes=-100, rewindable=1)}


def test_a_publish_is_billed_once_to_its_topic_and_nothing_is_kept() -> None:
    content = pack([Message(body="x"), Message(body="four")])
    item = log_item("topic#0", SEND_ID, (0, 2), content, NOW_MS, NOW_MS + 1, None)
    header = TopicHeader("news", "alice", [], None, ["", ""])
    published = item | {"g": {"B": msgpack.encode(header)}}
    assert folded(record(None, published)) == (
        {UsageKey("topic", "published", MINUTE): Usage(2, 5)},
        {},
    )
    assert folded(record(published, published), record(published, None)) == ({}, {})
    assert folded(record(None, item)) == ({}, {})


def test_a_batch_ends_before_it_has_more_resources_than_a_transaction_can_count() -> None:
    def of(number: int) -> StreamRecord:
        return change(None, parcel(1, source_id=f"source{number}"))

    resource = Resource("alice", "queue", "orders")
    within = [of(number) for number in range(MAX_RESOURCES)] * 2
    assert fold(within, lambda _: resource).records == 2 * MAX_RESOURCES
    result = fold([*within, of(MAX_RESOURCES), of(0)], lambda _: resource)
    assert result.records == 2 * MAX_RESOURCES
    assert f"source{MAX_RESOURCES}" not in result.steps


def test_kept_messages_of_each_priority_are_added_up() -> None:
    def at(priority: int, count: int) -> Parcel:
        one = parcel(count)
        return replace(one, sort_key=level_prefix(priority) + one.sort_key)

    records = [
        *(change(None, at(32, 2)), change(None, at(1, 1)), change(at(7, 3), at(7, 3))),
        *(change(at(5, 1), None), change(None, parcel(4)), change(None, at(32, 1))),
        change(None, replace(parcel(9), sort_key=f"{'f' * 24}#{parcel().sort_key}")),
    ]
    rates = fold(records, RESOURCES.__getitem__).rates["queue"]
    levels = {name: number for name, number in rates.items() if name.startswith("q")}
    assert levels == {"q32": 3, "q01": 1, "q07": 0, "q05": -1}


def test_events_and_kept_messages_are_added_to_their_interval() -> None:
    sent = change(None, parcel(2))
    later = change(parcel(2), parcel(2, receives=(1, 1)), NOW_MS + 300_000)
    rates = fold([sent, sent, later], RESOURCES.__getitem__).rates
    assert {name: number for name, number in rates["queue"].items() if number} == {
        rate_name("sent", NOW_MS): 4,
        rate_name("kept", NOW_MS): 4,
        rate_name("received", NOW_MS + 300_000): 2,
    }


def test_first_waits_of_receives_and_of_posts_are_apart() -> None:
    def first(source_id: str, waited_ms: int) -> StreamRecord:
        before = parcel(source_id=source_id)
        return change(
            before, replace(before, receives=(1,), first_received_ms=(NOW_MS + waited_ms,))
        )

    waits = [("queue", 300), ("url", 70), ("receiver", 20), ("url", 10)]
    result = fold([first(*each) for each in waits], RESOURCES.__getitem__)
    assert result.waits_ms == {False: [300, 20], True: [70, 10]}


def test_attempts_of_posts_are_added_to_their_interval() -> None:
    before = parcel(source_id="url")
    after = parcel(source_id="url", receives=(3,), visible_ms=(DELETED,))
    result = fold([change(before, after)] * 2, RESOURCES.__getitem__)
    assert result.rates["url"][rate_name("attempts", NOW_MS)] == 6


def test_the_origin_of_a_message_takes_part_in_the_transaction() -> None:
    """A dead letter's arrival is counted where it was: a counter of that one changes, too."""

    def moved(number: int) -> StreamRecord:
        letter = {"source_queue": "orders"}
        return change(None, parcel(1, moved_from=f"from{number}", dead_letter=letter))

    resource = Resource("alice", "queue", "orders")
    result = fold([moved(number) for number in range(MAX_RESOURCES)], lambda _: resource)
    assert result.records == MAX_RESOURCES - 1
    assert len({*result.steps, *result.rates}) == MAX_RESOURCES


def test_one_event_more_is_added_with_its_sign() -> None:
    event = Event("queue", "deleted", -1, -10, 2)
    assert Usage(5, 50, 1).plus(event) == Usage(4, 40, 3)
    assert Usage().plus(event) == (-1, -10, 2)
