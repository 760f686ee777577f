"""Dead-lettering by age, without a receive: a partition's messages that have reached their limit.

A parcel's key has the time since when it can be received, so all before `now - limit` are old
enough, and no others are read. Two kinds of parcels have a later key than their age: those that
were re-keyed to a retry's due time, and those that were sent with a delay. A note (see `age_note`)
has the time when they reach the limit:

    re-keyed     the note is written with the move
    delayed      noted when `seen`, which follows a minute behind the clock, passes its key
    the limit was changed, or is new: `seen` begins anew, and passes everything once

A message of a group with a dead-letter queue may be held to the end of its life. It is given up
behind that, for an hour, and `ended` says which parcels need not be looked at any more:

    sweep 1   reads up to 23:58 of the day before ── held: stays
    sweep 2, late                                    expired: moves; `ended` is behind it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from cirrusmq.base.limits import EXPIRED_KEPT_MS, LONGEST_WAIT_MS
from cirrusmq.lifecycle.dead_letter_policy import age_limit_ms, dead_letter_reason, too_old
from cirrusmq.lifecycle.dead_letters import give_up, has_place
from cirrusmq.lifecycle.ordered_age_limit import give_up_in_groups
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import apart_from_others
from cirrusmq.runtime.store import ConditionFailed, Item, key
from cirrusmq.storage.parcels import (
    AGE_NOTES,
    PARCELS,
    age_note,
    page_request,
    partition_key,
    read_parcel,
    ttl_seconds,
)
from cirrusmq.storage.scan import LAST_KEY, pages_by_group, scan_pages

A = TypeVar("A")
B = TypeVar("B")
HOLD_MS = 60_000
_TOGETHER = 64
_FEW = 4
_GROUPS_PARCELS = 20
_LAG_MS = 60_000
"""A parcel whose key is no more than that behind its sending is found late by no more."""
_STATE = "~"
"""Sort key, behind all notes, of a partition's progress and the worker's lease."""
_STATE_LIFE_MS = 20 * 86_400_000


class State(NamedTuple):
    """The state of a partition. Times are in milliseconds since the epoch."""

    seen_ms: int = 0
    """Before this time every delayed parcel has its note."""
    limit_ms: int = 0
    """The limit of age that the notes were written for."""
    held_until_ms: int = 0
    """The end of the worker's lease."""
    ended_ms: int = 0
    """Of the parcels with keys before this time all that was received was given up."""


def give_up_aged(
    core: Core, source: Source, partition: int, state: State, deadline_ms: int
) -> bool:
    """Move what is too old to the dead-letter queue; whether all was dealt with in time."""
    if source.ordered:
        return give_up_in_groups(core, source, partition, deadline_ms)
    now_ms = core.now_ms()
    limit_ms = age_limit_ms(source)
    assert limit_ms is not None
    for notes in _due_notes(core, source, partition, now_ms):
        _each(core, lambda note: _settle_note(core, source, note, limit_ms), notes)
        if core.now_ms() >= deadline_ms:
            return False
    oldest_ms = source.query_from_ms(now_ms, core.clock.scale)
    start_ms = oldest_ms
    if source.rescues:
        start_ms = max(min(oldest_ms, state.ended_ms), oldest_ms - EXPIRED_KEPT_MS)
    done, ended = True, False
    for parcels in _between(core, source, partition, start_ms, now_ms - limit_ms):
        done = _give_up_all(core, source, parcels) and done
        ended = ended or any(parcel.key_ms < oldest_ms for parcel in parcels)
        if core.now_ms() >= deadline_ms:
            return False
    if done and ended:
        _write_state(core, source, partition, {"ended_ms": oldest_ms})
    return _pass(core, source, partition, state, limit_ms, deadline_ms)


def give_up_noted(core: Core, source: Source, partition: int, may: Callable[[], bool]) -> None:
    """Deal with some of the notes that are due, for a receiver who does not wait for the sweep.

    `may` is asked before each.
    """
    limit_ms = age_limit_ms(source)
    assert limit_ms is not None
    for note in next(_due_notes(core, source, partition, core.now_ms(), _FEW)):
        if not may():
            return
        _settle_note(core, source, note, limit_ms)


