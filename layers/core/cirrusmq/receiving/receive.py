"""Receiving: looking at the partitions until something can be returned, or the wait is over."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, UnsetType

from cirrusmq.access.keys import Caller
from cirrusmq.access.last_use import note_consumer
from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter, MessageTooLarge, Unavailable
from cirrusmq.model.message import Message
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.queues.wake_ups.follow import say_that_one_waits, woken_partitions
from cirrusmq.receiving import polling
from cirrusmq.receiving.claim import Claim
from cirrusmq.receiving.claim_batch import ReceiveLimits
from cirrusmq.receiving.ordered import take_from_groups
from cirrusmq.receiving.ordered_pages import GroupLooks
from cirrusmq.receiving.poll_limit import waiting
from cirrusmq.receiving.release import read_claimed
from cirrusmq.receiving.shuffle import Chance
from cirrusmq.receiving.unordered import take_from_partition
from cirrusmq.runtime.core import Core
from cirrusmq.settlement.settle import ReceiptText

EMPTY_LOOKS = 4
"""A receive that has something ends after so many partitions without anything, in a row: a look
costs half a read unit, and a call that is saved five times as much."""
FILLING_MS = 1_000
"""A receive that has something ends after that time: its first leases run since then."""


class ReceiveRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a receive."""

    max: Annotated[int, Meta(ge=1, le=16, description="an integer from 1 to 16")] = 1
    wait_seconds: (
        Annotated[float, Meta(ge=0, le=30, description="a number from 0 to 30 seconds")] | UnsetType
    ) = msgspec.UNSET
    visibility_timeout_seconds: (
        Annotated[int, Meta(ge=1, le=43_200, description="an integer from 1 to 43,200 seconds")]
        | UnsetType
    ) = msgspec.UNSET
    receiver: str | UnsetType = msgspec.UNSET
    attempt: str | UnsetType = msgspec.UNSET
    repeat: bool = False
    delete: Annotated[
        list[ReceiptText],
        Meta(description="an array of at most 16 receipts, whose messages are deleted first"),
    ] = []


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A message that its receiver now holds."""

    parcel: Parcel
    place: int
    receipt: str
    message: Message


class Wait(msgspec.Struct):
    """The time that a receive waited: from its first looks to the last one, if it waited at all."""

    begun_ms: int = 0
    ended_ms: int = 0

    @property
    def took_ms(self) -> int:
        """Milliseconds; looks in between are a part of it, the first ones and the last are not."""
        return max(0, self.ended_ms - self.begun_ms)


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A receive whose request is checked; nothing is claimed yet."""

    find: Callable[[], Source]
    """Answers the source as it is now: a purge or a deletion during the wait is in force from its
    answer on."""
    source: Source
    request: ReceiveRequest
    wanted: ReceiveLimits
    chance: Chance
    wait: Wait


def receive(
    core: Core,
    find: Callable[[], Source],
    caller: Caller,
    request: ReceiveRequest,
    most_seconds: float,
    alone_bytes: int | None = None,
) -> list[Received]:
    """As `take`, of a request that is not checked yet, and of a caller that is no access key."""
    return take(core, _checked(core, find, caller, request, alone_bytes), caller, most_seconds)


def begin(
    core: Core,
    find: Callable[[], Source],
    caller: Caller,
    request: ReceiveRequest,
    alone_bytes: int | None = None,
) -> Begun:
    """Check the request, and note that the caller's key receives; raises where it is refused.

    `find` answers the source as it is now. `alone_bytes`: of JSON that a message may have which is
    received alone; None: no more than several together.
    """
    begun = _checked(core, find, caller, request, alone_bytes)
    note_consumer(core, begun.source.owner_id, caller.account, caller.key_id)
    return begun


def _checked(
    core: Core,
    find: Callable[[], Source],
    caller: Caller,
    request: ReceiveRequest,
    alone_bytes: int | None,
) -> Begun:
    source = find()
    if request.repeat and isinstance(request.attempt, UnsetType):
        raise InvalidParameter("repeat", "is allowed only with the attempt of an earlier receive")
    attempt = None if isinstance(request.attempt, UnsetType) else request.attempt
    chance = Chance(core, source.owner_id, caller.key_id, attempt)
    timeout = request.visibility_timeout_seconds
    answer_bytes = limits.ANSWER_BYTES - sum(map(_result_bytes, request.delete))
    wanted = ReceiveLimits(
        most=request.max,
        timeout_seconds=None if isinstance(timeout, UnsetType) else timeout,
        nonce_of=chance.nonce_of,
        answer_bytes=answer_bytes,
        alone_bytes=answer_bytes if alone_bytes is None else alone_bytes,
    )
    return Begun(
        find=find, source=source, request=request, wanted=wanted, chance=chance, wait=Wait()
    )


