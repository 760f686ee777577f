"""Receipts, ULIDs and packed messages are decoded to the values that were encoded, any of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cirrusmq.base import ulid
from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq.model import receipt
from cirrusmq.model.message import Message, pack, unpack
from cirrusmq.model.receipt import Receipt

texts = st.text(st.characters(codec="utf-8"))
messages = st.builds(
    Message,
    body=texts.filter(bool) | st.binary(min_size=1),
    attributes=st.dictionaries(texts, texts | st.binary(), max_size=4),
    tags=st.lists(texts, max_size=3).map(tuple),
    group=st.none() | texts,
)
receipts = st.builds(
    Receipt,
    source_id=st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=12, max_size=12),
    partition=st.integers(0, 254),
    sort_key=st.text("0123456789ABCDEF#.", min_size=1, max_size=100),
    place=st.just(0),
    count=st.integers(1, 16),
    expires_ms=st.integers(0, 2**52),
    nonce=st.binary(min_size=16, max_size=16),
)


@given(st.lists(messages, min_size=1, max_size=16))
def test_messages_are_unpacked_as_they_were_packed(sent: list[Message]) -> None:
    assert unpack(pack(sent)) == sent


@given(receipts)
def test_a_receipt_is_decoded_as_it_was_encoded(made: Receipt) -> None:
    assert receipt.decode(receipt.encode(made)) == made


@given(texts | st.text("ABCDEFabcdef0123-_=", max_size=200))
def test_any_other_text_is_no_receipt_and_no_error(text: str) -> None:
    decoded = receipt.decode(text)
    assert decoded is None or receipt.encode(decoded) == text


@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_a_ulid_keeps_its_time(time_ms: int, entropy: bytes) -> None:
    assert ulid.time_of(ulid.encode(time_ms, entropy)) == time_ms


@given(st.integers(0, 253_402_300_799_999))
def test_a_time_is_read_as_it_was_shown(time_ms: int) -> None:
    assert parse_time("to", format_time(time_ms)) == time_ms
