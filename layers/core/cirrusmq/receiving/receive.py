"""Receiving: polls the partitions until there are messages to return, or the wait is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import UnsetType

from cirrusmq.access.key_cache import note_consumer
from cirrusmq.access.keys import Caller
from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter, MessageTooLarge, Unavailable
from cirrusmq.lifecycle import chores
from cirrusmq.lifecycle.chore_memory import ChoreMemory
from cirrusmq.model.message import Message
from cirrusmq.model.source import Source
from cirrusmq.queues.wake_ups.follow import register_waiter, woken_partitions
from cirrusmq.receiving import polling
from cirrusmq.receiving.claim import Claim
from cirrusmq.receiving.claim_batch import Batch, ReceiveLimits
from cirrusmq.receiving.ordered import take_from_groups, take_of_group
from cirrusmq.receiving.ordered_pages import GroupLooks
from cirrusmq.receiving.poll_limit import waiting
from cirrusmq.receiving.receive_request import Received, ReceiveRequest
from cirrusmq.receiving.release import read_claimed
from cirrusmq.receiving.shuffle import ChosenGroup, RandomOrder
from cirrusmq.receiving.unordered import take_from_partition
from cirrusmq.runtime.core import Core
from cirrusmq.sending.making import group_hash
from cirrusmq.storage.parcels import PARCELS, partition_key

if TYPE_CHECKING:
    from cirrusmq.receiving.best_levels import BestLevels

EMPTY_LOOKS = 4
"""A receive that has messages ends after this number of empty partitions in a row: a poll costs
half a read unit, and a call that is saved five times as much."""
FILLING_MS = 1_000
"""A receive that has messages ends after that time, for which its first leases have run."""


class Wait(msgspec.Struct):
    """The time that a receive waited: from its first polls to the last one, if it waited at all."""

    begun_ms: int = 0
    ended_ms: int = 0
    limited: bool = False
    """The source's rate left nothing for its last look."""

    @property
    def took_ms(self) -> int:
        """Milliseconds from the end of the first polls to the beginning of the last one."""
        return max(0, self.ended_ms - self.begun_ms)


class PreparedReceive(msgspec.Struct, frozen=True, kw_only=True):
    """A receive whose request is checked; nothing is claimed yet."""

    find: Callable[[], Source]
    """Returns the source as it is now: a purge or a deletion during the wait takes effect with the
    next call."""
    source: Source
    request: ReceiveRequest
    wanted: ReceiveLimits
    chance: RandomOrder
    wait: Wait


def receive(
    core: Core,
    find: Callable[[], Source],
    caller: Caller,
    request: ReceiveRequest,
    max_seconds: float,
    alone_bytes: int | None = None,
) -> list[Received]:
    """Does what `take` does, for an unchecked request and a caller without an access key."""
    begun = begin(core, find, caller, request, alone_bytes, noted=False)
    return take(core, begun, caller, max_seconds)


def begin(
    core: Core,
    find: Callable[[], Source],
    caller: Caller,
    request: ReceiveRequest,
    alone_bytes: int | None = None,
    *,
    noted: bool = True,
) -> PreparedReceive:
    """Checks the request, and notes that the caller's key receives. Raises if it is refused.

    find: returns the source as it is now. alone_bytes: bytes of JSON that a message may have if it
    is received alone; None means the limit of several together. noted: False for a caller without
    an access key.
    """
    source = find()
    if request.repeat and isinstance(request.attempt, UnsetType):
        raise InvalidParameter("repeat", "is allowed only with the attempt of an earlier receive")
    attempt = None if isinstance(request.attempt, UnsetType) else request.attempt
    _check_choice(source, request)
    group = None if isinstance(request.group, UnsetType) else ChosenGroup(group_hash(request.group))
    chance = RandomOrder(core, source.owner_id, caller.key_id, attempt, group)
    timeout = request.visibility_timeout_seconds
    answer_bytes = limits.ANSWER_BYTES - sum(map(_result_bytes, request.delete))
    wanted = ReceiveLimits(
        limit=request.max,
        timeout_seconds=None if isinstance(timeout, UnsetType) else timeout,
        nonce_of=chance.nonce_of,
        answer_bytes=answer_bytes,
        alone_bytes=answer_bytes if alone_bytes is None else alone_bytes,
    )
    if noted:
        note_consumer(core, source.owner_id, caller.account, caller.key_id)
    return PreparedReceive(
        find=find, source=source, request=request, wanted=wanted, chance=chance, wait=Wait()
    )