def read_state(core: Core, source: Source, partition: int) -> State:
    """The state of a partition."""
    item = core.store.get(core.tables.messages, *_state_place(source, partition)) or {}
    return State(*(int(item.get(name, {"N": "0"})["N"]) for name in State._fields))


def hold(core: Core, source: Source, partition: int) -> State | None:
    """Take the lease of a partition for a minute; None where another worker has it."""
    now_ms = core.now_ms()
    free = "(attribute_not_exists(held_until_ms) OR held_until_ms <= :now)"
    values = {":now": {"N": str(now_ms)}}
    try:
        _write_state(core, source, partition, {"held_until_ms": now_ms + HOLD_MS}, free, values)
    except ConditionFailed:
        return None
    return read_state(core, source, partition)


def extend(core: Core, source: Source, partition: int) -> None:
    """Be the only one for another minute."""
    _write_state(core, source, partition, {"held_until_ms": core.now_ms() + HOLD_MS})


def release(core: Core, source: Source, partition: int) -> None:
    """Leave a partition to others."""
    _write_state(core, source, partition, {"held_until_ms": 0})


def _pass(
    core: Core, source: Source, partition: int, state: State, limit_ms: int, deadline_ms: int
) -> bool:
    """Note parcels with a later key than their age, up to a minute ago; whether all were read."""
    now_ms = core.now_ms()
    seen_ms, until_ms = state.seen_ms, now_ms - _LAG_MS
    if state.limit_ms != limit_ms:
        # A parcel that was re-keyed before has no note, and a key that is ahead by its wait.
        seen_ms, until_ms = now_ms - limit_ms, now_ms + LONGEST_WAIT_MS
    passed = state.limit_ms != limit_ms
    for parcels in _between(core, source, partition, seen_ms, until_ms):
        late = [each for each in parcels if each.key_ms - each.sent_ms > _LAG_MS]
        _give_up_all(core, source, late)
        _each(core, lambda each: _note(core, source, each, limit_ms), late)
        passed = passed or bool(parcels)
        if core.now_ms() >= deadline_ms:
            # A change of the limit is passed from its beginning until it was passed whole.
            # In a fair source each group has keys of all times, and is passed whole, too.
            if parcels and state.limit_ms == limit_ms and not source.fair:
                _write_state(core, source, partition, {"seen_ms": parcels[-1].key_ms})
            return False
    if passed:
        seen = {"seen_ms": now_ms - _LAG_MS, "limit_ms": limit_ms}
        _write_state(core, source, partition, seen)
    return True


def _between(
    core: Core, source: Source, partition: int, start_ms: int, until_ms: int
) -> Iterator[Sequence[Parcel]]:
    """The parcels with keys from `start_ms` to `until_ms`, some at a time; group by group."""
    pk = partition_key(PARCELS, source.id, partition)
    if until_ms < start_ms:
        return
    for prefix in _prefixes(core, pk) if source.fair else ("",):
        until = f"{prefix}{until_ms:013d}{LAST_KEY}"
        for page in scan_pages(core, pk, f"{prefix}{start_ms:013d}", until):
            for first in range(0, len(page.parcels), _TOGETHER):
                yield page.parcels[first : first + _TOGETHER]


def _prefixes(core: Core, pk: str) -> Iterator[str]:
    """What the keys of each group of a fair partition begin with."""
    for page in pages_by_group(core, pk, _GROUPS_PARCELS):
        yield from dict.fromkeys(parcel.key_prefix for parcel in page.parcels)


def _note(core: Core, source: Source, parcel: Parcel, limit_ms: int) -> None:
    """Note when a parcel reaches the limit, if it has not."""
    if not parcel.spent() and not too_old(source, parcel, core.now_ms()):
        note = age_note(parcel, limit_ms, source.removable_ms(parcel))
        core.store.write("PutItem", {"TableName": core.tables.messages, "Item": note})


