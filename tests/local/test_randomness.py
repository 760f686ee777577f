"""Random numbers that are drawn ahead: all of their range, and none given twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from cirrusmq_local.cloud.randomness import DrawnAhead


def test_threads_never_get_the_same_bytes() -> None:
    randomness = DrawnAhead()
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda _: randomness.randbytes(16), range(5_000)))
    assert len(set(taken)) == len(taken)
    assert {len(each) for each in taken} == {16}


@pytest.mark.parametrize("bits", [0, 1, 7, 8, 9, 53, 80, 128, 200])
def test_a_number_has_so_many_bits_and_each_is_sometimes_set(bits: int) -> None:
    randomness = DrawnAhead()
    ever = 0
    for _ in range(200):
        number = randomness.getrandbits(bits)
        assert 0 <= number < 2**bits
        ever |= number
    assert ever == 2**bits - 1


def test_random_numbers_from_them_stay_in_their_range() -> None:
    randomness = DrawnAhead()
    assert all(0 <= randomness.random() < 1 for _ in range(300))
    assert {randomness.randrange(3) for _ in range(300)} == {0, 1, 2}
    with pytest.raises(ValueError, match="negative"):
        randomness.getrandbits(-1)