def _check_choice(source: Source, request: ReceiveRequest) -> None:
    """Raise InvalidParameter if the source cannot give what `group` or `where` choose."""
    if request.group is not msgspec.UNSET and not source.has_groups:
        raise InvalidParameter("group", "is allowed only in an ordered or a fair queue")
    if request.where is msgspec.UNSET:
        if request.after is not msgspec.UNSET:
            raise InvalidParameter("after", "is allowed only with where")
        return
    if source.grouped:
        reason = "is not allowed in an ordered or a fair queue, or with priorities: use a receiver"
        raise InvalidParameter("where", f"{reason} with a filter")
    if request.attempt is not msgspec.UNSET:
        raise InvalidParameter("attempt", "is not allowed with where: the call is not repeatable")
    if request.wait_seconds is not msgspec.UNSET and request.wait_seconds:
        raise InvalidParameter("wait_seconds", "must be 0 with where: the call answers at once")


def take(core: Core, begun: PreparedReceive, caller: Caller, max_seconds: float) -> list[Received]:
    """Takes up to `max` messages. Returns an empty list if the wait ends with none.

    It does not wait if the caller's account has as many waiting receives as it may have.
    max_seconds: the rest of the call's own time, which limits the wait. Raises MessageTooLarge if
    all messages are too large for any answer; they are not claimed.
    """
    source, request = begun.source, begun.request
    wanted, chance = begun.wanted, begun.chance
    if request.repeat and (held := take_again(core, begun)):
        return held
    wait = request.wait_seconds
    wait_seconds = source.receive_wait_seconds if isinstance(wait, UnsetType) else wait
    wait_seconds = min(wait_seconds, max_seconds)
    deadline_ms = core.now_ms() + int(wait_seconds * 1000)
    looking = _PartitionPoller(core, wanted, chance)
    first = polling.first_partitions(source, wait_seconds)
    received = looking.poll_first(source, first)
    if not received and core.now_ms() < deadline_ms:
        with waiting(core, caller.account, deadline_ms) as may_wait:
            if may_wait:
                received = _wait(core, begun, looking, wait_seconds, deadline_ms)
            elif first < source.partitions:
                received = looking.poll_all(source)
    begun.wait.limited = looking.limited
    if not received and looking.too_large:
        raise next(iter(looking.too_large.values()))
    return received


def take_again(core: Core, begun: PreparedReceive) -> list[Received]:
    """Returns the messages that an earlier receive of the attempt holds; claims nothing."""
    # Only after a lost answer: other receives' cold starts do without.
    from cirrusmq.receiving.idempotent import held_from_attempt

    held = held_from_attempt(core, begun.source, begun.chance, begun.wanted)
    return _with_contents(core, begun.source, held) if held else []


def take_what_fits(
    core: Core, begun: PreparedReceive, caller: Caller, max_seconds: float
) -> list[Received]:
    """Does what `take` does, but returns an empty list if all messages are too large.

    For programs that know no such error, and can do nothing about it: the log has a line.
    """
    try:
        return take(core, begun, caller, max_seconds)
    except MessageTooLarge:
        return []


def _result_bytes(receipt: str) -> int:
    """Returns the most bytes of JSON that an answer has about a receipt to delete."""
    return limits.ESCAPED_BYTES * len(receipt.encode()) + limits.DELETE_RESULT_BYTES


def _wait(
    core: Core,
    begun: PreparedReceive,
    looking: _PartitionPoller,
    wait_seconds: float,
    deadline_ms: int,
) -> list[Received]:
    """Polls again and again until there is something, or the time is over."""
    received: list[Received] = []
    source, wait = begun.source, begun.wait
    wait.begun_ms = wait.ended_ms = core.now_ms()
    turns = polling.Turns(wait_seconds, core.settings.faster_looks)
    turns.begin_turn(source, looking.last_units)
    turns.begin_round()
    while not received and (left_seconds := (deadline_ms - core.now_ms()) / 1000) > 0:
        wakes = polling.waits_for_wake_ups(source, wait_seconds)
        if wakes:
            register_waiter(core, source)
        pause_seconds = turns.next_seconds(source)
        ends = pause_seconds >= left_seconds
        core.clock.sleep(min(pause_seconds, left_seconds))
        turns.pass_seconds(pause_seconds)
        wait.ended_ms = core.now_ms()
        before, source = source, begun.find()
        if source.owner_id != before.owner_id:
            return []  # another one by that name: the call was for the deleted one
        if ends and polling.ends_with_all(source):
            return looking.poll_all(source)
        if wakes and (ends or turns.round_is_due):
            received = looking.poll_woken(source)
            turns.begin_round()
        if not received and (ends or turns.turn_is_due):
            received = looking.poll_next(source)
            turns.begin_turn(source, looking.last_units)
    return received


