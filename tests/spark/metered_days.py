"""Days of two accounts' traffic on a store on disk, in a process that is killed in the midst.

    python -m tests.spark.metered_days <folder> <days> <seed> [kill]

What was answered is appended to `calls.jsonl`, in which the bill is looked for. A day ends with an
export of Usage: a whole one at first and each week, else of what changed since the one before. With
`kill` the process ends itself by SIGKILL while the last of the days is metered. A process that is
started after that first ends that day.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from cirrusmq_local.testing import Client, World
from cirrusmq_local.testing.clock import START_MS

DAY_MS, QUARTER_MS = 86_400_000, 6 * 3_600_000
ACCOUNTS, QUEUES = ("acme", "globex"), ("orders", "mail")


class Days:
    """A world on disk that goes on where the last process was killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.world = World(path=folder / "data.db")
        # Ids of two processes differ.
        self.world.random.seed(seed)
        self.random = random.Random(seed)
        self.clients: dict[str, Client] = {}

    def live(self, day: int) -> None:
        """A day's calls; none if a process before made them."""
        if self._noted("days.jsonl")[-1:] == [day]:
            self._wait_until(START_MS + (day + 1) * DAY_MS)
            return
        for quarter in range(4):
            self._wait_until(START_MS + day * DAY_MS + quarter * QUARTER_MS)
            for account in ACCOUNTS:
                # A key lives as long as its process.
                if account not in self.clients:
                    self.clients[account] = self.world.client(account, admin=True)
                self._use(account, self.random.choice(QUEUES))
            if self.random.random() < 0.5:
                self.world.settle()
        self._wait_until(START_MS + (day + 1) * DAY_MS)
        self._note("days.jsonl", day)

    def meter_and_export(self) -> None:
        self.world.settle()
        self.world.run("sweep")
        self.world.settle()
        # An export shows what was written before its own time; the last day has no later one.
        self.world.clock.pass_seconds(1)
        made = self._noted("exports.jsonl")
        since_ms = int(Path(made[-1]).name[:14]) if len(made) % 7 else None
        table = self.world.tables.usage
        export = self.world.engine.export(table, self.folder / "bucket", since_ms=since_ms)
        self._note("exports.jsonl", str(export))

    def _use(self, account: str, queue: str) -> None:
        client, place = self.clients[account], f"queue:{queue}"
        assert client.put(f"/queues/{queue}").status in (200, 201)
        sizes = [self.random.randrange(1, 900) for _ in range(self.random.randrange(1, 5))]
        client.send(queue, *("x" * size for size in sizes))
        self._answered(account, place, "sent", len(sizes))
        held = client.receive(queue, self.random.randrange(1, 6))
        self._answered(account, place, "received", len(held))
        receipts = [message["receipt"] for message in held[::2]]
        if receipts:
            path = f"/queues/{queue}/messages/delete"
            assert client.post(path, {"receipts": receipts}).json["failed"] == []
            self._answered(account, place, "deleted", len(receipts))

    def _answered(self, account: str, place: str, kind: str, count: int) -> None:
        self._note("calls.jsonl", [account, place, kind, count, self.world.clock.now_ms()])

    def _wait_until(self, time_ms: int) -> None:
        left_ms = time_ms - self.world.clock.now_ms()
        self.world.clock.pass_seconds(max(0, left_ms) / 1000)

    def _note(self, name: str, line: Any) -> None:
        with (self.folder / name).open("a") as file:
            file.write(f"{json.dumps(line)}\n")

    def _noted(self, name: str) -> list[Any]:
        path = self.folder / name
        return [*map(json.loads, path.read_text().splitlines())] if path.exists() else []


def kill_within(seconds: float) -> None:
    """End this process by SIGKILL in so many seconds, whatever it is about."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()


def main(folder: str, count: str, seed: str, *kill: str) -> None:
    """The next days."""
    days = Days(Path(folder), int(seed))
    first = len(days._noted("exports.jsonl"))
    for day in range(first, first + int(count)):
        days.live(day)
        if kill and day == first + int(count) - 1:
            kill_within(days.random.uniform(0, 0.05))
        days.meter_and_export()
    if kill:
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
