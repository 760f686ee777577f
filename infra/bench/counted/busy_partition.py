"""Units of scans at the head of a busy partition, and the delay of messages there.

Receivers in separate environments share one partition, in simulated time. A number of messages is
in flight for a long time; others are sent at a steady rate, received, held for some seconds and
deleted, except one of a hundred, which is abandoned until its lease expires. All figures are
counted and deterministic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from cirrusmq_local.testing.world import Client, World

from ..drawing.tables import show

ENVIRONMENTS = (1, 10, 100)
IN_FLIGHT = (1_000, 9_000)
RATE = 300
"""Messages sent in a second."""
SECONDS = 40
LOOKS_A_SECOND = 5
"""Scans by each environment; all together at least enough for the rate."""
FEWEST_LOOKS = 60
ABANDONED = 100
"""One message of this number is abandoned."""
BODY = "x" * 100
HOLD_MS, LEASE_SECONDS = 3_000, 4
"""A consumer deletes a second before its lease ends."""
LONG_MS = 43_200_000
PUTS_PER_CALL = 25


@dataclass
class Figures:
    """The counts of one run."""

    seconds: float = 0.0
    looks: int = 0
    query_units: float = 0.0
    mark_reads: float = 0.0
    mark_writes: float = 0.0
    first_ms: list[int] = field(default_factory=list)
    """Times from a send to the first receive."""
    again_ms: list[int] = field(default_factory=list)
    """Times from the end of a lease to the next receive."""

    def row(self) -> list[object]:
        """Returns figures per second, and delays: median, maximum, and maximum after leases."""
        first, again = sorted(self.first_ms), sorted(self.again_ms)
        per_second = (self.looks, self.query_units, self.mark_reads, self.mark_writes)
        return [
            *(round(number / self.seconds, 1) for number in per_second),
            first[len(first) // 2],
            first[-1],
            round(again[len(again) // 2] / 1000, 1) if again else "-",
            round(again[-1] / 1000, 1) if again else "-",
        ]


def run() -> None:
    """Prints the table."""
    rows = [
        [environments, in_flight, *measure(environments, in_flight).row()]
        for in_flight in IN_FLIGHT
        for environments in ENVIRONMENTS
    ]
    show(
        f"One partition, {RATE} messages a second, one of {ABANDONED} abandoned",
        [
            "environments",
            "in flight",
            "looks a second",
            "read units a second",
            "and for marks",
            "write units for marks",
            "first delivery, median ms",
            "at most",
            "ended lease, median s",
            "at most",
        ],
        rows,
    )


def measure(
    environments: int, in_flight: int, *, rate: int = RATE, seconds: float = SECONDS
) -> Figures:
    """Counts over `seconds` of simulated time, after the number of leases is stable."""
    partition = _Partition(environments, in_flight, rate)
    partition.pass_seconds(HOLD_MS / 1000)
    partition.figures = Figures(seconds=seconds)
    partition.pass_seconds(seconds)
    partition.world.engine.close()
    return partition.figures


class _Partition:
    def __init__(self, environments: int, in_flight: int, rate: int) -> None:
        self.figures = Figures(seconds=1)
        self.world = World()
        self._client: Client = self.world.client("alice")
        self._client.put("/queues/work", {"partitions": 1})
        self._cores = [replace(self.world.core, memories={}) for _ in range(environments)]
        self._sender = replace(self.world.core, memories={})
        self._held: deque[tuple[int, str]] = deque()
        """(time of the delete, receipt)"""
        self._ended: dict[str, int] = {}
        """Id of an abandoned message -> end of its lease."""
        self._sent: dict[str, int] = {}
        self._send_ms, self._look_ms = (
            1000 / rate,
            1000 / max(FEWEST_LOOKS, LOOKS_A_SECOND * environments),
        )
        self._next_send = self._next_look = float(self.world.clock.now_ms())
        self._looks = self._received = 0
        self._fill(in_flight)
        execute = self.world.engine.execute

        def count(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            marks = "H#" in str(request.get("Key") or request.get("Item") or "")
            if marks:
                self.figures.mark_writes += 1
            answer = execute(operation, request)
            if operation == "Query":
                self.figures.query_units += answer["ConsumedCapacity"]["CapacityUnits"]
            elif operation == "BatchGetItem" and "H#" in str(request):
                self.figures.mark_reads += 0.5
            return answer

        self.world.engine.execute = count  # type: ignore[method-assign]

    def pass_seconds(self, seconds: float) -> None:
        """Moves the clock from event to event."""
        end_ms = self.world.clock.now_ms() + seconds * 1000
        while (moment := min(self._next_send, self._next_look)) < end_ms:
            self.world.clock.pass_seconds(max(0.0, moment - self.world.clock.now_ms()) / 1000)
            if self._next_send <= self._next_look:
                self._next_send += self._send_ms
                self._send()
            else:
                self._next_look += self._look_ms
                self._look()
            self._delete()

    def _fill(self, count: int) -> None:
        """Writes messages with long leases, sent within the ten seconds before."""
        self.world.core = self._sender
        self._client.send("work", BODY)
        self._client.receive("work")
        (item,) = (item for item in self.world.items() if item["pk"]["S"].startswith("Q#"))
        now_ms = self.world.clock.now_ms()
        first_ms, behind = now_ms - 14_000, item["sk"]["S"][13:]
        held = item | {"v": {"L": [{"N": str(now_ms + LONG_MS)}]}}
        puts = [
            {"PutRequest": {"Item": held | {"sk": {"S": f"{first_ms + n:013d}{behind}"}}}}
            for n in range(count)
        ]
        for first in range(0, count, PUTS_PER_CALL):
            request = {self.world.tables.messages: puts[first : first + PUTS_PER_CALL]}
            self.world.engine.execute("BatchWriteItem", {"RequestItems": request})

    def _send(self) -> None:
        self.world.core = self._sender
        (sent,) = self._client.send("work", BODY)
        self._sent[sent["id"]] = self.world.clock.now_ms()

    def _look(self) -> None:
        self.world.core = self._cores[self._looks % len(self._cores)]
        self._looks += 1
        self.figures.looks += 1
        received = self._client.receive("work", 16, visibility_timeout_seconds=LEASE_SECONDS)
        now_ms = self.world.clock.now_ms()
        for message in received:
            if message["receive_count"] == 1:
                self.figures.first_ms.append(now_ms - self._sent.pop(message["id"]))
            elif message["id"] in self._ended:
                self.figures.again_ms.append(now_ms - self._ended.pop(message["id"]))
            self._received += 1
            if self._received % ABANDONED:
                self._held.append((now_ms + HOLD_MS, message["receipt"]))
            else:
                self._ended[message["id"]] = now_ms + LEASE_SECONDS * 1000

    def _delete(self) -> None:
        now_ms = self.world.clock.now_ms()
        due: list[str] = []
        while self._held and self._held[0][0] <= now_ms and len(due) < 16:
            due.append(self._held.popleft()[1])
        if due:
            self.world.core = self._sender
            self._client.post("/queues/work/messages/delete", {"receipts": due})