class _PartitionPoller:
    """The polls of one receive, in its own order of partitions and, in them, of groups."""

    def __init__(self, core: Core, wanted: ReceiveLimits, chance: RandomOrder) -> None:
        self._core, self._wanted, self._chance = core, wanted, chance
        self._walks: dict[str, GroupLooks] = {}
        """Scan positions by source id, for ordered and fair sources."""
        self._turn = 0
        self.too_large: dict[tuple[str, int], MessageTooLarge] = {}
        """By source and partition: errors of last polls with only messages too large to answer."""
        self.limited = False
        """True if the source's rate left nothing for the last poll."""
        self.last_units = 0.0
        """Read units of the last poll of a source's groups; 0 for other sources."""

    def poll_first(self, source: Source, count: int) -> list[Received]:
        """Polls the first partitions, in the receive's order; the turns begin behind them."""
        self._turn = count - 1 if count < source.partitions else 0
        partitions = self._chance.partitions(source)[:count]
        return self._look(source, partitions, fills=True)

    def poll_all(self, source: Source) -> list[Received]:
        """Polls the partitions until enough is received.

        Raises Unavailable if the store refuses in one of them and no other one has messages.
        """
        return self._look(source, self._chance.partitions(source), fills=True)

    def poll_woken(self, source: Source) -> list[Received]:
        """Polls the partitions of wake-ups, if there are any."""
        partitions = woken_partitions(self._core, source)
        if self._chance.group is not None:
            own = self._chance.partitions(source)
            partitions = [each for each in partitions if each in own]
        return self._look(source, partitions) if partitions else []

    def poll_next(self, source: Source) -> list[Received]:
        """Polls the partition whose turn it is."""
        partitions = self._chance.partitions(source)
        self._turn += 1
        return self._look(source, [partitions[self._turn % len(partitions)]])

    def _look(
        self, source: Source, partitions: Sequence[int], *, fills: bool = False
    ) -> list[Received]:
        """Polls the partitions until one has messages or, with `fills`, until enough is received.

        A poll for a wake-up or in turn returns at once: messages that come one by one would each
        cost the units of polls around it.
        """
        if source.paused:
            return []
        if source.receive_rate is None:
            return self._look_for(source, partitions, self._wanted, fills)
        # Few sources have a rate: the others' cold starts do without.
        from cirrusmq.access import source_rates

        rate, limit = source.receive_rate, self._wanted.limit
        second = source_rates.second_of(self._core)
        allowed = source_rates.allow_receives(self._core, source.id, rate, limit)
        self.limited = not allowed
        if not allowed:
            return []
        received: list[Received] = []
        try:
            wanted = msgspec.structs.replace(self._wanted, limit=allowed)
            received = self._look_for(source, partitions, wanted, fills)
        finally:
            source_rates.give_back(self._core, source.id, allowed - len(received), second)
        return received

    def _look_for(
        self, source: Source, partitions: Sequence[int], wanted: ReceiveLimits, fills: bool
    ) -> list[Received]:
        refused: Unavailable | None = None
        before = self._units
        units = max(polling.PARTITION_UNITS, polling.LOOK_UNITS / len(partitions))
        answer = _ReceiveAnswer(rest=wanted, fills=fills and not source.grouped)
        in_order: Iterable[int] = partitions
        best = self._best_levels(source)
        if best is not None:
            all_partitions = self._chance.partitions(source)
            whole = len(partitions) == len(all_partitions)
            empty = not whole and best.seems_empty(partitions)
            in_order = () if empty else best.in_order(all_partitions)
        for partition, each in ((one, each) for one in in_order for each in source.all):
            self.too_large.pop((each.id, partition), None)
            received: list[Received] = []
            try:
                batch = self._take(each, partition, answer.rest, units, best)
                claims = claimed_of(self._core, each, batch)
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
        if source.grouped:  # idle partitions do not make the first poll of all dearer
            self.last_units -= polling.IDLE_UNITS * (len(partitions) - 1)
        if refused is not None and not answer.received:
            raise refused
        return answer.received

    def _best_levels(self, source: Source) -> BestLevels | None:
        """Returns the order of partitions for a source with priorities, None for others."""
        if source.priorities is None or source.partitions == 1:
            return None
        # Few queues have priorities in several partitions: the others' cold starts do without.
        from cirrusmq.receiving.best_levels import BestLevels

        return BestLevels(self._core, source, self._walk_of(source))

    def _walk_of(self, source: Source) -> GroupLooks:
        return self._walks.setdefault(source.id, GroupLooks(self._chance.ring_start))

    def _take(
        self,
        source: Source,
        partition: int,
        wanted: ReceiveLimits,
        units: float,
        best: BestLevels | None,
    ) -> Batch:
        batch = Batch(wanted, partition_key(PARCELS, source.id, partition), in_order=source.ordered)
        if not source.grouped:
            take_from_partition(self._core, source, batch)
            return batch
        walk = self._walk_of(source)
        walk.units_left = units
        try:
            self._take_of_groups(source, batch, walk, partition, best)
        except Unavailable as error:  # of a page, when something may have been claimed already
            batch.refused = error
        return batch

    def _take_of_groups(
        self,
        source: Source,
        batch: Batch,
        walk: GroupLooks,
        partition: int,
        best: BestLevels | None,
    ) -> None:
        given, chosen = (self._core, source, batch, walk), self._chance.group is not None
        if source.ordered:
            return take_of_group(*given) if chosen else take_from_groups(*given)
        # Few queues are fair, or have priorities: the others' cold starts do without.
        if source.priorities is not None:
            from cirrusmq.receiving.by_priority import take_by_priority

            return take_by_priority(*given, partition, best)
        from cirrusmq.receiving import fair

        return fair.take_of_group(*given) if chosen else fair.take_in_turn(*given)

    @property
    def _units(self) -> float:
        return sum(walk.units for walk in self._walks.values())


