"""Receipts of a later release: its further fields are ignored, and a higher format is refused."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from cirrusmq.base.errors import Unavailable
from cirrusmq.model import receipt
from cirrusmq.model.receipt import Receipt

RECEIPT = Receipt(
    source_id="0123456789ab",
    partition=3,
    sort_key="1795000000000#01ARZ3NDEKTSV4RRFFQ69G5FAV",
    place=1,
    count=2,
    expires_ms=1_796_296_000_000,
    nonce=bytes(range(16)),
)


def text_of(packed: bytes) -> str:
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def with_fields(*further: object) -> bytes:
    return msgspec.msgpack.encode([*msgspec.structs.astuple(RECEIPT), *further])


@pytest.mark.parametrize(
    "further",
    [["x"], [None], [{}], [{"a": 1}, 5], [{"format": 2}], [{"format": "3"}], ["format", 3], [[3]]],
)
def test_fields_behind_the_known_ones_are_ignored(further: list[Any]) -> None:
    assert receipt.decode(text_of(with_fields(*further))) == RECEIPT


@pytest.mark.parametrize("further", [[{"format": 3}], ["x", {"a": 1, "format": 3}]])
def test_a_higher_format_asks_for_the_call_again(further: list[Any]) -> None:
    with pytest.raises(Unavailable) as refused:
        receipt.decode(text_of(with_fields(*further)))
    assert refused.value.detail == "This receipt was made by a later release; call again."


FIELDS_8 = bytes([0x98]) + with_fields()[1:]
"""The known fields of an array that has one more behind them."""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text_of(with_fields("x")) + "=", id="padded"),
        pytest.param(text_of(with_fields("x") + b"\x00"), id="more behind the array"),
        pytest.param(text_of(FIELDS_8 + b"\xcd\x00\x05"), id="5 in more bytes than it needs"),
        pytest.param(text_of(FIELDS_8 + b"\xd9\x01x"), id="a text with a longer head"),
        pytest.param(text_of(FIELDS_8 + b"\xa1\xff"), id="a text that is no UTF-8"),
        pytest.param(text_of(FIELDS_8 + b"\x81\x80\x05"), id="a key that is a map"),
        pytest.param(text_of(FIELDS_8), id="cut off"),
    ],
)
def test_further_fields_in_an_unknown_form_are_no_receipt(text: str) -> None:
    assert receipt.decode(text) is None
