"""Envelopes of messages whose bodies are in an object."""

from __future__ import annotations

from cirrusmq.model.envelope import Envelope, pack_envelopes, unpack_envelopes
from cirrusmq.model.message import Message

PLAIN = Envelope(size_bytes=10, answer_percent=133)
FULL = Envelope(
    size_bytes=70_000,
    answer_percent=100,
    attributes={"a": "1", "b": b"\xff"},
    tags=("t", "u"),
    group="g",
    further=({"format": 2}, "x"),
)


def test_envelopes_are_unpacked_by_number_with_the_fields_of_a_later_release() -> None:
    held: dict[int, Envelope | Message] = {0: PLAIN, 15: FULL}
    assert unpack_envelopes(pack_envelopes(held)) == held


def test_an_envelope_agrees_with_its_message() -> None:
    message = Message(body='"' * 9, attributes={"a": b"b"}, tags=("t",), group="g", further=(5,))

    (found,) = unpack_envelopes(pack_envelopes({7: message})).values()

    assert found == Envelope(
        size_bytes=message.size_bytes,
        answer_percent=message.answer_percent,
        attributes=message.attributes,
        tags=message.tags,
        group=message.group,
        further=message.further,
    )
