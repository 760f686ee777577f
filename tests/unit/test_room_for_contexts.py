"""Which messages of a client's call have room for a trace context."""

from __future__ import annotations

import pytest

from cirrusmq_client import Message
from cirrusmq_client.tracing import MESSAGE_BYTES, NAMES, ROOM_BYTES, find_room

K256 = 262_144


def named(count: int) -> Message:
    return Message("x", attributes={f"k{number}": "" for number in range(count)})


def sized(size: int) -> Message:
    return Message("x" * size)


@pytest.mark.parametrize(("count", "room"), [(0, True), (8, True), (9, False), (10, False)])
def test_two_names_are_free(count: int, room: bool) -> None:
    assert find_room([named(count)]) == [room]


@pytest.mark.parametrize("name", NAMES)
def test_a_context_of_its_own_stays(name: str) -> None:
    assert find_room([Message("x", attributes={name: "own"})]) == [False]


def test_a_message_stays_below_its_bound() -> None:
    assert find_room([sized(MESSAGE_BYTES - ROOM_BYTES)]) == [True]
    assert find_room([sized(MESSAGE_BYTES - ROOM_BYTES + 1)]) == [False]


@pytest.mark.parametrize("limit", [K256, 4_194_304])
def test_a_call_does_not_pass_a_limit_by_its_contexts(limit: int) -> None:
    rest = limit - 2 * ROOM_BYTES - 3 * 100
    filler = [sized(100_000)] * (rest // 100_000) + [sized(rest % 100_000)]
    contexts = [find_room([*filler, sized(100), sized(100), sized(100)])]

    assert [sum(each) for each in contexts] == [2]


def test_a_call_above_the_smaller_limit_needs_the_larger_one_anyway() -> None:
    assert find_room([sized(200_000), sized(100_000)]) == [True, True]
    assert find_room([sized(5_000_000), sized(1)]) == [False, False]
