"""Dead-lettering by age, without a receive: a partition's messages that have reached their limit.

A parcel's key has the time since when it can be received, so all before `now - limit` are old
enough, and of the others a page in each group is read. Two kinds of parcels have a later key than
their age: parcels that were re-keyed to a retry's due time, and parcels that were sent with a
delay. A note (see `age_note`) has the time when they reach the limit:

    re-keyed     the note is written with the move
    delayed      noted when `seen`, which follows a minute behind the clock, passes its key
    the limit was changed, or is new: `seen` starts again, and passes everything once

A minute's work in a partition is bounded: two seconds of the sweep and 500 pages, and if parcels
are left, 3,000 pages of an invocation of `replay`, which holds the partition. The next one goes on
behind the last group that was seen. So of G groups a message that is too old is dead-lettered
within G/3,000 minutes and one more; if they have a parcel or two each, within G/900,000.

A message of a group with a dead-letter queue may be held to the end of its life. It is
dead-lettered after that, within an hour, and `ended` says which parcels need not be read again:

    sweep 1   reads up to 23:58 of the day before ── held: stays
    sweep 2, late                                    expired: moves; `ended` is behind it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from cirrusmq.base.limits import EXPIRED_KEPT_MS, LONGEST_WAIT_MS
from cirrusmq.lifecycle.dead_letters.move import due, give_up, has_place
from cirrusmq.lifecycle.dead_letters.ordered_age_limit import give_up_in_groups
from cirrusmq.lifecycle.dead_letters.policy import age_limit_ms, too_old
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import log_and_continue
from cirrusmq.runtime.store import Item, key, number_in, set_request
from cirrusmq.storage import lease
from cirrusmq.storage.lease import Lease
from cirrusmq.storage.parcels import (
    AGE_NOTES,
    PARCELS,
    age_note,
    page_request,
    partition_key,
    read_parcel,
    ttl_seconds,
)
from cirrusmq.storage.queries import LAST_KEY
from cirrusmq.storage.walk import Bounds, PartitionScan

A = TypeVar("A")
B = TypeVar("B")
HOLD_MS = 60_000
_TOGETHER = 64
STEP_PAGES = 500
"""Pages that a step reads of a partition, of up to 320 parcels and at least a group each."""
STEPS = 6
"""Steps that a minute's work in a partition has, behind the sweep's own."""
_LAG_MS = 60_000
"""A key at most this much later than its sending needs no note: it is found as late at most."""
_STATE = "~"
"""Sort key, behind all notes, of a partition's progress and the worker's lease."""
_STATE_LIFE_MS = 20 * 86_400_000


class State(NamedTuple):
    """The state of a partition. Times are in milliseconds since the epoch."""

    seen_ms: int = 0
    """All delayed parcels with keys before this time have their notes."""
    limit_ms: int = 0
    """The limit of age that the notes were written for."""
    held_until_ms: int = 0
    """The end of the worker's lease."""
    ended_ms: int = 0
    """All received messages with keys before this time have been dead-lettered."""
    round_ms: int = 0
    """When the present round began."""
    round_limit_ms: int = 0
    """The limit of age of this round."""
    behind: str = ""
    """The key behind which it goes on; empty: a new round begins."""


