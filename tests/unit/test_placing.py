"""Whether the messages of a send are put into an object: by their packed size alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from unittest.mock import create_autospec

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cirrusmq.base.errors import Unavailable
from cirrusmq.base.limits import TABLE_BATCH_BYTES
from cirrusmq.model.message import Message, pack
from cirrusmq.runtime.core import Core, Settings
from cirrusmq.storage.bodies.object import object_key, pack_object
from cirrusmq.storage.bodies.write import Placed, _most_packed_bytes, place_messages

SEND_ID = "01M7Q5CQG00000000000000001"
DAY_MS = 86_400_000
patiently = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Whatever else the machine has to do."""
texts = st.text(st.characters(codec="utf-8"), max_size=8)
messages = st.builds(
    Message,
    body=texts.filter(bool) | st.binary(min_size=1, max_size=100),
    attributes=st.dictionaries(texts, texts | st.binary(max_size=8), max_size=3),
    tags=st.lists(texts, max_size=3).map(tuple),
    group=st.none() | st.sampled_from(("g", "é" * 128, "\U0001f600" * 128)),
)


class InMemory:
    """A bucket that takes everything."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def put(self, key: str, data: bytes) -> None:
        self.held[key] = data

    def get(self, key: str) -> bytes | None:
        return self.held.get(key)


class Refusing(InMemory):
    """A bucket that takes nothing."""

    def put(self, key: str, data: bytes) -> None:
        raise Unavailable


def place(least: int, sent: Sequence[Message], bucket: InMemory) -> Placed:
    core = create_autospec(Core, instance=True)
    core.bodies, core.settings = bucket, Settings(bodies_in_s3_from=least)
    return place_messages(core, SEND_ID, sent, DAY_MS)


def noise(size: int) -> Message:
    return Message(body=random.Random(size).randbytes(size))


@patiently
@given(st.lists(messages, min_size=1, max_size=4))
def test_the_estimated_size_is_never_too_small(sent: list[Message]) -> None:
    """Small sends are not packed to find out how small they are."""
    assert sum(map(_most_packed_bytes, sent)) >= len(pack(sent))


@patiently
@given(st.lists(messages, min_size=1, max_size=4), st.integers(1, 600))
def test_an_object_is_put_from_so_many_packed_bytes_on(sent: list[Message], least: int) -> None:
    bucket = InMemory()
    placed = place(least, sent, bucket)
    if len(pack(sent)) >= least:
        assert placed == Placed(days=2)
        assert bucket.get(object_key(SEND_ID, 2)) == pack_object(sent)
    else:
        assert placed.days == 0
        assert placed.packed in (None, pack(sent))
        assert bucket.get(object_key(SEND_ID, 2)) is None


def test_the_packed_size_is_of_the_whole_send() -> None:
    sent = [noise(100), noise(101)]
    size = len(pack(sent))
    assert place(size, sent, InMemory()).days
    assert not place(size + 1, sent, InMemory()).days


def test_off_nothing_is_packed_or_put() -> None:
    assert place(0, [noise(100_000)], Refusing()) == Placed()


def test_a_log_record_has_room_for_most_if_the_bucket_refuses() -> None:
    sent = [noise(TABLE_BATCH_BYTES)]
    assert place(1, sent, Refusing()) == Placed(packed=pack(sent))


def test_a_larger_send_is_in_an_object_however_small_it_packs() -> None:
    bucket, sent = InMemory(), [Message(body="x" * TABLE_BATCH_BYTES), Message(body="y")]
    assert len(pack(sent)) < 2_000
    assert place(16_384, sent, bucket) == Placed(days=2)
    assert bucket.get(object_key(SEND_ID, 2)) == pack_object(sent)
    assert not place(16_384, sent[:1], bucket).days


def test_a_larger_send_is_refused_with_the_bucket() -> None:
    with pytest.raises(Unavailable):
        place(1, [Message(body="x" * TABLE_BATCH_BYTES), Message(body="y")], Refusing())
