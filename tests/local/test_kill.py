"""kill -9 of the whole stack under load: no answered send is lost, no answered delete undone.

Eight senders and eight receivers call over HTTP, each in a thread, singles and batches; the stack
is killed in the middle, started again on the same data, and drained.

    sent       answered with 201
    received   seen by a receiver, before the kill or after it
    deleted    answered as deleted

Beside the small messages there are rounds with large ones: 1 MB each in every other send.
Then every sent message was received, and none was received after its delete was answered.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.stack import Stack, Start

# Real time counts here: with other tests beside it, a loaded machine would fail it.
pytestmark = pytest.mark.alone

SENDERS = RECEIVERS = 8
# The kill is when so much was answered, on a machine of any speed, and a moment more.
SENT, DELETED = 300, 60
LOAD_SECONDS = 60
DRAIN_SECONDS = 60
# Leases end soon after the restart, so that messages held at the kill can be drained.
SCALE = 10
ARGUMENTS = ("--time-scale", str(SCALE), "--environments", "cloud")
QUEUE = "/queues/orders"
IN_OBJECT_BYTES = 24_000
"""Of random bytes in a send: its messages are in an object."""
LARGE_BYTES = 1_048_576
"""Of one message in rounds of large ones."""
LARGE_SENT, LARGE_DELETED = 40, 12


class History:
    """The knowledge of all callers together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sent: dict[str, str] = {}
        """Id -> body, of answered sends."""
        self.received: dict[str, str] = {}
        self.deleted: set[str] = set()
        self.returned: list[str] = []
        """Ids received after their delete was answered."""

    def note_sent(self, answered: list[dict[str, Any]], bodies: list[str]) -> None:
        with self._lock:
            for message, body in zip(answered, bodies, strict=True):
                assert message["id"] not in self.sent
                self.sent[message["id"]] = body

    def deleted_now(self) -> set[str]:
        """Taken before a receive starts: ids that it must not answer any more."""
        with self._lock:
            return set(self.deleted)

    def note_received(self, messages: list[dict[str, Any]], gone: set[str]) -> None:
        with self._lock:
            for message in messages:
                self.received[message["id"]] = message["body"]
                if message["id"] in gone:
                    self.returned.append(message["id"])

    def large(self) -> int:
        """How many messages of the largest size were sent."""
        with self._lock:
            return sum(len(body) == LARGE_BYTES for body in self.sent.values())

    def note_deleted(self, ids: list[str]) -> None:
        with self._lock:
            self.deleted.update(ids)


