"""Who waits for an answer is told soon that the store is busy; work behind it takes its time."""

from __future__ import annotations

from collections import defaultdict

import pytest
from tests.service.crashes import before_each_call

from cirrusmq.wiring.bootstrap import max_attempts
from cirrusmq_local.cloud.invocation import running
from cirrusmq_local.testing import World


def test_the_functions_of_the_api_and_fan_out_make_two_attempts_the_others_five(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: defaultdict[str, set[int]] = defaultdict(set)

    def note(*_: object) -> None:
        invocation = running.get()
        if invocation is not None:
            seen[invocation.function.folder.name].add(max_attempts())

    before_each_call(world, monkeypatch, note)
    alice = world.client("alice", admin=True)
    alice.put("/queues/work")
    alice.put("/queues/handed", {"invoke": {"function": "handler"}})
    alice.put("/topics/news")
    subscription = {"protocol": "http", "endpoint": "http://127.0.0.1:9/"}
    alice.put("/topics/news/subscriptions/web", subscription)
    alice.post("/topics/news/messages", {"messages": [{"body": "x"}]})
    alice.send("work", "x")
    alice.send("handed", "x")
    (held,) = alice.receive("work")
    alice.post("/queues/work/messages/delete", {"receipts": [held["receipt"]]})
    alice.post("/queues/work/purge")
    world.settle()
    world.run("sweep")

    awaited = ("manage", "subscribe", "publish", "send", "receive", "delete", "fan_out")
    behind = ("push", "push_slow", "call", "meter", "replay", "sweep")
    assert dict(seen) == {**{name: {2} for name in awaited}, **{name: {5} for name in behind}}
