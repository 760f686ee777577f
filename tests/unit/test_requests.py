"""Requests become typed values; a value that does not fit is named, with its range."""

from __future__ import annotations

import json
from typing import Annotated

import msgspec
import pytest

from cirrusmq.base.errors import (
    BatchTooLarge,
    InvalidParameter,
    MalformedRequest,
    RequestTooLarge,
)
from cirrusmq.base.limits import REQUEST_BYTES, REQUEST_TEXTS
from cirrusmq.base.shapes import decode, integer, read_values

COUNT = msgspec.Meta(ge=1, le=16, description="an integer from 1 to 16")
WORD = msgspec.Meta(max_length=3, description="a text of at most 3 characters")
FEW = msgspec.Meta(max_length=2, description="up to 2 texts")
PAIRS = msgspec.Meta(max_length=1, description="at most 1 pair")


class Part(msgspec.Struct, forbid_unknown_fields=True):
    word: Annotated[str, WORD] = ""
    plain: int = 0


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    needed: str
    count: Annotated[int, COUNT] = 1
    perhaps: Annotated[int, COUNT] | None = None
    given: Annotated[int, COUNT] | msgspec.UnsetType = msgspec.UNSET
    parts: list[Part] = []
    named: dict[str, Part] = {}
    words: list[Annotated[str, WORD]] = []
    labels: Annotated[dict[Annotated[str, WORD], Annotated[str, WORD]], PAIRS] = {}
    part: Part | None = None
    few: Annotated[list[Annotated[str, WORD]], FEW] = []


class Nothing(msgspec.Struct):
    given: int = 7


def refusal(json: str) -> str:
    with pytest.raises(InvalidParameter) as refused:
        decode(json.encode(), Shape)
    assert refused.value.detail.startswith(f"{refused.value.parameter}: ")
    return refused.value.detail


def test_a_valid_body_is_answered_as_its_shape() -> None:
    shape = decode(b'{"needed": "x", "parts": [{"word": "abc"}], "count": 16}', Shape)
    assert shape == Shape(needed="x", parts=[Part(word="abc")], count=16)


def test_an_empty_body_is_an_empty_object() -> None:
    assert decode(b"", Nothing) == Nothing()


def test_a_mebibyte_is_taken_and_one_byte_more_is_not() -> None:
    assert decode(b"{}".ljust(1_048_576), Nothing) == Nothing()
    with pytest.raises(RequestTooLarge) as refused:
        decode(b"{}".ljust(1_048_577), Nothing)
    assert refused.value.detail == "The body of the request is over 1,048,576 bytes."


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"nonsense", b"[]", b'"text"', b"5", b"null", b'{"needed": "\xff"}',
        b'{"needed": 5} {}', b'{"count": 99, "needed": \xff}', b'{"count": 99, ',
        b'{"count": 99, "needed": "\xff"}',
    ],
)  # fmt: skip
def test_a_non_object_body_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedRequest):
        decode(body, Shape)


@pytest.mark.parametrize("beginning", [b"", b'{"a": ', b'{"count": 99, "more": '])
def test_a_too_deeply_nested_body_is_malformed(beginning: bytes) -> None:
    with pytest.raises(MalformedRequest):
        decode(beginning + b"[" * 100_000, Shape)


