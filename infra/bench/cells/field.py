"""One running server with its producers and workers, each a process that may be killed."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

from . import Peer, Place, Terms, actors
from .history import DONE, SENT, STARTED, Event, Notes, open_calls, read

LOOK_SECONDS = 0.1
QUIET_SECONDS = 15.0
"""Without a send or a completion for this time clients count as hung, or messages as lost."""
LONGEST_SECONDS = 120.0
_FORK = multiprocessing.get_context("fork")


class Field:
    """A server, and the processes of one cell."""

    def __init__(self, peer: Peer, terms: Terms, base: Path, *, body_bytes: int = 1_024) -> None:
        self._peer, self._terms, self._base, self._body_bytes = peer, terms, base, body_bytes
        self.data = base / "data"
        self.server = peer.server(self.data)
        self._port = self.server.port
        self._notes = base / "notes"
        self._attempts = base / "attempts"
        self._processes: list[ForkProcess] = []
        self.producers: dict[str, ForkProcess] = {}
        self.workers: list[ForkProcess] = []
        self.handling: dict[str, Any] = {"seconds": 0.005, "failing": frozenset(), "fails": 0}
        self.restarts = 0
        """Starts of a server that had ended without a kill."""

    def begin(self) -> None:
        """Starts the server and makes the queue."""
        self._notes.mkdir()
        self._attempts.mkdir()
        self.server.start()
        made = self._spawn("create", self._peer.create, self._place, self._terms)
        made.join()
        if made.exitcode:
            raise RuntimeError(f"{self._peer.name}: no queue; {self._log_end()}")

    def end(self) -> None:
        """Kills all of it."""
        for process in self._processes:
            if process.is_alive():
                process.kill()
            process.join()
        self.server.kill()

    def send(self, keys: Sequence[str], *, pace_seconds: float = 0.0) -> None:
        """Starts a producer of these messages."""
        name, notes = self._named("producer")
        how = {"body_bytes": self._body_bytes, "pace_seconds": pace_seconds}
        self.producers[name] = self._spawn(name, actors.produce, self._maker, notes, keys, **how)

    def send_all(self, keys: Sequence[str]) -> None:
        """Sends messages, and returns when all were answered."""
        self.send(keys)
        if not self.wait(lambda events: _all_have(SENT, keys, events)):
            raise RuntimeError(f"{self._peer.name}: its sends do not end; {self._log_end()}")

    def work(self, count: int = 1) -> None:
        """Starts workers."""
        for _ in range(count):
            name, notes = self._named("worker")
            handler = actors.Handler(notes=notes, attempts=self._attempts, **self.handling)
            self.workers.append(self._spawn(name, actors.work, self._maker, handler))

    def kill_worker(self, index: int = 0) -> None:
        """Kills a worker by SIGKILL while its handler runs, if it gets a message within 2 s."""
        worker = self.workers.pop(index)
        path = self._notes / f"{worker.name}.notes"
        until = time.monotonic() + 2
        while time.monotonic() < until:
            lines = path.read_text().splitlines()
            if lines and f" {STARTED} " in lines[-1]:
                break
            time.sleep(0.001)
        worker.kill()
        worker.join()

    def stop_workers(self) -> None:
        """Kills the workers, which have nothing in hand."""
        while self.workers:
            worker = self.workers.pop()
            worker.kill()
            worker.join()

    def hold(self, count: int) -> Callable[[], None]:
        """Lets a process take messages and keep them. Returns what lets it complete them."""
        name, notes = self._named("holder")
        held, let_go = self._base / "held", self._base / "let-go"
        client = self._maker

        def run() -> None:
            actors.hold(client(), notes, count, held, let_go)

        holder = self._spawn(name, run)
        until = time.monotonic() + LONGEST_SECONDS / 2
        while not held.exists():
            if not holder.is_alive() or time.monotonic() > until:
                raise RuntimeError(f"{self._peer.name}: cannot hold {count}; {self._log_end()}")
            time.sleep(LOOK_SECONDS)
        return let_go.touch

    def through_proxy(self, every_seconds: float) -> Callable[[], None]:
        """Puts a proxy before the server, for later clients. Returns what ends its cuts."""
        port, until = self._base / "proxy-port", self._base / "proxy-until"
        self._spawn("proxy", actors.cut, self.server.port, port, every_seconds, until)
        while not port.exists():
            time.sleep(0.05)
        self._port = int(port.read_text())
        return until.touch

    def kill_server(self, down_seconds: float) -> None:
        """Kills the server, and starts it again after some seconds."""
        self.server.kill()
        time.sleep(down_seconds)
        self.server.start()

    def events(self) -> list[Event]:
        """Returns all that happened."""
        return read(self._notes)

    def wait(
        self, enough: Callable[[list[Event]], bool], seconds: float = LONGEST_SECONDS / 2
    ) -> bool:
        """Waits until the history has enough. Returns False if it has not in time."""
        until = time.monotonic() + seconds
        while not enough(self.events()):
            if time.monotonic() > until:
                return False
            time.sleep(LOOK_SECONDS)
        return True

    def finish(self, keys: Sequence[str]) -> int:
        """Waits until all messages are sent and completed, or nothing moves. Returns hung clients.

        If nothing moves, all clients are replaced once: if messages come to the new ones, the old
        ones hung.
        """
        if self._all_through(keys):
            return 0
        events = self.events()
        asking = {*open_calls(events)} & self.producers.keys()
        suspects = len(asking) + len(self.workers)
        before = sum(event.kind in (SENT, DONE) for event in events)
        self._replace_clients(keys, events)
        self._all_through(keys)
        moved = sum(event.kind in (SENT, DONE) for event in self.events()) > before
        return suspects if moved else 0

    def _all_through(self, keys: Sequence[str]) -> bool:
        """Returns False if nothing moved for a while."""
        until = time.monotonic() + LONGEST_SECONDS
        moved, count = time.monotonic(), -1
        while time.monotonic() < min(until, moved + QUIET_SECONDS):
            events = self.events()
            if _all_have(SENT, keys, events) and _all_have(DONE, keys, events):
                return True
            now = sum(event.kind in (SENT, DONE) for event in events)
            if now != count:
                moved, count = time.monotonic(), now
            if not self.server.alive():
                self.restarts += 1
                self.server.start()
            time.sleep(LOOK_SECONDS)
        return False

    def _replace_clients(self, keys: Sequence[str], events: list[Event]) -> None:
        for producer in self.producers.values():
            if producer.is_alive():
                producer.kill()
        self.producers.clear()
        count = len(self.workers)
        self.stop_workers()
        sent = {event.key for event in events if event.kind == SENT}
        self.send([key for key in keys if key not in sent])
        self.work(count)

    @property
    def _place(self) -> Place:
        return Place(self.data, self._port)

    @property
    def _maker(self) -> Callable[[], Any]:
        return actors.maker(self._peer, self._place, self._terms)

    def _named(self, role: str) -> tuple[str, Notes]:
        name = f"{role}{len(self._processes)}"
        return name, Notes(self._notes / f"{name}.notes")

    def _spawn(self, name: str, run: Callable[..., None], *given: Any, **named: Any) -> ForkProcess:
        log = self._base / "clients.log"

        def begin() -> None:
            actors.quiet(log)
            run(*given, **named)

        process = _FORK.Process(target=begin, name=name)
        process.start()
        self._processes.append(process)
        return process

    def _log_end(self) -> str:
        log = self._base / "clients.log"
        return log.read_text()[-500:] if log.exists() else "no log"


def _all_have(kind: str, keys: Sequence[str], events: list[Event]) -> bool:
    return {event.key for event in events if event.kind == kind} >= set(keys)


@contextlib.contextmanager
def field(
    peer: Peer,
    terms: Terms,
    *,
    body_bytes: int = 1_024,
    mount: Callable[[Path], None] | None = None,
) -> Iterator[Field]:
    """Yields a field in a new folder, which is removed. `mount`: of its data's file system."""
    base = Path(tempfile.mkdtemp(prefix="cirrusmq-cells-"))
    base.chmod(0o711)  # PostgreSQL's user passes through
    data = base / "data"
    data.mkdir()
    try:
        if mount is not None:
            mount(data)
        playing = Field(peer, terms, base, body_bytes=body_bytes)
        try:
            playing.begin()
            yield playing
        finally:
            playing.end()
    finally:
        if os.path.ismount(data):
            _unmount(data)
        shutil.rmtree(base, ignore_errors=True)


def _unmount(folder: Path) -> None:
    import subprocess

    for _ in range(20):  # until its killed processes are gone
        if not subprocess.run(["umount", folder], capture_output=True).returncode:
            return
        time.sleep(0.2)
    raise RuntimeError(f"cannot unmount {folder}")