class _ReceiveAnswer(msgspec.Struct):
    """The messages that one receive has found, from one partition after the other."""

    rest: ReceiveLimits
    """The limits for the messages that are still to come."""
    fills: bool
    """True if more messages are looked for after the first ones."""
    received: list[Received] = []
    empty_looks: int = 0
    """Polls without messages since the last one that had some."""
    until_ms: int = 0

    def add(self, received: list[Received], now_ms: int) -> None:
        """Adds the messages of one partition."""
        if not received:
            self.empty_looks += 1
            return
        self.empty_looks = 0
        self.until_ms = self.until_ms or now_ms + FILLING_MS
        self.received += received
        used_bytes = sum(each.parcel.answer_bytes(each.index) for each in received)
        self.rest = self.rest.behind(len(received), used_bytes)

    def ends(self, empty_looks: int, now_ms: int) -> bool:
        """Returns True if it is full, had this number of empty polls, or its leases run long."""
        if not self.received:
            return False
        full = not self.fills or self.rest.full
        return full or self.empty_looks >= empty_looks or now_ms >= self.until_ms


def claimed_of(core: Core, source: Source, batch: Batch) -> list[Claim]:
    """Returns a batch's claims, after messages passed over are settled, and the chores that the
    scan met are named to `replay`."""
    if batch.passed:
        # Few queues have messages that large: the others' cold starts do without.
        from cirrusmq.receiving.passed_over import settle

        settle(core, source, batch)
    if ChoreMemory in core.memories:  # in most environments nothing was ever met
        chores.tell(core, source, batch.pk)
    return batch.claimed()


def _with_contents(core: Core, source: Source, claims: list[Claim]) -> list[Received]:
    """Returns the claimed messages, without messages whose content cannot be read now."""
    read = zip(claims, read_claimed(core, source, claims), strict=True)
    return [each for claim, messages in read for each in received_of(claim, messages)]


def received_of(claim: Claim, messages: Mapping[int, Message]) -> list[Received]:
    """Returns the messages of a claim, as far as they were read; they are by their indexes."""
    return [
        Received(
            parcel=claim.parcel, index=index, receipt=claim.receipt(index), message=messages[index]
        )
        for index in claim.indexes
        if index in messages
    ]