@pytest.mark.parametrize(
    ("json", "expected"),
    [
        ("{}", "needed: this field is needed"),
        ('{"needed": "x", "more": 1}', "more: this field is not known"),
        ('{"needed": "x", "parts": [{}, {"more": 1}]}', "parts[1].more: this field is not known"),
        ('{"needed": "x", "part": {"more": 1}}', "part.more: this field is not known"),
        ('{"needed": 5}', "needed: Expected str, got int"),
        (
            '{"needed": "x", "count": 17}',
            "count: must be an integer from 1 to 16 (Expected int <= 16)",
        ),
        (
            '{"needed": "x", "count": "1"}',
            "count: must be an integer from 1 to 16 (Expected int, got str)",
        ),
        (
            '{"needed": "x", "perhaps": 0}',
            "perhaps: must be an integer from 1 to 16 (Expected int >= 1)",
        ),
        (
            '{"needed": "x", "given": 0}',
            "given: must be an integer from 1 to 16 (Expected int >= 1)",
        ),
        (
            '{"needed": "x", "parts": [{"word": "long"}]}',
            "parts[0].word: must be a text of at most 3 characters "
            "(Expected str of length <= 3)",
        ),
        ('{"needed": "x", "parts": [{"plain": "x"}]}', "parts[0].plain: Expected int, got str"),
        (
            '{"needed": "x", "named": {"a": {"word": "long"}}}',
            "named[...].word: must be a text of at most 3 characters "
            "(Expected str of length <= 3)",
        ),
        (
            '{"needed": "x", "words": ["abc", "long"]}',
            "words[1]: must be a text of at most 3 characters (Expected str of length <= 3)",
        ),
        (
            '{"needed": "x", "few": ["abc", "long"]}',
            "few[1]: must be a text of at most 3 characters (Expected str of length <= 3)",
        ),
        (
            '{"needed": "x", "few": ["", "", ""]}',
            "few: must be up to 2 texts (Expected array of length <= 2)",
        ),
        (
            '{"needed": "x", "labels": {"a": "long"}}',
            "labels[...]: must be a text of at most 3 characters (Expected str of length <= 3)",
        ),
        (
            '{"needed": "x", "labels": {"a": "", "b": ""}}',
            "labels: must be at most 1 pair (Expected object of length <= 1)",
        ),
        (
            '{"needed": "x", "labels": {"long": ""}}',
            "labels: must have keys that fit (Expected str of length <= 3)",
        ),
        (
            '{"needed": "x", "part": {"word": "long"}}',
            "part.word: must be a text of at most 3 characters (Expected str of length <= 3)",
        ),
    ],
)  # fmt: skip
def test_the_first_unfit_value_is_named_with_its_range(json: str, expected: str) -> None:
    assert refusal(json) == expected


def test_the_bounds_of_an_integer_are_allowed_and_told_with_their_unit() -> None:
    class Bounded(msgspec.Struct):
        plain: Annotated[int, integer((2, 1_000_000))] = 2
        timed: Annotated[int, integer((0, 60), " seconds")] = 0

    body = b'{"plain": 1000000, "timed": 60}'
    assert decode(body, Bounded) == Bounded(1_000_000, 60)
    assert decode(b'{"plain": 2, "timed": 0}', Bounded) == Bounded(2, 0)
    for name, value, wanted in [
        ("plain", 1, "an integer from 2 to 1,000,000 (Expected int >= 2)"),
        ("plain", 1_000_001, "an integer from 2 to 1,000,000 (Expected int <= 1000000)"),
        ("timed", -1, "an integer from 0 to 60 seconds (Expected int >= 0)"),
        ("timed", 61, "an integer from 0 to 60 seconds (Expected int <= 60)"),
    ]:
        with pytest.raises(InvalidParameter) as refused:
            decode(f'{{"{name}": {value}}}'.encode(), Bounded)
        assert refused.value.detail == f"{name}: must be {wanted}"


# ---- bodies of more than 1 MiB ------------------------------------------------------------------


class Batch(msgspec.Struct, forbid_unknown_fields=True):
    messages: list[dict[str, str]] = []
    count: Annotated[int, COUNT] = 1


def large(body: str) -> Batch:
    return decode(body.encode().ljust(REQUEST_BYTES + 1), Batch, 2 * REQUEST_BYTES)


def refused_texts(texts: int) -> str:
    """The refusal of a large body with so many texts, none of which fits."""
    with pytest.raises((RequestTooLarge, InvalidParameter)) as refused:
        large(json.dumps({"more": [""] * texts}))
    return refused.value.detail