def _due_notes(
    core: Core, source: Source, partition: int, now_ms: int, most: int = _TOGETHER
) -> Iterator[list[tuple[str, int, Parcel | None]]]:
    """Notes that are due, some at a time, with the parcels that are still there."""
    table = core.tables.messages
    notes = partition_key(AGE_NOTES, source.id, partition)
    pk = partition_key(PARCELS, source.id, partition)
    request = page_request(table, notes, "!", f"{now_ms:013d}", most, consistent=False)
    while True:
        items, last, _ = core.store.query(request)
        keys = [(pk, item["sk"]["S"].partition("#")[2]) for item in items]
        found = core.store.get_many(table, list(dict.fromkeys(keys)), consistent=True)
        yield [
            (item["sk"]["S"], partition, read_parcel(found[place]) if place in found else None)
            for item, place in zip(items, keys, strict=True)
        ]
        if last is None:
            return
        request["ExclusiveStartKey"] = last


def _settle_note(
    core: Core, source: Source, note: tuple[str, int, Parcel | None], limit_ms: int
) -> None:
    """Dead-letter the parcel of a note; delete the note, unless a message of it is still live.

    Then it is held, or delayed, or no queue takes its dead letters now. What expires and was never
    received is nobody's any more.
    """
    sort_key, partition, parcel = note
    now_ms = core.now_ms()
    over = parcel is not None and now_ms >= parcel.expires_ms
    if parcel is not None and source.keeps(parcel) and (source.rescues or not over):
        if too_old(source, parcel, now_ms):
            left = give_up(core, source, parcel, now_ms)
            if any(left.live(n) and (left.receives[n] or not over) for n in range(left.count)):
                return
        else:
            again = age_note(parcel, limit_ms, source.removable_ms(parcel))
            if again["sk"]["S"] == sort_key:
                return  # it is due this very millisecond
            core.store.write("PutItem", {"TableName": core.tables.messages, "Item": again})
    place = key(partition_key(AGE_NOTES, source.id, partition), sort_key)
    core.store.write("DeleteItem", {"TableName": core.tables.messages, "Key": place})


def _give_up_all(core: Core, source: Source, parcels: Sequence[Parcel]) -> bool:
    """Give up what is due of the parcels. Returns whether nothing of it is left to be tried again:
    without a queue that takes dead letters, what is too old stays where it is."""
    now_ms = core.now_ms()
    due = [
        parcel
        for parcel in parcels
        if source.keeps(parcel) and too_old(source, parcel, now_ms)
        if any(dead_letter_reason(source, parcel, place, now_ms) for place in range(parcel.count))
    ]

    def nothing_left(parcel: Parcel) -> bool:
        left = give_up(core, source, parcel, now_ms)
        reasons = [dead_letter_reason(source, left, place, now_ms) for place in range(left.count)]
        return not any(reasons) or not has_place(core, source)

    return all(_each(core, nothing_left, due))


def _each(core: Core, act: Callable[[A], B], values: Sequence[A]) -> list[B | None]:
    """Act on each, side by side; one that fails, for None, stops none of the others."""

    def safely(value: A) -> B | None:
        with apart_from_others("a message that is too old could not be given up"):
            return act(value)
        return None

    return list(core.in_parallel(safely, values))


def _state_place(source: Source, partition: int) -> tuple[str, str]:
    return partition_key(AGE_NOTES, source.id, partition), _STATE


def _write_state(
    core: Core,
    source: Source,
    partition: int,
    numbers: Mapping[str, int],
    condition: str = "",
    condition_values: Item | None = None,
) -> None:
    expires_at = ttl_seconds(core.now_ms() + _STATE_LIFE_MS)
    written = {**numbers, "expires_at": expires_at}
    request: dict[str, Any] = {
        "TableName": core.tables.messages,
        "Key": key(*_state_place(source, partition)),
        "UpdateExpression": "SET " + ", ".join(f"{name} = :{name}" for name in written),
        "ExpressionAttributeValues": {
            **{f":{name}": {"N": str(number)} for name, number in written.items()},
            **(condition_values or {}),
        },
    }
    if condition:
        request["ConditionExpression"] = condition
    core.store.write("UpdateItem", request)
