"""The size that a parcel states for its messages in an answer is never too small."""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cirrusmq.base.reserved_attributes import FROM
from cirrusmq.model.message import Message
from cirrusmq.model.parcel import Parcel, lone_parcel_id, sort_key
from cirrusmq.model.sender import Onlooker
from cirrusmq.receiving.claim import Claim
from cirrusmq_lambda.answers.received import ReceivedMessage

NOW_MS = 1_795_000_000_000
SEEN_BY = Onlooker("a" * 64, "a" * 64)
_PIECES = st.sampled_from(
    ["x", "é", "ж", "漢", "\U0001f600", '"', "\\", "\n", "\x01", "\x7f", "\u2028"]
)
_TEXTS = st.builds(lambda piece, times: piece * times, _PIECES, st.integers(1, 3_000))
_VALUES = st.text(max_size=170) | st.binary(max_size=1_024)
_NAMES = st.text("abc_$", min_size=1, max_size=64)


def _sent_by_a_key(attributes: dict[str, str | bytes]) -> dict[str, str | bytes]:
    return {**attributes, FROM: f"{'a' * 64} AKID{'0' * 32}"}


_MESSAGES = st.builds(
    Message,
    body=st.text(min_size=1) | st.binary(min_size=1) | _TEXTS,
    attributes=st.dictionaries(_NAMES, _VALUES, max_size=10).map(_sent_by_a_key),
    tags=st.lists(st.text(min_size=1, max_size=16), max_size=10).map(tuple),
    group=st.none() | st.text(min_size=1, max_size=128) | st.just("\x01" * 128),
)


@settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_MESSAGES, min_size=1, max_size=3), st.booleans())
def test_a_message_takes_no_more_of_an_answer_than_its_parcel_says(
    messages: list[Message], dead: bool
) -> None:
    count = len(messages)
    parcel_id = lone_parcel_id("0" * 26, 15, NOW_MS, "orders") if dead else "0" * 26
    parcel = Parcel(
        source_id="s" * 12,
        partition=254,
        sort_key=sort_key(NOW_MS, parcel_id),
        parcel_id=parcel_id,
        sent_ms=NOW_MS,
        expires_ms=NOW_MS,
        visible_ms=(NOW_MS,) * count,
        nonces=(b"\xff" * 16,) * count,
        receives=(1_000,) * count,
        first_received_ms=(NOW_MS,) * count,
        sizes=tuple(message.size_bytes for message in messages),
        answer_percent=max(message.answer_percent for message in messages),
        dead_letter={
            "source_queue": "q" * 64,
            "receiver": "r" * 64,
            "receive_count": 1_000,
            "dead_at": NOW_MS,
            "reason": "\x01" * 256,
        }
        if dead
        else None,
    )
    claim = Claim(parcel=parcel, indexes=tuple(range(count)))
    for place, message in enumerate(messages):
        received = ReceivedMessage.at(parcel, place, message, SEEN_BY, receipt=claim.receipt(place))
        shown = msgspec.json.encode(received)
        assert len(shown) + 1 <= parcel.answer_bytes(place)