class Load:
    """Threads that call until the stack is gone."""

    def __init__(self, stack: Stack, history: History, seed: int, *, large: bool = False) -> None:
        self._stack = stack
        self._large = large
        self._history = history
        self._killed = False
        self.unexpected: list[str] = []
        """Unexpected outcomes of calls, before the kill or after it."""
        self._calls: list[tuple[Callable[[httpx.Client, random.Random], None], int]] = [
            *((self._send, seed * 100 + number) for number in range(SENDERS)),
            *((self._receive, seed * 100 + 50 + number) for number in range(RECEIVERS)),
        ]
        self._threads = [
            threading.Thread(target=self._repeat, args=call, daemon=True) for call in self._calls
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def kill(self) -> None:
        """kill -9, and wait for the threads to notice; fails where a call failed before."""
        self._killed = True
        self._stack.end(signal.SIGKILL)
        for thread in self._threads:
            thread.join(30)
        assert self.unexpected == []

    def _repeat(self, call: Callable[[httpx.Client, random.Random], None], seed: int) -> None:
        randomness = random.Random(seed)
        with self._stack.client() as client:
            try:
                while True:
                    call(client, randomness)
            except Exception as error:
                if not (self._killed and isinstance(error, httpx.TransportError)):
                    self.unexpected.append(repr(error))

    def _send(self, client: httpx.Client, randomness: random.Random) -> None:
        count = randomness.choice([1, 1, 4, 16])
        size = randomness.choice([10, 10, 2_000, 20_000 // count])
        bodies = [f"{randomness.getrandbits(64):016x}".ljust(size, ".") for _ in range(count)]
        if randomness.random() < 0.2:
            # Nothing packs them into less than an object is made for.
            bodies = [randomness.randbytes(IN_OBJECT_BYTES // count).hex() for _ in range(count)]
        if self._large and randomness.random() < 0.5:
            bodies = [randomness.randbytes(LARGE_BYTES // 2).hex()]
        messages = {"messages": [{"body": body} for body in bodies]}
        answer = client.post(f"{QUEUE}/messages", json=messages)
        assert answer.status_code == 201, answer.text
        self._history.note_sent(answer.json()["messages"], bodies)

    def _receive(self, client: httpx.Client, randomness: random.Random) -> None:
        limit = randomness.choice([1, 4, 16])
        held = receive(client, self._history, limit)
        # A third is left to become visible by itself, after the kill or before.
        done = [message for message in held if randomness.random() < 0.67]
        if randomness.random() < 0.5:
            delete(client, self._history, done)
        else:
            for message in done:
                delete(client, self._history, [message])


def receive(client: httpx.Client, history: History, limit: int = 16) -> list[dict[str, Any]]:
    gone = history.deleted_now()
    answer = client.post(f"{QUEUE}/messages/receive", json={"max": limit, "wait_seconds": 1})
    assert answer.status_code == 200, answer.text
    messages: list[dict[str, Any]] = answer.json()["messages"]
    history.note_received(messages, gone)
    return messages


def delete(client: httpx.Client, history: History, messages: list[dict[str, Any]]) -> None:
    if not messages:
        return
    ids = {message["receipt"]: message["id"] for message in messages}
    answer = client.post(f"{QUEUE}/messages/delete", json={"receipts": list(ids)})
    assert answer.status_code == 200, answer.text
    history.note_deleted([ids[receipt] for receipt in answer.json()["deleted"]])


def drain(stack: Stack, history: History) -> None:
    """Receive and delete until nothing is left, not even what was held at the kill."""
    ends = time.monotonic() + DRAIN_SECONDS
    with stack.client() as client:
        while time.monotonic() < ends:
            delete(client, history, receive(client, history))
            counts = client.get(QUEUE).json()["counts"]
            if counts["active"] == counts["inactive"] == 0:
                return
    pytest.fail(f"not drained after {DRAIN_SECONDS} s: {counts}")


@pytest.mark.parametrize(
    ("seed", "large"),
    [
        (0, False),
        (50, True),
        *[pytest.param(seed, False, marks=pytest.mark.long) for seed in range(100, 120)],
        *[pytest.param(seed, True, marks=pytest.mark.long) for seed in range(200, 210)],
    ],
)
def test_a_kill_loses_nothing_answered_and_no_message_of_1_mb(
    start: Start, seed: int, *, large: bool
) -> None:
    history = History()
    sent, deleted = (LARGE_SENT, LARGE_DELETED) if large else (SENT, DELETED)
    stack = start(*ARGUMENTS)
    with stack.client() as client:
        attributes = {"visibility_timeout_seconds": 20, "max_message_bytes": LARGE_BYTES}
        assert client.put(QUEUE, json=attributes).status_code == 201
    load = Load(stack, history, seed, large=large)
    load.start()
    ends = time.monotonic() + LOAD_SECONDS
    while (
        len(history.sent) < sent
        or len(history.deleted) < deleted
        or (large and not history.large())
    ):
        assert stack.process.poll() is None, f"it ended by itself: {stack.errors()}"
        assert time.monotonic() < ends, (
            "too little was answered to try anything: "
            f"{len(history.sent)} sent, {len(history.deleted)} deleted, {load.unexpected}"
        )
        time.sleep(0.01)
    time.sleep(random.Random(seed).uniform(0, 0.3))
    load.kill()
    assert list((stack.folder / "bodies").glob("d*/*")), "no send was large"
    drain(start(*ARGUMENTS), history)
    lost = history.sent.keys() - history.received.keys()
    assert lost == set()
    assert history.returned == []
    assert {id_: history.received[id_] for id_ in history.sent} == history.sent
    assert bool(history.large()) is large
    print(
        f"seed {seed}: {len(history.sent)} messages sent, {history.large()} of 1 MB; none lost,"
        f" {len(history.deleted)} deleted, none came again"
    )
