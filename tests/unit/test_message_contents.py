"""A message's content: legal requests, and its size."""

from __future__ import annotations

import json
import random
import zlib
from hashlib import md5
from typing import Any

import msgspec
import pytest

from cirrusmq.base.errors import InvalidParameter, MessageTooLarge
from cirrusmq.base.reserved_attributes import HTTP, HTTPS, LAMBDA
from cirrusmq.model.message import (
    OF_SDKS,
    Base64,
    Message,
    MessageInput,
    answer_too_large,
    check_size,
    fits_any_event,
    pack,
    read_attributes,
    read_body,
    read_tags,
    unpack,
)

AT = "messages[3]"


def refusal(read: Any, *arguments: Any, **others: Any) -> str:
    with pytest.raises(InvalidParameter) as refused:
        read(*arguments, AT, **others)
    assert refused.value.detail.startswith(f"{refused.value.parameter}: ")
    return refused.value.detail


@pytest.mark.parametrize(
    ("names", "attributes", "body", "kept"),
    [
        ((HTTPS,), {}, "all", {}),
        ((), {HTTPS: "own", "a": "b"}, "all", {HTTPS: "own", "a": "b"}),
        ((HTTPS,), {HTTPS: "own", HTTP: "other", "a": "b"}, "own", {"a": "b"}),
        ((LAMBDA, HTTPS), {HTTPS: "own", "a": "b"}, "own", {"a": "b"}),
        ((LAMBDA, HTTPS), {LAMBDA: "", HTTPS: "own"}, "all", {LAMBDA: "", HTTPS: "own"}),
    ],
)
def test_a_subscriber_gets_its_own_text_and_no_other_one(
    names: tuple[str, ...], attributes: dict[str, str], body: str, kept: dict[str, str]
) -> None:
    got = Message(body="all", tags=("t",), attributes=attributes).with_text_of(names)
    assert got == Message(body=body, tags=("t",), attributes=kept)


# ---- bodies -------------------------------------------------------------------------------------


def test_a_body_is_text_or_bytes_in_base64() -> None:
    assert read_body(MessageInput(body="é"), AT) == "é"
    assert read_body(MessageInput(body_base64="/wA="), AT) == b"\xff\0"


@pytest.mark.parametrize("given", [{}, {"body": "x", "body_base64": "eA=="}])
def test_exactly_one_form_of_a_body_is_needed(given: dict[str, Any]) -> None:
    assert refusal(read_body, MessageInput(**given)) == (
        "messages[3].body: give exactly one of body and body_base64"
    )


@pytest.mark.parametrize("form", ["body", "body_base64"])
def test_a_body_is_never_empty(form: str) -> None:
    expected = f"messages[3].{form}: must have at least 1 byte"
    given: dict[str, Any] = {form: ""}
    assert refusal(read_body, MessageInput(**given)) == expected


@pytest.mark.parametrize("text", ["/wA", "/w A=", "_wA=", "/wA=\n", "é", "="])
def test_invalid_base64_is_refused(text: str) -> None:
    assert refusal(read_body, MessageInput(body_base64=text)) == (
        "messages[3].body_base64: must be base64 with padding"
    )


def test_a_body_of_the_very_limit_is_taken_and_bytes_are_counted() -> None:
    check_size(Message(body="é" * 5), 10, AT)
    check_size(Message(body=b"x" * 10), 10, AT)
    with pytest.raises(MessageTooLarge) as refused:
        check_size(Message(body="é" * 5 + "x"), 10, AT)
    assert refused.value.parameter == "messages[3].body"
    assert refused.value.detail == (
        "messages[3].body has 11 bytes; max_message_bytes allows 1 to 10"
    )


# ---- attributes and tags ------------------------------------------------------------------------


def test_attributes_are_text_or_bytes() -> None:
    given: dict[str, str | Base64] = {"a": "1", "b$": Base64("/wA="), "_" + "c" * 63: ""}
    assert read_attributes(given, AT) == {"a": "1", "b$": b"\xff\0", "_" + "c" * 63: ""}


def test_ten_attributes_are_taken_and_one_more_is_not() -> None:
    limit = {f"a{number}": "" for number in range(10)}
    assert read_attributes(limit, AT) == limit
    expected = "messages[3].attributes: must have at most 10 names"
    assert refusal(read_attributes, {**limit, "more": ""}) == expected


@pytest.mark.parametrize("name", ["", "1a", "a.b", "a" * 65, "é", "TAGS", "a\n", "$", "$from"])
def test_a_name_unwritable_in_a_filter_is_refused(name: str) -> None:
    assert refusal(read_attributes, {"fine": "", name: "x"}) == (
        f"messages[3].attributes.{name}: an attribute's name must match "
        "[A-Za-z_][A-Za-z0-9_$]{0,63} and not be TAGS"
    )


def test_of_a_long_name_the_refusal_shows_80_characters() -> None:
    shown = refusal(read_attributes, {"a" * 81: "x"}).partition(": ")[0]
    assert shown == "messages[3].attributes." + "a" * 80


def test_a_value_of_1024_bytes_is_taken_and_one_byte_more_is_not() -> None:
    assert read_attributes({"a": "é" * 512}, AT) == {"a": "é" * 512}
    expected = "messages[3].attributes.a: a value must be 0 to 1024 bytes"
    assert refusal(read_attributes, {"a": "é" * 512 + "x"}) == expected


