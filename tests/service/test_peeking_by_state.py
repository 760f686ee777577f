"""Peeking shows the messages of one state, and changes none."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.test_peeking_at_all import pages

from cirrusmq_local.testing import World

STATES = ("active", "inactive", "delayed")


def peeked(queue: TestQueue, state: str) -> list[str]:
    """The bodies of all messages in a state, page by page."""
    return sorted(each["body"] for page in pages(queue, max=3, state=state) for each in page)


@pytest.mark.parametrize("attributes", [{}, {"partitions": 1}, {"fair": True}])
def test_each_message_is_in_one_state(make_queue: MakeQueue, attributes: dict[str, Any]) -> None:
    queue = make_queue(**attributes)
    group = {"group": "g"} if "fair" in attributes else {}
    queue.send(*(f"held {n}" for n in range(5)), **group)
    assert len(queue.receive_all()) == 5
    queue.send(*(f"active {n}" for n in range(4)), **group)
    for n in range(4):
        queue.send(f"delayed {n}", delay_seconds=86_400 * n + 600, **group)

    shown = {state: peeked(queue, state) for state in STATES}

    assert shown == {
        "active": [f"active {n}" for n in range(4)],
        "inactive": [f"held {n}" for n in range(5)],
        "delayed": [f"delayed {n}" for n in range(4)],
    }
    counts = queue.show()["counts"]
    assert {state: counts[state] for state in STATES} == {
        state: len(bodies) for state, bodies in shown.items()
    }


def test_a_waiting_retry_is_inactive_and_becomes_active_at_its_end(
    world: World, dead: TestQueue, make_queue: MakeQueue
) -> None:
    queue = make_queue(
        retry={"policy": "custom", "waits": [3_600]},
        dead_letter={"queue": dead.name, "max_receives": 9},
    )
    queue.send("one")
    (held,) = queue.receive()
    assert peeked(queue, "inactive") == ["one"]
    queue.give_back(held)
    assert peeked(queue, "inactive") == ["one"]
    assert peeked(queue, "active") == []
    world.clock.pass_seconds(3_601)
    assert peeked(queue, "inactive") == []
    assert peeked(queue, "active") == ["one"]


def test_ended_messages_are_in_no_state(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(message_retention_seconds=60)
    queue.send("done", "old")
    queue.delete(*queue.receive(1))
    world.clock.pass_seconds(61)
    assert [peeked(queue, state) for state in STATES] == [[], [], []]
