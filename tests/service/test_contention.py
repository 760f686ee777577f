"""Several callers who create or change the same thing at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from tests.service.conftest import TestQueue
from tests.service.crashes import before_transactions
from tests.service.topics import TestTopic

from cirrusmq_local.testing import Client, World

Meddle: TypeAlias = Callable[[Callable[[], object], int], None]


@pytest.fixture
def meddle(world: World, monkeypatch: pytest.MonkeyPatch) -> Meddle:
    """`meddle(other, times)`: before each of the next transactions `other` makes its own."""
    return lambda other, times: before_transactions(world, monkeypatch, other, times)


PUTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "queue": ("/queues/new", {}, {"delay_seconds": 5}),
    "receiver": ("/queues/orders/receivers/new", {}, {"filter": {"tags": ["a"]}}),
    "early receiver": ("/queues/orders/receivers/new", {"start": "earliest"}, {}),
    "topic": ("/topics/new", {}, {"filter": "routing_key"}),
    "subscription": (
        "/topics/news/subscriptions/new",
        {"protocol": "pull"},
        {"protocol": "pull", "mode": "broadcasting"},
    ),
}


@pytest.mark.parametrize("name", PUTS)
def test_two_creators_of_the_same_get_the_same(
    alice: Client, queue: TestQueue, topic: TestTopic, meddle: Meddle, name: str
) -> None:
    path, attributes, _ = PUTS[name]
    queue.add_receiver("first")  # the log is on: a receiver is one transaction
    others = []
    meddle(lambda: others.append(alice.put(path, attributes)), 1)
    own = alice.put(path, attributes)

    assert [other.status for other in others] == [201]
    assert own.status == 200, own.text
    assert own.json == others[0].json
    assert alice.get(path).json["id"] == own.json["id"]


@pytest.mark.parametrize("name", PUTS)
def test_of_two_creators_of_different_ones_the_slower_is_told(
    alice: Client, queue: TestQueue, topic: TestTopic, meddle: Meddle, name: str
) -> None:
    path, attributes, others_attributes = PUTS[name]
    queue.add_receiver("first")
    meddle(lambda: alice.put(path, others_attributes), 1)

    assert alice.call("PUT", path, attributes, "exact=true").code == "AlreadyExists"
    assert alice.call("PUT", path, others_attributes, "exact=true").status == 200


@pytest.mark.parametrize("times", [1, 7])
@pytest.mark.parametrize(
    ("path", "change", "other"),
    [
        ("/queues/orders", {"delay_seconds": 5}, {"visibility_timeout_seconds": 1_000}),
        ("/topics/news", {"max_message_bytes": 4_096}, {"description": "others"}),
        (
            "/topics/news/subscriptions/all",
            {"dead_letter_queue": "dead"},
            {"filter": {"tags": ["a"]}},
        ),
    ],
    ids=["queue", "topic", "subscription"],
)
def test_changes_at_the_same_time_are_all_kept(
    world: World,
    alice: Client,
    queue: TestQueue,
    topic: TestTopic,
    meddle: Meddle,
    path: str,
    change: dict[str, Any],
    other: dict[str, Any],
    times: int,
) -> None:
    alice.put("/queues/dead")
    topic.subscribe()
    began_ms = world.clock.now_ms()
    made = []
    meddle(lambda: made.append(alice.patch(path, other).status), times)
    assert alice.patch(path, change).status == 200

    assert set(made) == {200}
    shown = alice.get(path).json
    assert shown.items() >= {**change, **other}.items()
    # A call that was too slow lets some time pass before it tries again.
    assert world.clock.now_ms() - began_ms >= len(made)


def test_whoever_is_always_too_slow_is_told_and_has_changed_nothing(
    alice: Client, queue: TestQueue, meddle: Meddle
) -> None:
    values = iter(range(100, 200))
    meddle(lambda: alice.patch(queue.path, {"visibility_timeout_seconds": next(values)}), 100)

    refused = queue.patch(delay_seconds=5)

    assert (refused.status, refused.code) == (503, "Unavailable")
    assert refused.json["detail"] == "Too many concurrent changes; try again."
    shown = queue.show()
    assert (shown["delay_seconds"], shown["visibility_timeout_seconds"]) == (0, 107)
