"""Items that our own lines make and read are those of PynamoDB's models, attribute by attribute."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pynamodb.models import Model
from tests.unit.parcels import NOW_MS, SEND_ID

from cirrusmq.base.limits import KEY_SLACK_MS
from cirrusmq.model.envelope import pack_envelopes
from cirrusmq.model.message import Message, pack
from cirrusmq.model.parcel import Parcel, where_differing
from cirrusmq.sending.deduplication import Stored, reminder_item
from cirrusmq.storage.models import DeduplicationItem, LogItem, ParcelItem
from cirrusmq.storage.parcels import (
    ERRORS,
    HISTORIES,
    KNOWN,
    KNOWN_OF_RECORDS,
    LOG_TTL_MARGIN_MS,
    UNTRIED,
    archive_item,
    join_log_items,
    log_item,
    log_key,
    object_days,
    object_log_item,
    parcel_item,
    partition_key,
    read_described,
    read_messages,
    read_parcel,
    read_positions,
    ttl_seconds,
)

numbers = st.integers(-3, 2**53)
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
ids = st.text("0123456789ABCDEF.", min_size=26, max_size=45)


@st.composite
def parcels(draw: st.DrawFn) -> Parcel:
    count = draw(st.integers(1, 16))

    def listed(each: st.SearchStrategy[Any]) -> tuple[Any, ...]:
        return tuple(draw(st.lists(each, min_size=count, max_size=count)))

    own_id = draw(ids)
    key_id = draw(st.sampled_from((own_id, "00000000000000000007")))
    positions = tuple(sorted(draw(st.sets(st.integers(0, 15), min_size=count, max_size=count))))
    seconds = listed(st.integers(0, 43_200))
    return Parcel(
        source_id=draw(st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=12, max_size=12)),
        partition=draw(st.integers(0, 254)),
        sort_key=f"{draw(st.integers(0, 10**13 - 1)):013d}#{key_id}",
        parcel_id=own_id,
        sent_ms=draw(numbers),
        expires_ms=draw(numbers),
        visible_ms=listed(numbers),
        nonces=listed(st.sampled_from((b"", b"n" * 16))),
        receives=listed(numbers),
        first_received_ms=listed(numbers),
        sizes=listed(numbers),
        waits_ms=draw(st.sampled_from(((), listed(numbers)))),
        answer_percent=draw(numbers),
        positions=where_differing(positions),
        visibility_seconds=seconds if any(seconds) and draw(st.booleans()) else (),
        content=draw(st.none() | st.binary(min_size=1)),
        log=draw(st.none() | texts),
        object_days=draw(st.integers(0, 16)),
        own_group=draw(st.booleans()),
        moved_from=draw(st.none() | texts),
        moved_ms=draw(st.integers(0, 2**53)),
        dead_letter=draw(st.none() | st.dictionaries(texts, texts | numbers, min_size=1)),
        fanned_out=draw(st.booleans()),
        invokes=draw(st.booleans()),
    )


def model_of(parcel: Parcel) -> ParcelItem:
    own = parcel.visibility_seconds
    return ParcelItem(
        partition_key("Q", parcel.source_id, parcel.partition),
        parcel.sort_key,
        visible_ms=list(parcel.visible_ms),
        nonces=list(parcel.nonces),
        receives=list(parcel.receives),
        first_received_ms=list(parcel.first_received_ms),
        sizes=list(parcel.sizes),
        waits_ms=list(parcel.waits_ms) or None,
        sent_ms=parcel.sent_ms,
        expires_ms=parcel.expires_ms,
        answer_percent=parcel.answer_percent,
        positions=bytes(parcel.positions) or None,
        visibility_seconds=struct.pack(f">{len(own)}H", *own) if own else None,
        content=parcel.content,
        log=parcel.log,
        parcel_id=None if parcel.sort_key.endswith(parcel.parcel_id) else parcel.parcel_id,
        object_days=parcel.object_days or None,
        own_group=parcel.own_group or None,
        moved_from=parcel.moved_from,
        moved_ms=parcel.moved_ms or None,
        dead_letter=msgspec.msgpack.encode(parcel.dead_letter) if parcel.dead_letter else None,
        fanned_out=parcel.fanned_out or None,
        invokes="1" if parcel.invokes else None,
        expires_at=ttl_seconds(parcel.expires_ms),
    )


@settings(max_examples=40)
@given(parcels())
def test_a_parcel_becomes_the_item_of_its_model(parcel: Parcel) -> None:
    assert parcel_item(parcel) == dict(model_of(parcel).serialize())


@settings(max_examples=40)
@given(parcels())
def test_a_parcel_is_read_from_the_item_of_its_model(parcel: Parcel) -> None:
    assert read_parcel(dict(model_of(parcel).serialize())) == parcel
    assert read_parcel(archive_item(parcel, NOW_MS)) == parcel


@settings(max_examples=40)
@given(parcels(), st.dictionaries(st.integers(0, 15), texts, max_size=4))
def test_histories_and_errors_of_posts_are_attributes_of_their_own(
    parcel: Parcel, told: dict[int, str]
) -> None:
    histories = {place: text.encode() for place, text in told.items()}
    attributes = {f"a{place}": {"B": history} for place, history in histories.items()}
    read = read_parcel(parcel_item(parcel) | attributes)
    assert (read.histories, read.errors) == (histories, {})
    older = {f"e{place}": {"S": error} for place, error in told.items()}
    read = read_parcel(parcel_item(parcel) | older)
    assert (read.histories, read.errors) == ({}, told)


@settings(max_examples=40)
@given(parcels(), st.dictionaries(st.integers(0, 15), st.integers(0, 2_000), max_size=4))
def test_untried_receives_are_attributes_of_their_own(
    parcel: Parcel, counts: dict[int, int]
) -> None:
    item = parcel_item(replace(parcel, untried=counts))
    told = {place: count for place, count in counts.items() if count}
    assert {name: item[name]["N"] for name in item if name[1:].isdigit()} == {
        f"g{place}": str(count) for place, count in told.items()
    }
    assert read_parcel(item).untried == told


@settings(max_examples=40)
@given(parcels(), st.dictionaries(st.sampled_from(("later", "q0", "Q15", "a16", "xx1")), texts))
def test_unknown_attributes_are_written_back(parcel: Parcel, told: dict[str, str]) -> None:
    others = {name: {"S": text} for name, text in told.items()}
    read = read_parcel(parcel_item(parcel) | others)
    assert (read, read.others) == (replace(parcel, others=others), others)
    assert parcel_item(read) == parcel_item(parcel) | others
    assert read_parcel(archive_item(read, NOW_MS)) == read


def test_the_known_names_are_the_attributes_of_the_models() -> None:
    def names(model: type[Model]) -> set[str]:
        return {each.attr_name for each in model.get_attributes().values()}

    assert names(ParcelItem) | {*HISTORIES, *UNTRIED, *ERRORS} == KNOWN
    assert names(LogItem) == KNOWN_OF_RECORDS


@given(
    st.dictionaries(st.integers(0, 15), texts, min_size=1, max_size=16),
    numbers,
    numbers,
    st.none() | st.binary(min_size=1),
)
def test_a_log_record_becomes_the_item_of_its_model(
    bodies: dict[int, str], sent_ms: int, expires_ms: int, header: bytes | None
) -> None:
    messages = {place: Message(body=body) for place, body in sorted(bodies.items())}
    content = pack(list(messages.values()))
    item = log_item("queue#3", SEND_ID, tuple(messages), content, sent_ms, expires_ms, header)
    pk, sk = log_key("queue#3", SEND_ID)
    modelled = LogItem(
        pk,
        sk,
        content=content,
        sent_ms=sent_ms,
        expires_ms=expires_ms,
        header=header,
        positions=bytes(where_differing(tuple(messages))) or None,
        expires_at=ttl_seconds(expires_ms + LOG_TTL_MARGIN_MS),
    )
    assert item == dict(modelled.serialize())
    assert read_messages(item) == messages


@given(
    st.dictionaries(st.integers(0, 15), texts, min_size=1, max_size=16),
    st.integers(1, 16),
    numbers,
    numbers,
    st.none() | st.binary(min_size=1),
)
def test_a_log_record_of_messages_in_an_object_becomes_the_item_of_its_model(
    bodies: dict[int, str], days: int, sent_ms: int, expires_ms: int, header: bytes | None
) -> None:
    messages = {place: Message(body=body, group="g") for place, body in bodies.items()}
    item = object_log_item("queue#3", SEND_ID, messages, days, sent_ms, expires_ms, header)
    pk, sk = log_key("queue#3", SEND_ID)
    modelled = LogItem(
        pk,
        sk,
        envelopes=pack_envelopes(messages),
        object_days=days,
        sent_ms=sent_ms,
        expires_ms=expires_ms,
        header=header,
        expires_at=ttl_seconds(expires_ms + LOG_TTL_MARGIN_MS),
    )
    assert item == dict(modelled.serialize())
    assert object_days(item) == days
    assert list(read_positions(item)) == list(messages)
    assert [each.group for each in read_described(item).values()] == ["g"] * len(messages)


def test_a_record_of_an_object_keeps_the_log_of_another_try() -> None:
    """Parcels of the other try, made while the bucket refused, still need it."""
    sent = {place: Message(body=f"body {place}") for place in range(3)}
    logged = log_item("queue#3", SEND_ID, (1,), pack([sent[1]]), NOW_MS, NOW_MS + 9_000, None)
    new = object_log_item("queue#3", SEND_ID, sent, 5, NOW_MS, NOW_MS + 1_000, b"header")
    joined = join_log_items(new, logged | {"later": {"S": "kept"}})
    assert joined["later"] == {"S": "kept"}
    assert read_messages(joined) == {1: sent[1]}
    assert list(read_positions(joined)) == [0, 1, 2]
    assert joined["expires_at"] == logged["expires_at"]


@given(texts, texts, numbers, numbers)
def test_a_reminder_becomes_the_item_of_its_model(
    message_id: str, body_md5: str, sent_ms: int, expires_ms: int
) -> None:
    modelled = DeduplicationItem(
        "D#queue#digest",
        "D",
        message_id=message_id,
        body_md5=body_md5,
        sent_ms=sent_ms,
        expires_ms=expires_ms,
        expires_at=ttl_seconds(expires_ms + KEY_SLACK_MS),
    )
    message = Stored(id=message_id, body_md5=body_md5, sent_ms=sent_ms)
    item = reminder_item("queue", "digest", message, expires_ms)
    assert item == dict(modelled.serialize())