def give_up_aged(
    core: Core, source: Source, partition: int, state: State, deadline_ms: int
) -> bool:
    """Moves messages that are too old to the dead-letter queue, from where the last call stopped.

    Until a deadline, and with at most `STEP_PAGES` pages. Returns True if a round through the
    partition is over. A limit that has changed begins a new one.
    """
    limit_ms = age_limit_ms(source)
    assert limit_ms is not None
    if not source.ordered:
        for notes in _due_notes(core, source, partition, core.now_ms()):
            _each(core, lambda note: _settle_note(core, source, note, limit_ms), notes)
            if core.now_ms() >= deadline_ms:
                return False
    if not state.behind or state.round_limit_ms != limit_ms:
        state = state._replace(behind="", round_ms=core.now_ms(), round_limit_ms=limit_ms)
    round_ = _AgeRound(core, source, state)
    oldest_ms = source.query_from_ms(core.now_ms(), core.clock.scale)
    walk = PartitionScan(
        *(core, source, partition, Bounds(pages=STEP_PAGES, deadline_ms=deadline_ms)),
        state.behind,
        from_ms=_from_ms(source, state, oldest_ms),
        until=LAST_KEY if source.grouped else f"{round_.late_until_ms:013d}{LAST_KEY}",
        small=True,
        consistent=True,
    )
    if source.ordered:
        give_up_in_groups(core, source, walk)
    else:
        round_.give_up(walk, oldest_ms)
    if walk.cut is not None:
        times = {"round_ms": state.round_ms, "round_limit_ms": limit_ms}
        _write_state(core, source, partition, times, behind=walk.cut)
        return False
    written = {}
    if round_.ended and not state.behind:
        written["ended_ms"] = oldest_ms
    if round_.passed or state.behind:
        written |= {"seen_ms": state.round_ms - _LAG_MS, "limit_ms": limit_ms}
    if written:
        _write_state(core, source, partition, written, behind="")
    return True


def _from_ms(source: Source, state: State, oldest_ms: int) -> int:
    """Returns the first key to read: of expired parcels, if they can still be dead-lettered."""
    if not source.rescues:
        return oldest_ms
    return max(min(oldest_ms, state.ended_ms), oldest_ms - EXPIRED_KEPT_MS)


def read_state(core: Core, source: Source, partition: int) -> State:
    """Returns the state of a partition."""
    item = core.store.get(core.tables.messages, *_state_key(source, partition)) or {}
    # The attributes have the names of the fields.
    numbers = [each for each in State._fields if each != "behind"]
    times: dict[str, Any] = {each: number_in(item, each) for each in numbers}
    return State(**times, behind=item["behind"]["S"] if "behind" in item else "")


def hold(core: Core, source: Source, partition: int) -> Lease | None:
    """Takes the lease of a partition for a minute. Returns None if another worker has it."""
    key = _state_key(source, partition)
    return lease.take(core, key, HOLD_MS, until="held_until_ms", kept_ms=_STATE_LIFE_MS)


class _AgeRound:
    """A round through an unordered partition: moves old messages, and notes delayed ones.

        keys    |-- too old: moved --|-- noted or not delayed --|-- passed now --|-- a minute --|
                                 now - limit                  seen            began - a minute

    A round that goes on after a break passes up to the minute before its beginning.
    """

    def __init__(self, core: Core, source: Source, state: State) -> None:
        self._core, self._source = core, source
        self._limit_ms = state.round_limit_ms
        self._aged_ms = core.now_ms() - self._limit_ms
        self._seen_ms, self.late_until_ms = state.seen_ms, state.round_ms - _LAG_MS
        changed = state.limit_ms != self._limit_ms
        if changed:
            # A parcel that was re-keyed before has no note, and a key that is ahead by its wait.
            self._seen_ms = state.round_ms - self._limit_ms
            self.late_until_ms = state.round_ms + LONGEST_WAIT_MS
        self.passed = changed and not source.ordered
        """True if there were parcels for `seen` to pass."""
        self.ended = False
        """True if there were parcels whose life is over, and they have no messages left."""
        self._done = True

    def give_up(self, walk: PartitionScan, oldest_ms: int) -> None:
        """Settles the parcels of a walk, a few in parallel.

        oldest_ms: the first key of a parcel that may still live."""
        aged, late, ended = list[Parcel](), list[Parcel](), False
        for parcel in walk:
            if parcel.key_ms <= self._aged_ms:
                aged.append(parcel)
                ended = ended or parcel.key_ms < oldest_ms
            elif parcel.key_ms < self._seen_ms:
                walk.skip_to(f"{self._seen_ms:013d}")
            elif parcel.key_ms > self.late_until_ms:
                walk.pass_group()
            else:
                self.passed = True
                if parcel.key_ms - parcel.sent_ms > _LAG_MS:
                    late.append(parcel)
            if len(aged) + len(late) >= _TOGETHER:
                self._deal_with(aged, late)
                aged, late = [], []
        self._deal_with(aged, late)
        self.ended = ended and self._done

    def _deal_with(self, aged: Sequence[Parcel], late: Sequence[Parcel]) -> None:
        core, source = self._core, self._source
        self._done = _give_up_all(core, source, [*aged, *late]) and self._done
        _each(core, lambda each: _note(core, source, each, self._limit_ms), late)


