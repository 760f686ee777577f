"""The load test: what is lost or comes twice is told, and so is what it cost."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Sequence
from typing import Any, cast

import pytest

from cirrusmq_client import Client, Message, Received
from cirrusmq_client.errors import NotReachable
from cirrusmq_client.outcomes import Outcome as Settled
from cirrusmq_local.commands import load as loading
from cirrusmq_local.commands.bench import percentiles
from cirrusmq_local.commands.estimate import dollars, life_units
from cirrusmq_local.commands.load import Calls, Load, Outcome, make_body


class Service:
    """A queue in memory that can lose, repeat and refuse."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.messages: list[Message] = []
        self.lose: set[int] = set()
        self.repeat: set[int] = set()
        self.refuse_sends = 0
        self.count = 0

    def send(self, queue: str, messages: Sequence[Message]) -> list[object]:
        with self.lock:
            if self.refuse_sends:
                self.refuse_sends -= 1
                raise NotReachable
            for message in messages:
                if self.count not in self.lose:
                    self.messages += [message] * (1 + (self.count in self.repeat))
                self.count += 1
        return list(messages)

    def receive(self, queue: str, limit: int, *, wait_seconds: float) -> list[Received]:
        time.sleep(0.002)
        with self.lock:
            some, self.messages = self.messages[:limit], self.messages[limit:]
        return [
            Received({**message.to_json(), "id": "m", "receipt": f"r{number}"})
            for number, message in enumerate(some)
        ]

    def delete(self, queue: str, receipts: Sequence[str]) -> Settled:
        return Settled(dict.fromkeys(receipts), [])


def run(service: Service, **options: Any) -> Outcome:
    chosen: dict[str, Any] = {"size": 64, "batch": 4, "rate": 400.0} | options
    return Load(cast(Client, service), "q", **chosen).run(0.25, 2, 2)


def test_every_message_is_followed_to_its_end() -> None:
    service = Service()
    outcome = run(service)
    assert outcome.sent == outcome.deleted == len(outcome.delays) == service.count > 0
    assert (outcome.lost, outcome.repeated) == (0, 0)
    assert all(len(calls.seconds) > 0 for calls in outcome.calls.values())


def test_a_lost_message_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "QUIET_SECONDS", 0.2)
    service = Service()
    service.lose = {1, 2}
    outcome = run(service)
    assert (outcome.sent, outcome.lost) == (service.count, 2)


def test_a_repeated_message_is_told() -> None:
    service = Service()
    service.repeat = {1}
    outcome = run(service)
    assert (outcome.lost, outcome.repeated) == (0, 1)


def test_a_failed_send_is_counted_and_not_missed() -> None:
    service = Service()
    service.refuse_sends = 1
    outcome = run(service)
    assert outcome.calls["send"].failed == ["NotReachable"]
    assert (outcome.sent, outcome.lost) == (service.count, 0)


def test_percentiles_are_of_the_calls_in_order() -> None:
    times = [number / 1_000 for number in range(100, 0, -1)]
    assert percentiles(times) == {"p50": 51.0, "p90": 91.0, "p99": 100.0, "max": 100.0}
    assert percentiles([]) == {}


@pytest.mark.parametrize(
    ("size", "batch", "writes"), [(100, 1, 3.0), (1_000, 1, 3.0), (40, 16, 4 / 16)]
)
def test_units_are_those_of_the_cost_table(size: int, batch: int, writes: float) -> None:
    assert life_units(size, batch, {})[0] == writes


def test_bodies_have_their_size_and_do_not_compress() -> None:
    for size in (32, 100, 262_144):
        assert len(make_body(7, size)) == size
    assert len(zlib.compress(make_body(7, 10_000).encode())) > 7_000


def test_attributes_refused_by_the_service_are_told() -> None:
    with pytest.raises(ValueError, match="partitions"):
        life_units(100, 1, {"partitions": 0})


def test_dollars_are_units_and_calls_times_their_prices() -> None:
    outcome = Outcome(sent=1_000_000, empty_receives=1_000)
    outcome.calls["send"] = Calls(seconds=[0.01] * 500_000)
    outcome.calls["receive"] = Calls(seconds=[0.02] * 400_000, failed=["NoAnswer"] * 100_000)
    lines = dollars(outcome, (3.0, 0.5), 4)
    assert lines == pytest.approx(
        {
            "writes": 3 * 0.625,
            "reads": (500_000 + 2_000) * 0.125 / 1_000_000,
            "HTTP API": 1.0,
            "Lambda calls": 0.2,
            "Lambda time": (5_000 + 8_000) * 0.25 * 0.0000133334,
        }
    )
