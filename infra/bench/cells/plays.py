"""The eight cells. Each gets a field, and returns what became of its messages.

1 worker killed       one of two workers, with a message in hand; another one starts
2 killed repeatedly   the same, again and again
3 store killed        twice, while producers send and workers work; each time started again
4 connections cut     all of them, each second, by a proxy
5 retry storm         half of the messages fail three times
6 held reader         a reader takes 500 messages and keeps them; the rate of others beside it
7 burst               1.5 times what the workers complete, for seconds; then they empty it
8 disk full           for seconds; then there is room again
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import Peer, Terms
from .field import Field
from .field import field as playing
from .history import DONE, SENT, STARTED, Event, Verdict, delays, judge, rate, retry_wait

WORKERS, PRODUCERS = 2, 4
"""Producers in a burst; in the other cells one sends."""
KILLS, KILL_EVERY_SECONDS = 6, 1.5
DOWN_SECONDS = 0.5
CUTS, CUT_EVERY_SECONDS = 8, 1.0
FAILS = 3
HELD = 500
BURST_SECONDS, BURST_FACTOR = 6.0, 1.5
DISK_MB, FULL_SECONDS, FULL_BODY_BYTES = 192, 5.0, 60_000


class NotPlayed(Exception):
    """A queue or this machine cannot play a cell."""


@dataclass(frozen=True)
class Result:
    """The outcome of one cell."""

    verdict: Verdict
    hung: int
    """Clients that did not go on, though messages were there for them."""
    seconds: float
    """From the (last) fault, or its end, to the last completion."""
    more: dict[str, str] = field(default_factory=dict)
    """Figures of this cell alone, by their names."""


Play = Callable[[Peer, int, random.Random], Result]


def worker_killed(peer: Peer, messages: int, chance: random.Random) -> Result:
    """Kills one of two workers after a third of the messages."""
    with playing(peer, Terms()) as field:
        keys = _keys(messages)
        field.handling["seconds"] = 0.02
        field.send_all(keys)
        field.work(WORKERS)
        field.wait(lambda events: _count(DONE, events) >= messages // 3)
        field.kill_worker(chance.randrange(WORKERS))
        fault = time.time()
        field.work()
        return _result(field, keys, fault)


def killed_repeatedly(peer: Peer, messages: int, chance: random.Random) -> Result:
    """Kills a worker, and starts another, each second and a half."""
    with playing(peer, Terms()) as field:
        keys = _keys(messages)
        field.handling["seconds"] = 0.04
        field.send_all(keys)
        field.work(WORKERS)
        for _ in range(KILLS):
            time.sleep(KILL_EVERY_SECONDS)
            field.kill_worker(chance.randrange(WORKERS))
            fault = time.time()
            field.work()
        return _result(field, keys, fault)


def store_killed(peer: Peer, messages: int, chance: random.Random) -> Result:
    """Kills the server after a third and after two thirds of the sends."""
    with playing(peer, Terms()) as field:
        keys = _keys(messages)
        field.work(WORKERS)
        field.send(keys, pace_seconds=0.01)
        for share in (1, 2):
            at = messages * share // 3 + chance.randrange(max(messages // 10, 1))
            field.wait(lambda events, at=at: _count(SENT, events) >= at)  # type: ignore[misc]
            fault = time.time()
            field.kill_server(DOWN_SECONDS)
            down = time.time() - fault
        result = _result(field, keys, fault)
        result.more["of which down, s"] = f"{down:.1f}"
        return result


def connections_cut(peer: Peer, messages: int, chance: random.Random) -> Result:
    """Closes all connections each second, while producers send and workers work."""
    with playing(peer, Terms()) as field:
        keys = _keys(messages)
        end_cuts = field.through_proxy(CUT_EVERY_SECONDS)
        field.work(WORKERS)
        field.send(keys, pace_seconds=CUTS * CUT_EVERY_SECONDS / messages)
        time.sleep(CUTS * CUT_EVERY_SECONDS)
        end_cuts()
        return _result(field, keys, time.time())


def retry_storm(peer: Peer, messages: int, chance: random.Random) -> Result:
    """Half of the messages fail three times."""
    with playing(peer, Terms()) as field:
        keys = _keys(messages)
        failing = frozenset(chance.sample(keys, messages // 2))
        field.handling |= {"failing": failing, "fails": FAILS}
        field.send_all(keys)
        began = time.time()
        field.work(WORKERS)
        result = _result(field, keys, began)
        wait = retry_wait(field.events())
        result.more["median wait of a retry, s"] = "none" if wait is None else f"{wait:.2f}"
        return result


def held_reader(peer: Peer, messages: int, chance: random.Random) -> Result:
    """Measures the workers' rate alone, and beside a reader that holds many messages."""
    with playing(peer, Terms(lease_seconds=60)) as field:
        field.handling["seconds"] = 0.0
        before, held, beside = _keys(messages, "a"), _keys(HELD, "h"), _keys(messages, "b")
        field.send_all(before)
        field.work(WORKERS)
        hung = field.finish(before)
        field.stop_workers()
        field.send_all(held)
        let_go = field.hold(HELD)
        field.send_all(beside)
        began = time.time()
        field.work(WORKERS)
        hung += field.finish(beside)
        events = field.events()
        let_go()
        result = _result(field, [*before, *held, *beside], began)
        alone, with_it = _rate(events, before), _rate(events, beside)
        result.more["rate before, a second"] = f"{alone:.0f}"
        result.more["rate beside it"] = f"{with_it:.0f} ({100 * with_it / alone:.0f} %)"
        return result


