"""Waking the receivers that wait, after messages were put into partitions they poll rarely.

    a send    put ──> does a receiver wait? (asked once a second) ──> wake-up ──> answer

A send is answered the same whether this works or not, and an environment writes at most a few
wake-ups a second for a queue: a receiver that is awake polls every partition anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.queue import Queue
from cirrusmq.queues.wake_ups.items import put_wake_up, read_waiting
from cirrusmq.queues.wake_ups.memory import WakeUpMemory
from cirrusmq.queues.wake_ups.rules import LATE_MS, in_use, wake_up_key
from cirrusmq.runtime.core import Core

_logger = logging.getLogger(__name__)


def wake_receivers(core: Core, queue: Queue, parcels: Iterable[Parcel], put_ms: int) -> None:
    """Writes a wake-up for each partition and time of these parcels, put since `put_ms`.

    One write unit for each while a receiver waits, and half a read unit a second.
    """
    if not in_use(queue.attributes.partitions):
        return
    now_ms = core.now_ms()
    if now_ms - put_ms > LATE_MS:
        return  # the store is slow: the answer is more urgent
    try:
        if _waits(core, queue.id, now_ms):
            _wake(core, queue.id, parcels, now_ms)
    except Unavailable as error:
        core.memory(WakeUpMemory).halve(queue.id, now_ms)
        _logger.warning("receivers of %s are not woken: %r", queue.id, error.__cause__)


def _waits(core: Core, source_id: str, now_ms: int) -> bool:
    known = core.memory(WakeUpMemory).waits(source_id, now_ms)
    if known is None:
        until_ms = read_waiting(core, source_id)
        core.memory(WakeUpMemory).know(source_id, until_ms, now_ms)
        known = now_ms < until_ms
    return known


def _wake(core: Core, source_id: str, parcels: Iterable[Parcel], now_ms: int) -> None:
    due = {
        (max(now_ms, parcel.ready_ms(index)), parcel.partition)
        for parcel in parcels
        for index in range(parcel.count)
        if parcel.live(index)
    }
    for moment_ms, partition in sorted(due):
        if not core.memory(WakeUpMemory).may_wake(source_id, now_ms):
            return
        chance = core.random_bytes(2).hex()
        key = wake_up_key(moment_ms, partition, chance)
        put_wake_up(core, source_id, key, moment_ms)