def take(core: Core, begun: Begun, caller: Caller, most_seconds: float) -> list[Received]:
    """Take up to `max` messages; an empty list when the wait ends with none.

    Where as many receives of the caller's account wait as may, it does not wait itself.
    `most_seconds` is the rest of the call's own time; a longer wait is cut to it. MessageTooLarge
    where there is a message that no answer holds, and no other one: it is not claimed.
    """
    source, request = begun.source, begun.request
    wanted, chance = begun.wanted, begun.chance
    if request.repeat and (held := take_again(core, begun)):
        return held
    wait = request.wait_seconds
    wait_seconds = source.receive_wait_seconds if isinstance(wait, UnsetType) else wait
    wait_seconds = min(wait_seconds, most_seconds)
    deadline_ms = core.now_ms() + int(wait_seconds * 1000)
    looking = _Looking(core, wanted, chance)
    first = polling.first_partitions(source, wait_seconds)
    received = looking.at_first(source, first)
    if not received and core.now_ms() < deadline_ms:
        with waiting(core, caller.account, deadline_ms) as may_wait:
            if may_wait:
                received = _wait(core, begun, looking, wait_seconds, deadline_ms)
            elif first < source.partitions:
                received = looking.at_all(source)
    if not received and looking.too_large:
        raise next(iter(looking.too_large.values()))
    return received


def take_again(core: Core, begun: Begun) -> list[Received]:
    """The messages that an earlier receive of the request's attempt holds; nothing is claimed."""
    # Only after a lost answer: other receives' cold starts do without.
    from cirrusmq.receiving.idempotent import held_from_attempt

    held = held_from_attempt(core, begun.source, begun.chance, begun.wanted)
    return _with_contents(core, begun.source, held) if held else []


def take_what_fits(core: Core, begun: Begun, caller: Caller, most_seconds: float) -> list[Received]:
    """As `take`; an empty list also if there are only messages that no answer holds.

    For programs that know no such error, and can do nothing about it: the log tells of it.
    """
    try:
        return take(core, begun, caller, most_seconds)
    except MessageTooLarge:
        return []


def _result_bytes(receipt: str) -> int:
    """The most that an answer's JSON has about a receipt that is to be deleted."""
    return limits.ESCAPED_BYTES * len(receipt.encode()) + limits.DELETE_RESULT_BYTES


def _wait(
    core: Core, begun: Begun, looking: _Looking, wait_seconds: float, deadline_ms: int
) -> list[Received]:
    """Look again and again until there is something, or the time is over."""
    received: list[Received] = []
    source, wait = begun.source, begun.wait
    wait.begun_ms = wait.ended_ms = core.now_ms()
    turns = polling.Turns(wait_seconds, core.settings.faster_looks)
    turns.begin_turn(source, looking.last_units)
    turns.begin_round()
    while not received and (left_seconds := (deadline_ms - core.now_ms()) / 1000) > 0:
        wakes = turns.with_wake_ups(source)
        if wakes:
            say_that_one_waits(core, source)
        pause_seconds = turns.next_seconds(source)
        ends = pause_seconds >= left_seconds
        core.clock.sleep(min(pause_seconds, left_seconds))
        turns.pass_seconds(pause_seconds)
        wait.ended_ms = core.now_ms()
        before, source = source, begun.find()
        if source.owner_id != before.owner_id:
            return []  # another one by that name: the call was for the one that is deleted
        if ends and polling.ends_with_all(source):
            return looking.at_all(source)
        if wakes and (ends or turns.round_is_due):
            received = looking.at_woken(source)
            turns.begin_round()
        if not received and (ends or turns.turn_is_due):
            received = looking.at_next(source)
            turns.begin_turn(source, looking.last_units)
    return received