def _note(core: Core, source: Source, parcel: Parcel, limit_ms: int) -> None:
    """Writes a note of the time when a parcel reaches the limit, if it has not."""
    if not parcel.spent() and not too_old(source, parcel, core.now_ms()):
        note = age_note(parcel, limit_ms, source.removable_ms(parcel))
        core.store.write("PutItem", {"TableName": core.tables.messages, "Item": note})


def _due_notes(
    core: Core, source: Source, partition: int, now_ms: int
) -> Iterator[list[tuple[str, int, Parcel | None]]]:
    """Yields due notes, some at a time, with the parcels that are still there."""
    table = core.tables.messages
    notes = partition_key(AGE_NOTES, source.id, partition)
    pk = partition_key(PARCELS, source.id, partition)
    request = page_request(table, notes, "!", f"{now_ms:013d}", _TOGETHER, consistent=False)
    for items in core.store.query_by_page(request):
        keys = [(pk, item["sk"]["S"].partition("#")[2]) for item in items]
        found = core.store.get_many(table, list(dict.fromkeys(keys)), consistent=True)
        yield [
            (item["sk"]["S"], partition, read_parcel(found[place]) if place in found else None)
            for item, place in zip(items, keys, strict=True)
        ]


def _settle_note(
    core: Core, source: Source, note: tuple[str, int, Parcel | None], limit_ms: int
) -> None:
    """Dead-letters the parcel of a note, and deletes the note unless a message of it is live.

    A live message is held, or delayed, or no queue takes its dead letters now. A message that
    expires and was never received is not dead-lettered.
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
    """Dead-letters the due messages of the parcels. Returns True if none is left to be tried again:
    without a queue that takes dead letters, old messages stay in their parcels."""
    now_ms = core.now_ms()
    aged = [
        parcel
        for parcel in parcels
        if source.keeps(parcel) and too_old(source, parcel, now_ms)
        if due(source, parcel, now_ms)
    ]

    def nothing_left(parcel: Parcel) -> bool:
        left = give_up(core, source, parcel, now_ms)
        return not due(source, left, now_ms) or not has_place(core, source)

    return all(_each(core, nothing_left, aged))


def _each(core: Core, act: Callable[[A], B], values: Sequence[A]) -> list[B | None]:
    """Acts on each, in parallel; one that fails has None, and does not stop the others."""

    def safely(value: A) -> B | None:
        with log_and_continue("a message that is too old could not be given up"):
            return act(value)
        return None

    return list(core.in_parallel(safely, values))


def _state_key(source: Source, partition: int) -> tuple[str, str]:
    return partition_key(AGE_NOTES, source.id, partition), _STATE


def _write_state(
    core: Core,
    source: Source,
    partition: int,
    numbers: Mapping[str, int],
    *,
    behind: str | None = None,
) -> None:
    expires_at = ttl_seconds(core.now_ms() + _STATE_LIFE_MS)
    written: Item = {name: {"N": str(number)} for name, number in numbers.items()}
    written |= {"expires_at": {"N": str(expires_at)}}
    written |= {} if behind is None else {"behind": {"S": behind}}
    place = _state_key(source, partition)
    core.store.write("UpdateItem", set_request(core.tables.messages, place, written))