def burst(peer: Peer, messages: int, chance: random.Random) -> Result:
    """Offers more than the workers complete, then waits until it is empty."""
    with playing(peer, Terms()) as field:
        field.handling["seconds"] = 0.01
        before = _keys(messages, "a")
        field.send_all(before)
        field.work(WORKERS)
        hung = field.finish(before)
        capacity = _rate(field.events(), before)
        later = _keys(round(capacity * BURST_FACTOR * BURST_SECONDS), "b")
        began = time.time()
        for part in (later[first::PRODUCERS] for first in range(PRODUCERS)):
            field.send(part, pace_seconds=BURST_SECONDS / len(part))
        field.wait(lambda events: _count(SENT, events) >= len(before) + len(later))
        sent = time.time()
        result = _result(field, [*before, *later], sent)
        waits = delays(field.events(), later)
        result.more["completed alone, a second"] = f"{capacity:.0f}"
        result.more["offered, a second"] = f"{len(later) / (sent - began):.0f}"
        result.more["p99 until started, s"] = f"{waits[int(0.99 * (len(waits) - 1))]:.2f}"
        return Result(result.verdict, hung + result.hung, result.seconds, result.more)


def disk_full(peer: Peer, messages: int, chance: random.Random) -> Result:
    """Fills the server's file system for some seconds."""
    with playing(peer, Terms(), body_bytes=FULL_BODY_BYTES, mount=_mount) as field:
        keys = _keys(messages)
        field.work(WORKERS)
        field.send(keys, pace_seconds=(FULL_SECONDS + 4.0) / messages)
        time.sleep(2.0)
        begun = time.time()
        with _filled(field.data):
            time.sleep(FULL_SECONDS)
        fault = time.time()
        result = _result(field, keys, fault)
        sent = [event.at for event in field.events() if event.kind == SENT]
        result.more["sends answered while full"] = str(sum(begun + 1 < at < fault for at in sent))
        result.more["goes on without a restart"] = "no: it ended" if field.restarts else "yes"
        return result


PLAYS: dict[str, Play] = {
    "worker killed": worker_killed,
    "killed repeatedly": killed_repeatedly,
    "store killed": store_killed,
    "connections cut": connections_cut,
    "retry storm": retry_storm,
    "held reader": held_reader,
    "burst": burst,
    "disk full": disk_full,
}


def _result(field: Field, keys: Sequence[str], fault: float) -> Result:
    hung = field.finish(keys)
    verdict = judge(field.events())
    last = verdict.last_done
    return Result(verdict, hung, max(0.0, last - fault) if last else 0.0)


def _keys(count: int, prefix: str = "m") -> list[str]:
    return [f"{prefix}{number:06}" for number in range(count)]


def _count(kind: str, events: list[Event]) -> int:
    return len({event.key for event in events if event.kind == kind})


def _rate(events: list[Event], keys: Sequence[str]) -> float:
    return rate([event for event in events if event.kind in (STARTED, DONE)], set(keys))


def _mount(folder: Path) -> None:
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        raise NotPlayed("mounting a file system needs root")


@contextlib.contextmanager
def _filled(folder: Path) -> Iterator[None]:
    """Leaves no room on a file system within the block, as far as nobody frees any."""
    filler = folder / "filler"
    file = os.open(filler, os.O_CREAT | os.O_WRONLY)
    try:
        for size in (1_048_576, 4_096, 1):
            with contextlib.suppress(OSError):
                while True:
                    os.write(file, b"\0" * size)
        yield
    finally:
        os.close(file)
        filler.unlink()