class _Looking:
    """The looks of one receive, which has its own order of partitions and, in them, of groups."""

    def __init__(self, core: Core, wanted: ReceiveLimits, chance: Chance) -> None:
        self._core, self._wanted, self._chance = core, wanted, chance
        self._walks: dict[str, GroupLooks] = {}
        """Those through the groups of a source that has them, and of its former ones, by id."""
        self._turn = 0
        self.too_large: dict[tuple[str, int], MessageTooLarge] = {}
        """Of sources and partitions whose last look found only messages that no answer holds."""
        self.last_units = 0.0
        """Read units of the last look at the groups of a source; 0 elsewhere."""

    def at_first(self, source: Source, count: int) -> list[Received]:
        """Look at the first partitions, in the receive's order; behind them the turns begin."""
        self._turn = count - 1 if count < source.partitions else 0
        partitions = self._chance.partitions(source.partitions)[:count]
        return self._look(source, partitions, fills=True)

    def at_all(self, source: Source) -> list[Received]:
        """Look at the partitions until enough is received.

        Raises Unavailable if that is so in one of them and no other one gave anything.
        """
        return self._look(source, self._chance.partitions(source.partitions), fills=True)

    def at_woken(self, source: Source) -> list[Received]:
        """Look at the partitions of wake-ups, if there are any."""
        partitions = woken_partitions(self._core, source)
        return self._look(source, partitions) if partitions else []

    def at_next(self, source: Source) -> list[Received]:
        """Look at the partition whose turn it is."""
        partitions = self._chance.partitions(source.partitions)
        self._turn += 1
        return self._look(source, [partitions[self._turn % len(partitions)]])

    def _look(
        self, source: Source, partitions: Sequence[int], *, fills: bool = False
    ) -> list[Received]:
        """Look at the partitions until one gives something; with `fills`, until enough is received.

        A look for a wake-up or in turn answers at once: messages that come one by one would each
        cost the units of looks around it.
        """
        if source.paused:
            return []
        refused: Unavailable | None = None
        before = self._units
        units = max(polling.PARTITION_UNITS, polling.LOOK_UNITS / len(partitions))
        answer = _ReceiveAnswer(rest=self._wanted, fills=fills and not source.grouped)
        for partition, each in itertools.product(partitions, source.all):
            self.too_large.pop((each.id, partition), None)
            received: list[Received] = []
            try:
                claims = self._take(each, partition, answer.rest, units)
                received = _with_contents(self._core, each, claims)
            except Unavailable as error:
                if answer.received:
                    return answer.received
                refused = error
            except MessageTooLarge as error:
                self.too_large[each.id, partition] = error
            answer.add(received, self._core.now_ms())
            if answer.ends(EMPTY_LOOKS * len(source.all), self._core.now_ms()):
                return answer.received
        self.last_units = self._units - before
        if source.grouped:  # the first look at all partitions is no dearer where they are idle
            self.last_units -= polling.IDLE_UNITS * (len(partitions) - 1)
        if refused is not None and not answer.received:
            raise refused
        return answer.received

    def _take(
        self, source: Source, partition: int, wanted: ReceiveLimits, units: float
    ) -> list[Claim]:
        if not source.grouped:
            return take_from_partition(self._core, source, partition, wanted)
        walk = self._walks.setdefault(source.id, GroupLooks(self._chance.ring_start))
        walk.units_left = units
        if source.ordered:
            return take_from_groups(self._core, source, partition, wanted, walk)
        # Few queues are fair: the others' cold starts do without.
        from cirrusmq.receiving.fair import take_in_turn

        return take_in_turn(self._core, source, partition, wanted, walk)

    @property
    def _units(self) -> float:
        return sum(walk.units for walk in self._walks.values())


class _ReceiveAnswer(msgspec.Struct):
    """What the look of one receive gave so far, from one partition after the other."""

    rest: ReceiveLimits
    """What is still wanted behind that."""
    fills: bool
    """Whether more is looked for when something is there."""
    received: list[Received] = []
    empty_looks: int = 0
    """In a row, since the last one that gave something."""
    until_ms: int = 0

    def add(self, received: list[Received], now_ms: int) -> None:
        """Add what a look at a partition gave."""
        if not received:
            self.empty_looks += 1
            return
        self.empty_looks = 0
        self.until_ms = self.until_ms or now_ms + FILLING_MS
        self.received += received
        used_bytes = sum(each.parcel.answer_bytes(each.place) for each in received)
        self.rest = self.rest.behind(len(received), used_bytes)

    def ends(self, empty_looks: int, now_ms: int) -> bool:
        """Whether to answer: it is full, so many looks gave nothing, or its leases run for long."""
        if not self.received:
            return False
        full = not self.fills or self.rest.full
        return full or self.empty_looks >= empty_looks or now_ms >= self.until_ms


def _with_contents(core: Core, source: Source, claims: list[Claim]) -> list[Received]:
    """The claimed messages; those whose content cannot be read now are not among them."""
    return [
        Received(
            parcel=claim.parcel,
            place=place,
            receipt=claim.receipt(place),
            message=messages[place],
        )
        for claim, messages in zip(claims, read_claimed(core, source, claims), strict=True)
        for place in claim.places
        if place in messages
    ]
