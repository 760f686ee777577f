"""The keys of objects with messages: the same in every release, and spread over prefixes."""

from __future__ import annotations

from tests.unit.parcels import NOW_MS, SEND_ID

from cirrusmq.base import ulid
from cirrusmq.storage.bodies.object import object_key


def test_a_key_stays_the_same_over_releases() -> None:
    # Made with: printf 01M7Q5CQG0F81FFGDXGX6TBSR9 | b2sum -l 64
    assert object_key(SEND_ID, 2) == f"d02/1a2/{SEND_ID}"
    assert object_key(SEND_ID, 14) == f"d14/1a2/{SEND_ID}"


def test_keys_of_one_moment_are_spread() -> None:
    sends = [ulid.encode(NOW_MS, number.to_bytes(10, "big")) for number in range(1_000)]
    prefixes = {object_key(send_id, 2).rpartition("/")[0] for send_id in sends}
    assert len(prefixes) > 800