def test_a_large_body_has_up_to_16_messages() -> None:
    message = '{"body": "x"}'
    assert len(large(f'{{"messages": [{",".join([message] * 16)}]}}').messages) == 16
    with pytest.raises(BatchTooLarge) as refused:
        large(f'{{"messages": [{",".join([message] * 17)}]}}')
    assert refused.value.detail == "a batch has 1 to 16 messages"


def test_a_large_body_has_up_to_5000_texts_and_escaped_quotes_are_none() -> None:
    # The name beside them is one as well.
    assert REQUEST_TEXTS == 5_000
    assert refused_texts(4_999) == "more: this field is not known"
    assert refused_texts(5_000) == (
        "With more than 1,048,576 bytes a request has at most 5,000 texts."
    )
    quotes = '\\"' * 20_000
    assert large(f'{{"messages": [{{"body": "{quotes}"}}]}}').messages == [{"body": '"' * 20_000}]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"count": 17}', "count: must be an integer from 1 to 16 (Expected int <= 16)"),
        ('{"messages": 5}', "messages: Expected array, got int"),
        ('{"messages": [5]}', "messages[0]: Expected object, got int"),
    ],
)
def test_an_unfit_value_of_a_large_body_is_named(body: str, expected: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        large(body)
    assert refused.value.detail == expected


@pytest.mark.parametrize(
    "body",
    ["[]", "5", '{"messages": [', '{"count": 17, "messages": ', '{"messages": ' + "[" * 100_000],
    ids=lambda body: body[:30],
)
def test_a_large_non_object_body_is_malformed(body: str) -> None:
    with pytest.raises(MalformedRequest):
        large(body)


def test_a_large_body_of_other_bytes_than_utf_8_is_malformed() -> None:
    with pytest.raises(MalformedRequest):
        decode(b'{"messages": [{"a": "\xff"}]}'.ljust(REQUEST_BYTES + 1), Batch, 2 * REQUEST_BYTES)


# ---- values that came as texts ------------------------------------------------------------------


class Texts(msgspec.Struct, forbid_unknown_fields=True):
    count: Annotated[int, COUNT] = 1
    wait: float = 0.0
    ordered: bool = False
    name: str = ""


def test_numbers_and_booleans_may_be_texts() -> None:
    given = {"count": "16", "wait": "1.5", "ordered": "true", "name": "7"}
    expected = Texts(count=16, wait=1.5, ordered=True, name="7")
    assert read_values(given, Texts, strict=False) == expected
    assert (
        read_values({"count": 16, "wait": 1.5, "ordered": True, "name": "7"}, Texts, strict=False)
        == expected
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"count": "17"}, "count: must be an integer from 1 to 16 (Expected int <= 16)"),
        ({"count": "x"}, "count: must be an integer from 1 to 16 (Expected int, got str)"),
        ({"ordered": "perhaps"}, "ordered: Expected bool, got str"),
        ({"name": 7}, "name: Expected str, got int"),
        ({"more": "1"}, "more: this field is not known"),
    ],
)
def test_an_unfit_text_is_named_with_its_range(given: dict[str, object], expected: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_values(given, Texts, strict=False)
    assert refused.value.detail == expected


def test_non_json_values_keep_to_the_same_ranges() -> None:
    assert read_values({"needed": "x", "count": 16}, Shape) == Shape(needed="x", count=16)
    for given, expected in (
        ({"needed": "x", "count": 17}, "count: must be an integer from 1 to 16"),
        ({"needed": "x", "count": "16"}, "count: must be an integer from 1 to 16"),
        ({"needed": "x", "part": {"word": "long"}}, "part.word: must be a text of at most 3"),
        ({}, "needed: this field is needed"),
    ):
        with pytest.raises(InvalidParameter) as refused:
            read_values(given, Shape)
        assert refused.value.detail.startswith(expected)
