"""Objects and envelopes: whatever was packed is read again, whole or in part."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cirrusmq.base import limits, ulid
from cirrusmq.model.envelope import Envelope, pack_envelopes, unpack_envelopes
from cirrusmq.model.message import Message, pack
from cirrusmq.storage.bodies.object import (
    DAY_MS,
    MARGIN_MS,
    MAX_HEAD_BYTES,
    life_days,
    object_key,
    pack_object,
    read_spans,
    surely_lives_until_ms,
    unpack_object,
)

LONGEST_DAYS = 16
"""As many rules has the bucket."""
patiently = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Whatever else the machine has to do."""
texts = st.text(st.characters(codec="utf-8"), max_size=40)
messages = st.builds(
    Message,
    body=texts.filter(bool) | st.binary(min_size=1, max_size=200),
    attributes=st.dictionaries(texts, texts | st.binary(), max_size=4),
    tags=st.lists(texts, max_size=3).map(tuple),
    group=st.none() | texts,
)
sends = st.lists(messages, min_size=1, max_size=6) | st.lists(
    st.builds(Message, body=texts.filter(bool)), min_size=16, max_size=16
)
times = st.integers(0, 2**47)
ids = st.builds(ulid.encode, times, st.binary(min_size=10, max_size=10))


@patiently
@given(sends)
def test_an_object_has_every_message_of_its_send(sent: list[Message]) -> None:
    packed = pack_object(sent)
    spans = read_spans(packed)
    assert list(unpack_object(spans, packed, 0, range(len(sent))).values()) == sent
    assert spans[-1][1] == len(packed)


@patiently
@given(sends, st.data())
def test_a_range_has_the_wanted_messages(sent: list[Message], data: st.DataObject) -> None:
    packed = pack_object(sent)
    spans = read_spans(packed[:MAX_HEAD_BYTES])
    wanted = data.draw(st.sets(st.integers(0, len(sent) - 1), min_size=1))
    begins, ends = spans[min(wanted)][0], spans[max(wanted)][1]
    read = unpack_object(spans, packed[begins:ends], begins, wanted)
    assert read == {position: sent[position] for position in wanted}


@patiently
@given(sends)
def test_a_repeated_send_writes_the_same_bytes(sent: list[Message]) -> None:
    assert pack_object(sent) == pack_object(list(sent), pack(sent))


@patiently
@given(st.binary(max_size=80).filter(lambda head: head[:1] != b"\x01"))
def test_other_bytes_are_no_object(head: bytes) -> None:
    with pytest.raises(ValueError, match="do not begin an object"):
        read_spans(head)


def test_a_cut_head_is_no_object() -> None:
    head = pack_object([Message(body="a"), Message(body="b")])[:9]
    with pytest.raises(ValueError, match="do not begin an object"):
        read_spans(head)


@patiently
@given(st.dictionaries(st.integers(0, 15), messages, min_size=1, max_size=5))
def test_envelopes_have_the_fields_of_their_messages(sent: dict[int, Message]) -> None:
    told = unpack_envelopes(pack_envelopes(sent))
    assert list(told) == list(sent)
    for position, message in sent.items():
        assert told[position] == Envelope(
            size_bytes=message.size_bytes,
            answer_percent=message.answer_percent,
            attributes=message.attributes,
            tags=message.tags,
            group=message.group,
        )
    assert pack_envelopes(told) == pack_envelopes(sent)


@patiently
@given(ids, st.integers(1, 16))
def test_a_key_has_the_class_of_life_some_digits_and_the_id(send_id: str, days: int) -> None:
    assert re.fullmatch(rf"d{days:02d}/[0-9a-f]{{3}}/{send_id}", object_key(send_id, days))


@patiently
@given(st.integers(1, limits.RETENTION_SECONDS[1] * 1000))
def test_an_object_outlives_its_messages_by_the_margin_and_less_than_a_day(life_ms: int) -> None:
    days = life_days(life_ms)
    assert 1 <= days <= LONGEST_DAYS
    assert 0 <= days * DAY_MS - (life_ms + MARGIN_MS) < DAY_MS


@patiently
@given(ids, times, st.integers(1, 16))
def test_an_object_surely_lives_from_its_sends_beginning_on(
    send_id: str, written_ms: int, days: int
) -> None:
    """Nothing was written before its send began, but for a client's clock that is ahead."""
    begun_ms = ulid.time_of(send_id)
    written_ms = max(written_ms, begun_ms - limits.ATTEMPT_AHEAD_MS)
    until_ms = surely_lives_until_ms(send_id, days)
    assert until_ms <= written_ms + days * DAY_MS
    assert until_ms == begun_ms - limits.ATTEMPT_AHEAD_MS + days * DAY_MS
