"""The processes of a cell. Each runs in a fork, and may be killed at any time."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cirrusmq_local.verifying.proxy import Proxy

from . import Client, Peer, Place, Terms
from .history import ASKED, DONE, FAILED, REFUSED, SENT, STARTED, Notes

PAUSE_SECONDS = 0.2
"""Before a refused call is made again, and a new client."""


def key_of(body: str) -> str:
    """Returns the key of a message."""
    return body.partition(" ")[0]


def produce(
    make: Callable[[], Client],
    notes: Notes,
    keys: Sequence[str],
    *,
    body_bytes: int,
    pace_seconds: float = 0.0,
) -> None:
    """Sends each message until it is answered. `pace_seconds`: between the begins of two sends."""
    client: Client | None = None
    filler = os.urandom(body_bytes // 2).hex()  # a server cannot make it smaller
    began = time.monotonic()
    for number, key in enumerate(keys):
        time.sleep(max(0.0, began + number * pace_seconds - time.monotonic()))
        body = f"{key} {filler}"
        while True:
            notes.note(ASKED, key)
            try:
                client = client or make()
                client.send(body)
            except Exception:
                notes.note(REFUSED, key)
                _close(client)
                client = None
                time.sleep(PAUSE_SECONDS)
            else:
                notes.note(SENT, key)
                break


@dataclass(frozen=True)
class Handler:
    """A handler of messages: some seconds of work, after failures of some of them."""

    notes: Notes
    seconds: float
    failing: frozenset[str]
    """Messages that fail at their first attempts."""
    fails: int
    """Number of their attempts that fail."""
    attempts: Path
    """Folder that counts the attempts of all workers."""

    def __call__(self, body: str) -> bool:
        """Returns False if the attempt failed."""
        key = key_of(body)
        self.notes.note(STARTED, key)
        time.sleep(self.seconds)
        if key in self.failing and self._attempt(key) <= self.fails:
            self.notes.note(FAILED, key)
            return False
        self.notes.note(DONE, key)
        return True

    def _attempt(self, key: str) -> int:
        with (self.attempts / key).open("ab") as counted:
            counted.write(b".")
        return (self.attempts / key).stat().st_size


def work(make: Callable[[], Client], handle: Callable[[str], bool]) -> None:
    """Works forever: if its library gives up, with a new client."""
    client: Client | None = None
    while True:
        with contextlib.suppress(Exception):
            client = make()
            client.work(handle)
        _close(client)
        client = None
        time.sleep(PAUSE_SECONDS)


def hold(client: Client, notes: Notes, count: int, held: Path, let_go: Path) -> None:
    """Holds messages from when `held` is made until `let_go` is there, then completes them."""

    def wait() -> None:
        held.touch()
        while not let_go.exists():
            time.sleep(0.05)

    for body in client.hold(count, wait):
        notes.note(STARTED, key_of(body))
        notes.note(DONE, key_of(body))


def cut(port: int, own_port: Path, every_seconds: float, until: Path) -> None:
    """Runs a proxy that closes all connections again and again, while `until` is not there."""
    with Proxy("127.0.0.1", port, seed=0, lost=0.0, cut=0.0, http=False) as proxy:
        own_port.with_suffix(".new").write_text(str(proxy.port))
        own_port.with_suffix(".new").rename(own_port)
        while True:
            time.sleep(every_seconds)
            if not until.exists():
                proxy.close_all()


def quiet(log: Path) -> None:
    """Sends what a library prints to a file, and restores what a fork has taken over."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    target = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(target, 1)
    os.dup2(target, 2)


def maker(peer: Peer, place: Place, terms: Terms) -> Callable[[], Client]:
    """Returns a function that makes a client."""
    return lambda: peer.client(place, terms)


def _close(client: Client | None) -> None:
    if client is not None:
        with contextlib.suppress(Exception):
            client.close()
