"""What an older release does with items of this one, on one store: run by hand.

    git worktree add <folder> <commit of the older release>
    python -m tests.older_release <folder>

This release makes queues with newer features. The older one, in a process of its own, receives,
sends, changes attributes and gives back. Then this release receives what is left. It prints what
each of the two did; decision 0080 has the findings.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cirrusmq_local.testing import World
from cirrusmq_local.testing.world import Client, Reply

QUEUES: dict[str, dict[str, Any]] = {
    "priorities": {"priorities": 4},
    "spread": {"priorities": 4, "partitions": 4},
    "aged": {"priorities": 4, "ageing_seconds": 10},
    "rated": {"receive_rate": 1},
    "groups": {"fair": True, "partitions": 1, "rate": 1},
    "requests": {},
}
_RANKED = ("priorities", "spread", "aged")
_PATHS = ("", "layers/core", "layers/client", "infra")
_LEASE_SECONDS = 30


def main(older: Path) -> None:
    """Plays the three parts, each in a process of its release."""
    here = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as folder:
        for part, root in (("make", here), ("older", older), ("left", here)):
            paths = os.pathsep.join(str(root / each) for each in _PATHS)
            command = [sys.executable, __file__, part, folder]
            done = subprocess.run(
                command, cwd=root, env={**os.environ, "PYTHONPATH": paths}, check=True
            )
            assert done.returncode == 0


def _play(part: str, folder: Path) -> None:
    logging.disable(logging.CRITICAL)
    world, notes = World(path=folder / "store.db"), folder / "notes.json"
    known = json.loads(notes.read_text()) if notes.exists() else {}
    if known:
        world.clock.pass_seconds((known["ms"] - world.clock.now_ms()) / 1000 + 60)
    client = Client(world, known["key"]) if known else world.client("alice", admin=True)
    known = known or {"key": client.authorization}
    if part == "make":
        known["requests"] = _make(client)
    else:
        print(f"--- {'the older release' if part == 'older' else 'this release'}")
        for line in _use(client) if part == "older" else _receive_left(client, known["requests"]):
            print(line)
    world.settle()
    notes.write_text(json.dumps({**known, "ms": world.clock.now_ms()}))


def _make(client: Client) -> list[dict[str, Any]]:
    for name, attributes in QUEUES.items():
        assert client.put(f"/queues/{name}", attributes).status == 201
    for priority in (1, 4, 2, 3, 1):
        for name in _RANKED:
            client.send(name, f"{priority}", priority=priority)
    for number in range(3):
        client.send("rated", f"{number}")
        client.send("groups", f"{number}", group="g")
    return [client.send("requests", "ask", reply={"seconds": 3_600})[0] for _ in range(2)]


def _use(client: Client) -> Iterator[str]:
    for name in _RANKED:
        got = [_bodies(client, name, 1) for _ in range(2)]
        sent = client.post(f"/queues/{name}/messages", {"messages": [{"body": "older"}]})
        changed = client.patch(f"/queues/{name}", {"visibility_timeout_seconds": 31})
        yield f"{name}: receives {got}, sends {sent.status}, changes {changed.status}"
    for name in ("rated", "groups"):
        yield f"{name}: receives {_bodies(client, name, 16)}"
    (held, *_) = _receive(client, "requests", 1).json["messages"]
    given = {"receipts": [held["receipt"]], "delay_seconds": 5}
    back = client.post("/queues/requests/messages/give-back", given)
    yield f"requests: gives back {back.status}"


def _receive_left(client: Client, requests: list[dict[str, Any]]) -> Iterator[str]:
    for name in _RANKED:
        got: list[str] = []
        while some := _bodies(client, name, 1):
            got += some
        shown = client.get(f"/queues/{name}").json
        told = {each: shown[each] for each in QUEUES[name]}
        yield f"{name}: receives {got}, has {told}"
    for name in ("rated", "groups"):
        yield f"{name}: receives {_bodies(client, name, 16)}"
    for held in _receive(client, "requests", 16).json["messages"]:
        given = {"receipt": held["receipt"], "reply": {"body": "4"}}
        replied = client.post(f"/queues/requests/messages/{held['id']}/reply", given)
        yield f"requests: asks {'reply_by' in held}, replies {replied.status}"
    for asked in requests:
        query = f"reply_by={asked['reply_by']}&wait_seconds=0"
        seen = client.get(f"/queues/requests/messages/{asked['id']}/reply", query)
        yield f"requests: {seen.json['state']}"


def _receive(client: Client, name: str, limit: int) -> Reply:
    given = {"max": limit, "wait_seconds": 0, "visibility_timeout_seconds": _LEASE_SECONDS}
    return client.post(f"/queues/{name}/messages/receive", given)


def _bodies(client: Client, name: str, limit: int) -> list[str]:
    return [each["body"] for each in _receive(client, name, limit).json["messages"]]


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]).resolve())
    else:
        _play(sys.argv[1], Path(sys.argv[2]))
