"""The bucket of a run: every call of it may be lost, delayed, made twice or refused.

An object ends when its class of life allows it, to the millisecond. In some runs a day of the
bucket is a minute, so that classes end while messages that outlived them are still to be read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from tests.simulation.chaos import COPY, GET, PUT, Chaos, Fate
from tests.simulation.stage import Stage
from tests.simulation.wire import Faulty

from cirrusmq.base.errors import Unavailable
from cirrusmq.storage.bodies import object as objects

A = TypeVar("A")


class Bucket:
    """The objects of a run, with the times of their writing."""

    def __init__(self, stage: Stage, chaos: Chaos, fault_percent: int) -> None:
        self.stage = stage
        self.chaos = chaos
        self.fault_percent = fault_percent
        self._held: dict[str, tuple[int, bytes]] = {}

    def used_by(self, caller: Faulty) -> BucketCalls:
        """The bucket as an environment calls it."""
        return BucketCalls(self, caller)

    def put(self, key: str, data: bytes) -> None:
        """Write it, or write it over."""
        self._held[key] = self.stage.now_ms(), data

    def get(self, key: str, start: int, end: int | None) -> bytes | None:
        """A part of it; None where it is not there, or not any more."""
        written_ms, data = self._held.get(key, (0, b""))
        days = int(key[1:].partition("/")[0])
        if self.stage.now_ms() >= written_ms + days * objects.DAY_MS:
            return None
        return data[start:end]

    def copy(self, source: str, key: str) -> bool:
        """Copy it; whether it is there."""
        data = self.get(source, 0, None)
        if data is not None:
            self.put(key, data)
        return data is not None


class BucketCalls:
    """The calls of one environment, as the adapter makes them: with their faults."""

    def __init__(self, bucket: Bucket, caller: Faulty) -> None:
        self._bucket = bucket
        self._caller = caller

    def put(self, key: str, data: bytes) -> None:
        """As `Bodies`."""
        self._call(PUT, lambda: self._bucket.put(key, data))

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        """As `Bodies`."""
        return self._call(GET, lambda: self._bucket.get(key, start, end))

    def copy(self, source: str, key: str) -> bool:
        """As `Bodies`."""
        return self._call(COPY, lambda: self._bucket.copy(source, key))

    def _call(self, operation: str, effect: Callable[[], A]) -> A:
        bucket, name = self._bucket, self._caller.name_call()
        fate = bucket.chaos.rough_fate(name, operation, bucket.fault_percent)
        self._caller.check_alive()
        if fate.fault is not None:
            self._caller.note(fate.fault, operation)
        self._wait(fate.before_ms, fate.draw)
        answer = self._with_fault(effect, fate)
        self._wait(fate.after_ms, fate.draw)
        return answer

    def _with_fault(self, effect: Callable[[], A], fate: Fate) -> A:
        match fate.fault:
            case "throttled" | "unsent":
                self._wait(2_000, fate.draw)
                raise Unavailable
            case "lost":
                effect()
                self._wait(fate.draw % 5_000, fate.draw)
                raise Unavailable
            case "ghost":
                after_ms = 1 + (fate.draw >> 3) % 8_000
                self._bucket.stage.spawn("ghost", lambda: _appear(effect), after_ms, fate.draw)
                self._wait(fate.draw % 5_000, fate.draw)
                raise Unavailable
            case "crash before":
                raise self._caller.crash()
            case "crash after":
                effect()
                raise self._caller.crash()
            case "twice":
                effect()
                self._wait(fate.draw % 3_000, fate.draw)
            case "jump":
                self._bucket.stage.jump(1_000 + fate.draw % 90_000)
        return effect()

    def _wait(self, ms: int, tie: int) -> None:
        if ms:
            self._bucket.stage.pause(ms, tie)
            self._caller.check_alive()


def _appear(effect: Callable[[], object]) -> None:
    effect()


@contextlib.contextmanager
def days_of(day_ms: int) -> Iterator[None]:
    """Have the days of the bucket, and of the classes of life, be so long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "DAY_MS", day_ms)
        yield
