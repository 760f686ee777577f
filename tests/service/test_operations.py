"""Operations: an account's view of its long work, and for how long."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from tests.service.conftest import TestQueue, sweep

from cirrusmq_local.testing import World

if TYPE_CHECKING:
    from tests.service.conftest import MakeQueue


def test_an_operation_shows_its_progress(world: World, queue: TestQueue) -> None:
    queue.send(*"abc")
    operation = queue.start("purge")
    path = f"/operations/{operation}"

    running = queue.client.get(path).json
    assert running == {
        "id": operation,
        "kind": "purge",
        "state": "running",
        "done": 0,
        "started_at": running["started_at"],
        "queue": queue.name,
        "key_id": running["key_id"],
    }
    world.settle()

    finished = queue.client.get(path).json
    assert (finished["state"], finished["done"]) == ("succeeded", 3)
    assert finished["finished_at"] >= finished["started_at"] == running["started_at"]


def test_it_is_visible_for_7_days(world: World, queue: TestQueue) -> None:
    operation = queue.start("purge")
    world.settle()
    world.clock.pass_seconds(7 * 86_400 - 2)
    assert queue.client.get(f"/operations/{operation}").status == 200

    world.clock.pass_seconds(2)

    assert queue.client.get(f"/operations/{operation}").code == "OperationNotFound"


def test_an_operation_on_a_deleted_queue_fails(world: World, queue: TestQueue) -> None:
    operation = queue.start("purge")
    queue.client.delete(queue.path)
    queue.client.put(queue.path)
    queue.send("of the new queue")
    world.settle()

    shown = queue.client.get(f"/operations/{operation}").json

    assert shown["state"] == "failed"
    assert shown["detail"]
    assert queue.bodies() == ["of the new queue"]


def test_the_sweep_starts_abandoned_operations_again(world: World, queue: TestQueue) -> None:
    queue.send("x")
    operation = queue.start("purge")
    world.invoked.clear()  # the invocation is lost

    sweep(world)

    assert queue.client.get(f"/operations/{operation}").json["state"] == "succeeded"


def test_a_repeated_invocation_does_no_harm(world: World, queue: TestQueue) -> None:
    queue.send(*"abc")
    operation = queue.start("purge")
    world.invoked.extend(list(world.invoked) * 2)
    world.settle()

    assert queue.client.get(f"/operations/{operation}").json["done"] == 3


def test_a_long_operation_goes_on_for_more_runs_than_lambda_allows_a_loop(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_queue(partitions=40)
    queue.send("purged")
    monkeypatch.setattr(sys.modules["cirrusmq_function_replay"], "SAVE_MS", 900_000)
    operation = queue.start("purge")

    world.settle()

    # Each run makes one step of the eighty; a chain of runs has an end of its own.
    assert world.dropped == []
    assert queue.client.get(f"/operations/{operation}").json["state"] == "running"

    sweep(world)

    assert queue.client.get(f"/operations/{operation}").json["state"] == "succeeded"
