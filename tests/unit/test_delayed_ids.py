"""The delay in the id of a send, by which a message is found under its first key."""

from __future__ import annotations

import pytest
from tests.unit.parcels import NOW_MS, SEND_ID

from cirrusmq.base import ulid
from cirrusmq.base.limits import DELAY_SECONDS
from cirrusmq.model.delayed_id import delay_in, with_delay

ENTROPY = bytes.fromhex("00112233445566778899")


def send_id(entropy: bytes) -> str:
    return ulid.encode(NOW_MS, entropy)


@pytest.mark.parametrize("seconds", [0, 1, 255, 256, 65_536, 1_295_999, DELAY_SECONDS[1]])
def test_a_delay_is_read_again_from_its_id(seconds: int) -> None:
    made = send_id(with_delay(ENTROPY, seconds))
    assert delay_in(made) == seconds
    assert ulid.time_of(made) == NOW_MS


def test_six_bytes_of_entropy_stay() -> None:
    assert with_delay(ENTROPY, 0x010203) == bytes.fromhex("d5010203445566778899")
    assert len({with_delay(ENTROPY[:-1] + bytes([last]), 5) for last in range(256)}) == 256


@pytest.mark.parametrize("entropy", ["00112233445566778899", "d6000005445566778899"])
def test_an_id_without_the_mark_has_no_delay(entropy: str) -> None:
    assert delay_in(send_id(bytes.fromhex(entropy))) is None


def test_a_delay_beyond_the_longest_is_none() -> None:
    assert delay_in(send_id(with_delay(ENTROPY, DELAY_SECONDS[1] + 1))) is None
    assert delay_in(send_id(with_delay(ENTROPY, 2**24 - 1))) is None


def test_the_delay_in_an_id_stays_the_same_over_releases() -> None:
    assert delay_in("01M7Q5CQG0TM0001T4ANK7F24S") == 7
    assert delay_in(SEND_ID) is None
