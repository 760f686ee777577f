"""No greenlet gives way to the others while it holds a lock that they may want."""

from __future__ import annotations

import base64
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.local.held_locks import watch
from tests.stack import Stack, environment

from cirrusmq_local.hub import Hub

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = 6
ROUNDS = 4
QUEUES: dict[str, dict[str, Any]] = {
    "plain": {"partitions": 8, "dead_letter": {"queue": "dead", "max_receives": 2}},
    "ordered": {"ordered": True},
    "fair": {"fair": True},
}


class WatchedStack(Stack):
    """A service whose locks are watched."""

    @property
    def told(self) -> Path:
        """Where greenlets waited with a lock."""
        return self.folder.with_suffix(".held")

    def _fork(self, arguments: list[str]) -> Any:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.local.held_locks", str(self.told), "up", *arguments],
            stdout=subprocess.PIPE,
            stderr=self._told,
            text=True,
            env=environment(),
            cwd=ROOT,
        )


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[WatchedStack]:
    running = WatchedStack(tmp_path / "data")
    yield running
    running.clean_up()


def use(client: httpx.Client, number: int) -> None:
    """Send, publish, receive and delete, as many ways as greenlets do it."""
    # Incompressible: in an object, and short enough for a greenlet.
    large = base64.b64encode(random.Random(number).randbytes(24_000)).decode()
    for turn in range(ROUNDS):
        bodies = [{"body": text, "group": f"g{number}"} for text in ("tea", large)]
        bodies[0]["deduplication_id"] = f"d{turn}"
        for queue in QUEUES:
            path = f"/queues/{queue}/messages"
            done(client.post(path, json={"messages": bodies}))
            asked = {"max": 4, "wait_seconds": 0.3}
            held = done(client.post(f"{path}/receive", json=asked))["messages"]
            receipts = [message["receipt"] for message in held[1:]]
            done(client.post(f"{path}/receive", json={"wait_seconds": 0, "delete": receipts}))
            if held:
                done(client.post(f"{path}/delete", json={"receipts": [held[0]["receipt"]]}))
        done(client.post("/topics/news/messages", json={"messages": bodies}))
        assert client.post("/queues/none/messages/receive", json={}).status_code == 404
        refused = client.post("/queues/plain/messages", json={}, headers={"authorization": "no"})
        assert refused.status_code == 401


def done(answer: httpx.Response) -> Any:
    assert answer.status_code < 300, answer.text
    return answer.json()


def test_calls_hold_no_lock_while_they_wait(stack: WatchedStack) -> None:
    client = stack.client()
    done(client.put("/queues/dead", json={}))
    for queue, attributes in QUEUES.items():
        done(client.put(f"/queues/{queue}", json=attributes))
    done(client.put("/topics/news", json={}))
    for name, wanted in (
        ("one", {"protocol": "queue", "endpoint": "dead"}),
        ("two", {"protocol": "pull"}),
    ):
        done(client.put(f"/topics/news/subscriptions/{name}", json=wanted))
    clients = [stack.client() for _ in range(CLIENTS)]
    try:
        with ThreadPoolExecutor(CLIENTS) as threads:
            list(threads.map(use, clients, range(CLIENTS)))
    finally:  # calls that wait for a lock for ever are not answered
        assert not stack.told.exists(), stack.told.read_text()


@pytest.mark.parametrize("held", [False, True])
def test_a_wait_with_a_lock_is_found(monkeypatch: pytest.MonkeyPatch, *, held: bool) -> None:
    told: list[str] = []
    watch(told.append, monkeypatch.setattr)
    lock, hub = threading.Lock(), Hub(lambda work: None)

    def wait() -> None:
        with lock:
            if held:
                hub.gather(lambda items: None, 1)
        hub.gather(lambda items: None, 2)

    task = hub.start(wait)
    while not task._done:
        hub.turn(1)
    hub.close()
    assert len(told) == (1 if held else 0)
    assert all("in wait\n" in each for each in told)
