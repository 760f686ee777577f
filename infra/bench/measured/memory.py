"""Memory of functions with the largest messages: peaks of whole processes.

Each case has a separate process with the service in memory, which has served one small call. So it
includes the tables, the bucket and the caller's copies, and a function needs less. Parallel calls
of a function run one after the other here; other limits bound the memory that they share (push:
`POSTED_BYTES`; receive: objects of four times the answer's size).

Only Linux reports a process's peak.
"""

from __future__ import annotations

import base64
import gc
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cirrusmq.base.limits import BATCH_BYTES
from cirrusmq_local.testing.world import Client, World

from ..drawing.tables import show

MB = 1_000_000
_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_chance = random.Random(3)


def _bytes(size: int = BATCH_BYTES) -> dict[str, Any]:
    return {"body_base64": base64.b64encode(_chance.randbytes(size)).decode()}


def _text() -> dict[str, Any]:
    """Returns a body of which each byte takes almost six bytes of JSON."""
    to = bytes(1 + code % 31 for code in range(256))
    return {"body": _chance.randbytes(BATCH_BYTES).translate(to).decode()}


MESSAGES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "one of 4 MB": lambda: [_bytes()],
    "one of 4 MB, 22 MB of JSON": lambda: [_text()],
    "16 of 256 KB": lambda: [_bytes(BATCH_BYTES // 16) for _ in range(16)],
}
CALLS = ("send", "receive", "publish", "push")


def run() -> None:
    """Prints the table."""
    rows = []
    for call in CALLS:
        for name in MESSAGES:
            done = subprocess.run(
                [sys.executable, "-m", "infra.bench.measured.memory", call, name],
                check=True,
                capture_output=True,
                text=True,
            )
            peak, limit = json.loads(done.stdout.splitlines()[-1])
            rows.append((call, name, round(peak), limit))
    show(
        "Peak memory of a process with the whole service in it, MB",
        ["function", "messages", "peak", "MemorySize"],
        rows,
    )


def measure(call: str, name: str) -> tuple[float, int]:
    """Returns one case's peak in megabytes, and the function's memory by the template."""
    world = World(by_sdk=True)
    client = world.client("bench")
    client.gzips = True
    client.put("/queues/bench", {"max_message_bytes": BATCH_BYTES, "partitions": 1})
    client.put("/topics/bench", {"max_message_bytes": BATCH_BYTES})
    hook = {"protocol": "http", "endpoint": "http://127.0.0.1:9/"}
    client.put("/topics/bench/subscriptions/hook", hook)
    small = [{"body": "x"}]
    for messages in (small, MESSAGES[name]()):
        at_work = _prepare(world, client, call, messages)
        del messages
        gc.collect()
        _FORGET.write_text("5")
        at_work()
        peak = _peak()
    function = next(each for each, _ in world._handlers.values() if each.folder.name == call)
    return peak, function.memory_mb


def _prepare(
    world: World, client: Client, call: str, messages: list[dict[str, Any]]
) -> Callable[[], object]:
    """Prepares a case. Returns the function's call."""
    path = "/queues/bench/messages" if call in ("send", "receive") else "/topics/bench/messages"
    if call in ("send", "publish"):
        return lambda: client.post(path, {"messages": messages})
    if client.post(path, {"messages": messages}).status != 201:
        raise RuntimeError("the messages were not taken")
    if call == "receive":
        return lambda: client.post(f"{path}/receive", {"max": 16, "wait_seconds": 0})
    world.run_stream("fan_out")

    def push() -> None:
        posted = len(world.posts)
        while world.invoked:
            world.run(*world.invoked.popleft())
        if len(world.posts) != posted + len(messages):
            raise RuntimeError("they were not posted")

    return push


def _peak() -> float:
    line = next(each for each in _STATUS.read_text().splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) * 1_024 / MB


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
