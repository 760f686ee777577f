"""A store that throttles some writes, and the batches of log records that meet it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.service.topics import TestTopic

from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import World

Wanted = Callable[[str, Mapping[str, Any]], bool]


class Throttled:
    """Refuses the calls that `wanted` picks, so many times; the SDK's own tries are over then.

    `wanted` is given the operation and the request. Refused calls have no effect.
    """

    def __init__(self, world: World, wanted: Wanted, times: int = 1_000_000) -> None:
        self.refused = 0
        self._world = world
        self._execute = world.engine.execute
        self._wanted = wanted
        self._times = times
        world.engine.execute = self._refuse  # type: ignore[method-assign]

    def end(self) -> None:
        """The store takes every call again."""
        self._times = 0

    def _refuse(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if self.refused < self._times and self._wanted(operation, request):
            self.refused += 1
            raise EngineError("ProvisionedThroughputExceededException", "slow down")
        answer: dict[str, Any] = self._execute(operation, request)
        return answer


def puts_into(resource_id: str) -> Wanted:
    """Writes of parcels into a source, by themselves or in a transaction."""

    def wanted(operation: str, request: Mapping[str, Any]) -> bool:
        puts = [request] if operation == "PutItem" else []
        puts += [part["Put"] for part in request.get("TransactItems", ()) if "Put" in part]
        keys = [put["Item"]["pk"]["S"] for put in puts]
        return any(key.startswith(f"Q#{resource_id}#") for key in keys)

    return wanted


def publish_apart(topic: TestTopic, *bodies: str, **fields: Any) -> list[dict[str, Any]]:
    """Publish in calls of their own, without fan-out; answers all log records so far."""
    for body in bodies:
        topic.client.world.clock.pass_seconds(0.001)
        assert topic.try_publish([{"body": body, **fields}]).status == 201
    return log_records(topic.client.world)


def log_records(world: World) -> list[dict[str, Any]]:
    """Every log record so far, as the stream brings it to `fan_out`."""
    stream = world.engine.read_stream(world.tables.messages, 0, 100_000)
    return [
        each.as_lambda_record()
        for each in stream
        if each.event_name == "INSERT" and each.keys["pk"]["S"].startswith("L#")
    ]
