"""Wake-ups: their keys, and the memory of an execution environment."""

from __future__ import annotations

import pytest
from tests.unit.parcels import NOW_MS, source

from cirrusmq.base import limits
from cirrusmq.queues.wake_ups.memory import FOLLOWED_MS, MAX_AT_ONCE, WakeUpMemory
from cirrusmq.queues.wake_ups.rules import WAITS_MS, due_between, partition_in, wake_up_key, wakes


@pytest.fixture
def memory() -> WakeUpMemory:
    return WakeUpMemory()


def key(ms: int, partition: int = 7) -> str:
    return wake_up_key(NOW_MS + ms, partition, "0a1b")


class TestKeys:
    def test_a_key_names_the_partition(self) -> None:
        assert [partition_in(key(0, partition)) for partition in (0, 9, 254)] == [0, 9, 254]

    def test_due_wake_ups_within_the_clocks_difference_are_looked_for(self) -> None:
        after, until = due_between(NOW_MS, NOW_MS)
        assert [after <= key(ms) <= until for ms in (-4_001, -4_000, -2_000, 0, 1)] == [
            False,
            True,
            True,
            True,
            False,
        ]

    def test_a_waiters_registration_is_not_among_them(self) -> None:
        assert not due_between(NOW_MS, NOW_MS)[1] >= "~"

    @pytest.mark.parametrize("place", [{"receiver": "copy"}, {"subscription": "web"}])
    def test_copies_have_none(self, place: dict[str, str]) -> None:
        assert wakes(source(partitions=5))
        assert not wakes(source(partitions=4))
        assert not wakes(source(partitions=5, **place))


class TestWaits:
    def test_an_answer_without_waiters_is_kept_for_a_second(self, memory: WakeUpMemory) -> None:
        assert memory.waits("q", NOW_MS) is None
        memory.know("q", 0, NOW_MS)
        assert memory.waits("q", NOW_MS + 999) is False
        assert memory.waits("q", NOW_MS + 1_000) is None
        assert memory.waits("other", NOW_MS) is None

    def test_a_wait_is_believed_until_its_time(self, memory: WakeUpMemory) -> None:
        memory.know("q", NOW_MS + 30_000, NOW_MS)
        assert memory.waits("q", NOW_MS + 29_999) is True
        assert memory.waits("q", NOW_MS + 30_000) is None

    def test_a_wait_is_said_again_when_half_of_its_time_is_over(self, memory: WakeUpMemory) -> None:
        def says(ms: int) -> bool:
            return memory.says("q", NOW_MS + ms + WAITS_MS, NOW_MS + ms)

        assert [says(ms) for ms in (0, 15_000, 15_001, 16_000)] == [True, False, True, False]

    def test_an_unwritten_wait_is_announced_again(self, memory: WakeUpMemory) -> None:
        assert memory.says("q", NOW_MS + 30_000, NOW_MS)
        memory.forget_registration("q")
        assert memory.says("q", NOW_MS + 30_000, NOW_MS)


class TestWaking:
    def test_ten_at_once_and_then_five_a_second(self, memory: WakeUpMemory) -> None:
        assert sum(memory.may_wake("q", NOW_MS) for _ in range(50)) == 10
        assert sum(memory.may_wake("q", NOW_MS + ms) for ms in range(1_001)) == 5
        assert memory.may_wake("other", NOW_MS)

    def test_100_environments_write_half_of_a_keys_limit(self) -> None:
        assert 100 * limits.WAKE_UPS_PER_SECOND <= 500

    def test_a_refused_wake_up_halves_the_rate_and_five_seconds_add_one(
        self, memory: WakeUpMemory
    ) -> None:
        def written(start_ms: int) -> int:
            return sum(memory.may_wake("q", NOW_MS + start_ms + ms) for ms in range(0, 4_000, 20))

        memory.halve("q", NOW_MS)

        assert not memory.may_wake("q", NOW_MS)
        assert 9 <= written(0) <= 10, "2.5 a second"
        memory.halve("q", NOW_MS + 4_000)
        assert 4 <= written(4_000) <= 5, "1.25 a second"
        assert not all(memory.may_wake("q", NOW_MS + 9_000) for _ in range(5))
        assert sum(memory.may_wake("q", NOW_MS + 60_000) for _ in range(50)) == 10

    def test_a_clock_going_back_gives_none_away(self, memory: WakeUpMemory) -> None:
        assert sum(memory.may_wake("q", NOW_MS) for _ in range(50)) == 10
        assert not memory.may_wake("q", NOW_MS - 60_000)
        assert not memory.may_wake("q", NOW_MS)


class TestFollowing:
    def test_a_wake_up_is_followed_for_a_second(self, memory: WakeUpMemory) -> None:
        seen = [memory.follow("q", [key(0)], NOW_MS + ms) for ms in (0, 340, 680, 1_020)]
        assert seen == [[key(0)], [key(0)], [key(0)], []]
        assert FOLLOWED_MS == 1_000

    def test_a_look_follows_the_newest_eight_and_the_next_one_the_others(
        self, memory: WakeUpMemory
    ) -> None:
        keys = [key(-number) for number in range(10)]
        assert memory.follow("q", keys, NOW_MS) == keys[:MAX_AT_ONCE]
        assert memory.follow("q", keys, NOW_MS + FOLLOWED_MS + 1) == keys[MAX_AT_ONCE:]

    def test_those_no_longer_read_are_forgotten(self, memory: WakeUpMemory) -> None:
        memory.follow("q", [key(0)], NOW_MS)
        memory.follow("q", [], NOW_MS + 5_000)
        assert memory.follow("q", [key(0)], NOW_MS + 5_001) == [key(0)]