def test_messages_of_sdks_have_sixteen_attributes_of_any_size_and_longer_tags() -> None:
    limit = {"$2da": "x", **{f"a{number}": "x" * 1_025 for number in range(15)}}
    assert read_attributes(limit, AT, OF_SDKS) == limit
    assert "at most 16 names" in refusal(read_attributes, {**limit, "b": ""}, limit=OF_SDKS)
    assert read_tags(["x" * 64], AT, OF_SDKS) == ("x" * 64,)
    expected = "messages[3].tags[0]: must have 1 to 64 characters, not 65"
    assert refusal(read_tags, ["x" * 65], limit=OF_SDKS) == expected


def test_a_value_has_at_most_as_many_bytes_as_a_body() -> None:
    check_size(Message(body="x", attributes={"a": "é" * 5, "b": b"x" * 10, "c": ""}), 10, AT)
    with pytest.raises(MessageTooLarge) as refused:
        check_size(Message(body="x", attributes={"a": "", "b": "é" * 5 + "x"}), 10, AT)
    assert refused.value.parameter == "messages[3].attributes.b"
    assert refused.value.detail == (
        "messages[3].attributes.b has 11 bytes; max_message_bytes allows 0 to 10"
    )


def test_bytes_of_an_attribute_are_base64() -> None:
    expected = "messages[3].attributes.a: must be base64 with padding"
    assert refusal(read_attributes, {"a": Base64("/wA")}) == expected


def test_tags_are_checked_at_their_place() -> None:
    assert read_tags(["a", "b"], AT) == ("a", "b")
    assert (
        refusal(read_tags, ["a", ""]) == "messages[3].tags[1]: must have 1 to 16 characters, not 0"
    )


# ---- what is counted ----------------------------------------------------------------------------


def test_the_size_counts_the_bytes_of_body_names_values_and_tags() -> None:
    message = Message(body="é", attributes={"é": "xx", "b": b"\xff\0\0\0"}, tags=("é", "u"))
    assert message.size_bytes == 2 + (2 + 2) + (1 + 4) + (2 + 1)
    assert message.attributes_bytes == (2 + 2) + (1 + 4)


def test_the_md5_is_of_the_bytes() -> None:
    assert Message(body="é").body_bytes == b"\xc3\xa9"
    assert Message(body="é").body_md5 == Message(body=b"\xc3\xa9").body_md5
    assert Message(body="é").body_md5 == md5(b"\xc3\xa9").hexdigest()


@pytest.mark.parametrize(
    ("body", "percent"),
    [
        ("xxxx", 100),
        ('""""', 200),
        ("漢", 100),
        ("\x01\x01", 600),
        ('x"', 150),
        (b"xxx", 134),
        (b"x", 200),
    ],
)
def test_in_an_answer_escapes_and_base64_count(body: str | bytes, percent: int) -> None:
    assert Message(body=body).answer_percent == percent
    assert Message(body=body, group="\x01").answer_percent == percent


def test_a_message_beyond_any_plain_answer_is_told_how_to_be_received() -> None:
    error = answer_too_large(7_000_000, 5_600_000)
    assert error.detail == (
        "the next message may take 7,000,000 bytes of JSON, and an answer that is not gzipped has"
        " at most 5,600,000: call with Accept-Encoding: gzip. Nothing was received"
    )
    named = answer_too_large(7_000_000, 5_600_000, "Msg-1")
    assert named.detail.startswith("the next message, Msg-1, may take 7,000,000 bytes of JSON")


@pytest.mark.parametrize(("size", "fits"), [(516_666, True), (516_667, False)])
def test_half_an_event_holds_six_bytes_for_each_of_a_message(size: int, fits: bool) -> None:
    assert fits_any_event(Message(body="x" * size)) is fits


# ---- packing ------------------------------------------------------------------------------------


def bodies(size: int) -> list[str | bytes]:
    chance = random.Random(size)
    orders = [{"id": number, "amount": chance.random()} for number in range(size // 30 + 1)]
    words = ["the", "of", "and", "to", "in", "is", "that", "for", "it", "as"]
    return [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=size)),
        json.dumps(orders)[:size],
        "x" * size,
        "".join(chance.choices(words, k=size // 2))[:60_000],
    ]


@pytest.mark.parametrize("size", [100, 600, 1_024, 3_000, 7_000, 7_880, 7_890, 9_000, 60_000])
def test_small_messages_are_packed_as_tightly_as_large_ones(size: int) -> None:
    for body in bodies(size):
        plain = msgspec.msgpack.encode([[body, {}, (), None]])
        packed = pack([Message(body=body)])
        assert len(packed) == 1 + min(len(plain), len(zlib.compress(plain, 6)))
        assert unpack(packed) == [Message(body=body)]


def test_incompressible_content_is_packed_as_it_is() -> None:
    body = random.Random(0).randbytes(1_000)
    assert body in pack([Message(body=body)])


@pytest.mark.parametrize(
    ("zeros_at", "deflated"),
    [(0, True), (1 / 3, True), (2 / 3, True), (1, True), (1 / 6, False), (None, False)],
)
def test_of_a_large_message_four_samples_tell_whether_it_shrinks(
    zeros_at: float | None, deflated: bool
) -> None:
    """At its beginning, after each third and at its end, of 4 KiB each."""
    body = bytearray(random.Random(0).randbytes(204_096))
    if zeros_at is not None:
        start = int(zeros_at * 200_000)
        body[start : start + 4_096] = bytes(4_096)

    packed = pack([Message(body=bytes(body))])

    assert (len(packed) < len(body)) is deflated
    assert unpack(packed) == [Message(body=bytes(body))]


def test_fields_of_a_later_release_are_packed_again_as_they_are() -> None:
    later = [Message(body="x", further=({"format": 2}, "y")), Message(body="z")]
    assert unpack(pack(later)) == later
