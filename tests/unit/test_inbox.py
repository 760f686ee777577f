"""What a consumer holds unstarted: nothing beside a message that was received before."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq_client.inbox import Inbox
from cirrusmq_client.leases import Held
from cirrusmq_client.messages import Received


def held(name: str, group: str | None = None) -> Held:
    """A message that is in hand; with `+` in its name it was received before."""
    shown: dict[str, Any] = {"id": name, "receipt": name, "receive_count": 1 + ("+" in name)}
    return Held(Received(shown | ({"group": group} if group else {})), 30.0, 1.0)


def names(messages: list[Held]) -> list[str]:
    return [each.message.id for each in messages]


def filled(*messages: str, ordered: bool = False, prefetch: int = 16) -> Inbox:
    """An inbox with messages; `name/group` in the order of their receiving."""
    inbox = Inbox(prefetch)
    inbox.ordered = ordered
    assert inbox.put([held(*each.split("/")) for each in messages]) == []
    return inbox


def taken(inbox: Inbox, limit: int = 1) -> list[Held]:
    messages: list[Held] = inbox.take(limit, 0.0)
    return messages


def test_new_messages_are_taken_first_and_one_received_before_alone() -> None:
    inbox = filled("a", "b+", "c+", "d")
    assert names(taken(inbox, 5)) == ["a", "d"]
    one = taken(inbox, 5)
    assert names(one) == ["b+"]
    assert names(inbox.beside(one)) == ["c+"]
    assert inbox.close() == []


def test_nothing_is_given_back_beside_new_messages() -> None:
    inbox = filled("a", "b", "c+")
    assert inbox.beside(taken(inbox)) == []
    assert names(inbox.close()) == ["b", "c+"]


@pytest.mark.parametrize("ordered", [False, True])
def test_arrivals_beside_one_received_before_are_given_back(ordered: bool) -> None:
    inbox = filled("a+/g", ordered=ordered)
    inbox.beside(one := taken(inbox))

    late = [held("b", "h"), held("c+", "i")]
    assert inbox.put(late) == late

    inbox.done(one[0])
    assert inbox.put(late) == []


def test_idle_workers_keep_their_next_messages() -> None:
    inbox = filled("a+", "b+", "c+", "d+")
    inbox._idle = 2  # as two workers that wait in `take` have it
    assert names(inbox.beside(taken(inbox))) == ["d+"]


def test_of_an_ordered_group_only_the_first_is_kept() -> None:
    inbox = filled("a+/g", "b+/g", "c+/h", ordered=True)
    inbox._idle = 2
    assert names(inbox.beside(taken(inbox))) == ["b+"]
    assert names(taken(inbox)) == ["c+"]


@pytest.mark.parametrize(
    ("prefetch", "once", "busy", "gathering"),
    [
        (16, False, 16, 17),
        (5, False, 16, 17),
        (99, False, 99, 100),
        (0, False, None, 16),
        (16, True, None, 16),
    ],
)
def test_batches_are_fetched_whole_and_none_beside_a_worker_without_prefetching(
    prefetch: int, once: bool, busy: int | None, gathering: int
) -> None:
    inbox = Inbox(prefetch, limit=16)
    inbox.once = once
    assert inbox._may_hold == (busy or 0)
    inbox._idle = 1
    assert inbox._idle + inbox._may_hold == gathering
    inbox.put([held("a")])  # the idle worker is about to take it
    assert inbox._may_hold == (busy or 0)


@pytest.mark.parametrize(("messages", "room"), [(("a",), 15), (("a+",), 0), (("a", "b+"), 0)])
def test_nothing_is_fetched_ahead_beside_one_received_before(
    messages: tuple[str, ...], room: int
) -> None:
    inbox = filled(*messages)
    if not room:
        inbox._idle = len(messages) + 1
    assert inbox.wait_for_room() == (room or 1)


def test_messages_are_fetched_ahead_again_after_new_ones() -> None:
    inbox = filled("a+")
    inbox.done(*taken(inbox))
    inbox._idle = 1
    assert inbox.wait_for_room() == 1
    inbox.put([held("b")])
    taken(inbox)
    assert inbox.wait_for_room() == 16


def test_a_batch_does_not_gather_beside_one_received_before() -> None:
    inbox = filled("a", "b+")
    assert names(inbox.take(8, 60.0)) == ["a"]
    one = inbox.take(8, 60.0)
    assert names(one) == ["b+"]
    inbox._idle = 1
    assert inbox.put([held("c"), held("d")]) == []
    inbox._idle = 0
    assert names(inbox.take(8, 60.0)) == ["c", "d"]


def test_a_closed_inbox_takes_nothing() -> None:
    inbox = filled("a+", "b")
    assert names(inbox.close()) == ["a+", "b"]
    assert names(inbox.put([held("c")])) == ["c"]
