"""The sweep's visits to resources with messages: dead letters by age, and the oldest one's age.

A partition that takes long is handed over to `replay`, one invocation for each, so that a queue
with a thousand messages a second above their age limit does not hold up the others:

    sweep   two seconds for a partition, not done ──> replay: holds it, works for minutes
    sweep, a minute later: held ──> skips it
"""

from __future__ import annotations

from typing import Any

import msgspec

from cirrusmq.invoking import slots
from cirrusmq.invoking.waking import wake
from cirrusmq.lifecycle.dead_letters import age_limit
from cirrusmq.lifecycle.dead_letters.policy import age_limit_ms
from cirrusmq.model.source import Source
from cirrusmq.receiving import rounds
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key, number_in
from cirrusmq.storage import lease
from cirrusmq.storage.counters import Counter, CounterPlace, walk
from cirrusmq.storage.rate_history import move_past, remove_empty
from cirrusmq.subscriptions.sources import source_of_resource

SHARE_MS = 2_000
"""The sweep's own time for a partition."""
_ROUND = ("sweep", "visits")


class Visits(msgspec.Struct, frozen=True):
    """The result of a sweep's visits."""

    done: bool
    """True if they finished a round through all resources that keep messages."""
    oldest_ms: int | None
    """The send time of the oldest waiting message, as far as this and the last round know."""
    open_breakers: int = 0
    """Sources whose function's breaker was open, in this round or in all of the last one."""


def visit_all(core: Core, deadline_ms: int) -> Visits:
    """Visits resources with messages, beginning after the last sweep's end, until `deadline_ms`."""
    note = core.store.get(core.tables.usage, *_ROUND) or {}
    place = CounterPlace()
    if "after" in note:
        place = CounterPlace(int(note["shard"]["N"]), note["after"]["S"])
    waiting = [number_in(note, "oldest")] if "oldest" in note else []
    broken = number_in(note, "open")

    def visit(counter: Counter) -> None:
        nonlocal broken
        oldest, is_open = _visit(core, counter, deadline_ms)
        broken += is_open
        if oldest is not None:
            waiting.append(oldest)

    reached = walk(core, place, deadline_ms, visit)
    oldest = min(waiting, default=None)
    item: Item = key(*_ROUND)
    if reached is None:
        known = {"before": oldest, "open_before": broken}
    else:
        item |= {"shard": {"N": str(reached.shard)}, "after": {"S": reached.after}}
        before = {name: number_in(note, name) for name in ("before", "open_before")}
        known = {"oldest": oldest, "open": broken, **before}
        if before["before"]:
            oldest = min([*waiting, before["before"]])
        broken = max(broken, before["open_before"])
    item |= {name: {"N": str(number)} for name, number in known.items() if number}
    core.store.write("PutItem", {"TableName": core.tables.usage, "Item": item})
    return Visits(reached is None, oldest, broken)


def give_up_on(core: Core, resource_id: str, partition: int, max_ms: int) -> None:
    """Dead-letters by age in one partition, unless another worker does.

    To the end of a round, for about `max_ms` and with a bounded number of pages; the next minute
    goes on where this one stops. The lease of a minute is renewed each half of it.
    """
    source = source_of_resource(core, resource_id)
    if source is None or age_limit_ms(source) is None:
        return
    if source.paused and source.subscription is None:
        return  # nothing ages in a pause; but a topic's message lives a day
    held = age_limit.hold(core, source, partition)
    if held is None:
        return
    deadline_ms = core.now_ms() + max_ms
    for _ in range(age_limit.STEPS):
        until_ms = min(deadline_ms, core.now_ms() + age_limit.HOLD_MS // 2)
        state = age_limit.read_state(core, source, partition)
        done = age_limit.give_up_aged(core, source, partition, state, until_ms)
        if done or core.now_ms() >= deadline_ms:
            break
        if not lease.renew(core, held, age_limit.HOLD_MS):
            return
    lease.release(core, held)


def _visit(core: Core, counter: Counter, deadline_ms: int) -> tuple[int | None, bool]:
    """Visits one resource.

    Returns the send time of its oldest waiting message, or None; and True if its function's breaker
    is open.
    """
    if counter.past:
        move_past(core, counter)
    elif counter.empty:
        remove_empty(core, counter)
    source = source_of_resource(core, counter.resource_id) if counter.holds else None
    if source is None:
        return None, False
    waits = source.paused and source.subscription is None
    if age_limit_ms(source) is not None and not waits:
        partitions = list(range(source.partitions))
        core.random.shuffle(partitions)
        for partition in partitions:
            _give_up_aged(core, source, partition, deadline_ms)
    seen = rounds.look(core, [source])
    not_all = isinstance(seen.answer, rounds.NotAllSeen)
    if source.invoke is not None and not waits and (seen.oldest_ms is not None or not_all):
        wake(core, source.id)  # if its worker is lost, or to scan the rest
    if source.invoke is None or source.invoke.breaker is None or source.paused:
        return seen.oldest_ms, False
    return seen.oldest_ms, slots.read_circuit(core, source.owner_id).is_open


def _give_up_aged(core: Core, source: Source, partition: int, deadline_ms: int) -> None:
    """Dead-letters by age in a partition, or leaves it to `replay` if it takes long."""
    now_ms = core.now_ms()
    if now_ms < deadline_ms:
        state = age_limit.read_state(core, source, partition)
        if now_ms < state.held_until_ms:
            return
        until_ms = min(now_ms + SHARE_MS, deadline_ms)
        if age_limit.give_up_aged(core, source, partition, state, until_ms):
            return
    event: dict[str, Any] = {"resource": source.id, "partition": partition}
    core.invoke("replay", {"aged": event})
