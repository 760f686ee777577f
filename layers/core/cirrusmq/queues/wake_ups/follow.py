"""The wake-ups that a waiting receive follows."""

from __future__ import annotations

import logging

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.source import Source
from cirrusmq.queues.wake_ups.items import put_waiting, read_wake_ups
from cirrusmq.queues.wake_ups.memory import WakeUpMemory
from cirrusmq.queues.wake_ups.rules import WAITS_MS, partition_in, wakes
from cirrusmq.runtime.core import Core

_logger = logging.getLogger(__name__)


def register_waiter(core: Core, source: Source) -> None:
    """Makes senders write wake-ups for half a minute; at most one write unit each quarter."""
    now_ms = core.now_ms()
    until_ms = now_ms + WAITS_MS
    if not core.memory(WakeUpMemory).says(source.id, until_ms, now_ms):
        return
    try:
        put_waiting(core, source.id, until_ms)
    except Unavailable as error:
        core.memory(WakeUpMemory).forget_registration(source.id)
        _logger.warning("senders to %s do not know of a wait: %r", source.id, error.__cause__)


def woken_partitions(core: Core, source: Source) -> list[int]:
    """Returns the partitions to poll now, by the newest wake-ups first. Half a read unit."""
    now_ms = core.now_ms()
    keys = core.memory(WakeUpMemory).follow(source.id, _read(core, source, now_ms, now_ms), now_ms)
    return _partitions(source, keys)


def partitions_woken_since(core: Core, source: Source, since_ms: int) -> list[int]:
    """Returns partitions that may have woken a receive begun at that time. Half a read unit."""
    if not wakes(source):
        return []
    return _partitions(source, _read(core, source, since_ms, core.now_ms()))


def _read(core: Core, source: Source, since_ms: int, now_ms: int) -> list[str]:
    try:
        return read_wake_ups(core, source.id, since_ms, now_ms)
    except Unavailable as error:
        _logger.warning("wake-ups of %s cannot be read: %r", source.id, error.__cause__)
        return []


def _partitions(source: Source, keys: list[str]) -> list[int]:
    """Returns the partitions of wake-ups; a source may be read with fewer than its sender knows."""
    named = dict.fromkeys(map(partition_in, keys))
    return [partition for partition in named if partition < source.partitions]
