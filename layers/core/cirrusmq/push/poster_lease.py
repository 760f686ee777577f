"""One poster for each subscription: only the holder of its lease posts.

    A: acquires ── posts a window of messages, renews each 10 s ── releases
    B:   has a new message, finds A: requests another scan, from its key on, and ends
A post starts only while 17 s of the lease are left, so that it outlives every post begun under it,
also if its holder died: no message is posted by two at once, and none need be claimed.

No wake-up is lost. The request is written on the condition that A still holds, and A releases on
the condition that there is none:

    fan-out puts m ── B: request? A holds ──> A: release? a request: scans again, finds m
    fan-out puts m ─────────────────────────> A: releases ── B: request? none: acquires, finds m

Two numbers decide which execution continues. `starts` names executions; `generation` is the number
of the execution in charge. A holder that leaves a message due before any execution wakes counts
`starts` up in its release and starts that execution, which waits until then and takes charge when
it first holds:

    #1, in charge, asleep until 14:00      a message fails, due 12:00:10: starts = 2, #2 is started
    #2 12:00:10 holds: generation = 2      #1 wakes, generation > 1: ends
    #2 could not be started:               #1 is still in charge, and the sweep finds the message
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.breaker import Circuit, packed
from cirrusmq.runtime.core import Core
from cirrusmq.storage.lease import UNHELD
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.delivery.items import Update, Value
from cirrusmq.subscriptions.delivery.rules import DeliveryState, Slowness, hold_ms

MARGIN_MS = 1_000
"""An execution that wakes within this time after a message is due is early enough: the message is
posted within the second."""
WAKING_MS = 10_000
"""Longest time after its alarm at which an execution may wake."""
_TRIES = 8
_UNPAUSED = "attribute_not_exists(paused)"
_NOT_OPEN = "attribute_not_exists(probe_due)"
_FAST = "(attribute_not_exists(slow_until) OR slow_until <= :now)"
Ending: TypeAlias = Literal["released", "again", "lost"]


class Acquired(NamedTuple):
    """The result of acquiring the lease."""

    delivery: DeliveryState
    mine: bool
    """True if this worker has it now."""
    dirty: bool
    """True if the last holder's state is not known, so that everything must be read."""


class LeaseRelease(msgspec.Struct, frozen=True, kw_only=True):
    """The state that a poster leaves to the next one. Times are in milliseconds since the epoch."""

    due_ms: int | None
    """When the next message is due; None if no message waits."""
    error: str
    sent_ms: int
    blocks: bool
    clean_ms: tuple[int, ...]
    marks_ms: tuple[int, ...]
    dues_ms: tuple[int, ...]
    kept_until_ms: int
    looked_ms: int
    posted_ms: int
    full_ms: int = 0
    """When the bucket of the rate is full again; 0 without a rate."""
    delayed_ms: int | None = None
    """When the next delayed message is to be posted; None if none is delayed."""
    slowness: Slowness = Slowness(0, 0)
    circuit: Circuit | None = None
    """The state of its breaker; None without one."""
    probe_due_ms: int = 0
    """When the open breaker tries a message that is ready; 0 if there is none."""

    @property
    def blocked(self) -> bool:
        """True if a message that failed, or the open breaker, holds the others back."""
        return self.due_ms is not None and (self.blocks or self.probe_due_ms > 0)

    @property
    def wake_ms(self) -> int | None:
        """When an execution is to wake; None if nothing waits."""
        if self.blocked or self.delayed_ms is None:
            return self.due_ms
        return self.delayed_ms if self.due_ms is None else min(self.due_ms, self.delayed_ms)


class Released(NamedTuple):
    """The result of a release. starts: number of an execution that is to be started, or None."""

    ending: Ending
    starts: int | None = None


def acquire(
    core: Core,
    delivery: DeliveryState,
    holder: str,
    generation: int | None = None,
    *,
    blocked_too: bool = True,
    slow_too: bool = True,
    open_too: bool = True,
) -> Acquired | None:
    """Takes the lease if no other worker has it. Returns None if the subscription is gone.

    A paused subscription is not taken: the result is not `mine` then.

    generation: the number of the execution that takes charge; None if no execution does.
    blocked_too: take it also while the subscription is retrying. slow_too: also while it is slow.
    open_too: also while an execution is to try a message of an open breaker.

    A: holds until 12:00:30 ─── posts ───> 12:00:29 done
    B: 12:00:10 holder = A, in time ──> refused
    C: 12:00:33 A's time is over    ──> C holds, and does not know A's last state
    """
    charge = {} if generation is None else {"generation": generation}
    conditions = [
        "attribute_exists(pk)",
        _UNPAUSED,
        UNHELD,
        *(f"{name} <= :{name}" for name in charge),
    ]
    values: dict[str, Value] = {}
    if not blocked_too:
        conditions.append("#state <> :retrying")
        values["retrying"] = "retrying"
    if not open_too:
        conditions.append(_NOT_OPEN)
    now_ms = core.now_ms()
    if not slow_too:
        conditions.append(_FAST)
        values["now"] = now_ms
    update = delivery_items.update(
        core,
        delivery,
        set={"held_until": now_ms + hold_ms(core.clock.scale), "holder": holder, **charge},
        remove=["again", "hurried"],
        conditions=conditions,
        values={"lapsed": core.lapsed_ms(), **values},
    )
    found = update.found
    if found is None:
        return None
    if not update.written:
        return Acquired(found, mine=found.holder == holder, dirty=True)
    return Acquired(replace(found, **charge), mine=True, dirty=bool(found.holder))


def renew(core: Core, delivery: DeliveryState, holder: str) -> Update | None:
    """Renews the lease, if this worker still has it. Returns None if the store does not say now."""
    until = {"held_until": core.now_ms() + hold_ms(core.clock.scale)}
    try:
        return delivery_items.update(core, delivery, set=until, holder=holder)
    except Unavailable:
        return None


def request_look(core: Core, delivery: DeliveryState, start: str) -> DeliveryState | None:
    """Asks the present holder to scan again from a key on before it releases.

    Returns None if it will, else the present delivery state, which that holder has left.
    """
    if delivery.again is not None and delivery.again <= start:
        return None
    earliest = "(attribute_not_exists(again) OR again > :again)"
    found = delivery_items.update(
        core, delivery, set={"again": start}, holder=delivery.holder, conditions=[earliest]
    ).refused_by
    if found is None:
        return None
    told = found.holder == delivery.holder and found.again is not None and found.again <= start
    return None if told else found


def request_hurry(core: Core, delivery: DeliveryState) -> DeliveryState | None:
    """Asks the present holder to post what waits for its retry before it releases.

    Returns None if it will, else the present delivery state, which that holder has left.
    """
    asked: dict[str, Value] = {"again": "", "hurried": 1}
    return delivery_items.update(core, delivery, set=asked, holder=delivery.holder).refused_by


def take_request(core: Core, delivery: DeliveryState, holder: str) -> DeliveryState | None:
    """Returns the delivery state with the request, or None if this worker has lost the lease."""
    update = delivery_items.update(core, delivery, remove=["again", "hurried"], holder=holder)
    return update.found if update.written else None


def leave_to_holder(core: Core, delivery: DeliveryState) -> DeliveryState | None:
    """Leaves due messages to the present holder: it starts another execution if one is needed.

    Returns None if it does, else the present delivery state, which that holder has left.
    """
    return delivery_items.update(
        core,
        delivery,
        remove=["alarm"],
        holder=delivery.holder,
        conditions=["generation = :charge"],
        values={"charge": delivery.generation},
    ).refused_by


def release(
    core: Core, delivery: DeliveryState, holder: str, handover: LeaseRelease, generation: int | None
) -> Released:
    """Releases the lease, and stores the due time of waiting messages.

    Not while another scan is requested, unless a failing message blocks the others: the next round
    scans everything. A request to post waiting messages is served in any case. generation: the
    number of the execution that does this and wakes when a message is due; None for an invocation.
    """
    for _ in range(_TRIES):
        starting = generation is None and _needs_start(core, delivery, handover)
        starts = delivery.starts + 1
        update = _release(core, delivery, holder, handover, generation, starting)
        if update.written:
            break
        found = update.found
        if found is None:
            return Released("lost")
        if found.holder != holder:
            if update.repeated and not found.holder:
                break  # the SDK's first try took effect
            return Released("lost")
        if found.delays != delivery.delays:
            return Released("again")
        if found.hurried or (found.again is not None and not handover.blocked):
            return Released("again")
        if found.late != delivery.late:
            handover = replace(handover, clean_ms=())
        delivery = found
    else:
        raise Unavailable
    return Released("released", starts if starting else None)


def start_anew(core: Core, delivery: DeliveryState) -> int | None:
    """Counts up for an execution that scans at once. Returns None if another worker was faster.

    Only without a holder. A dead holder stays named, so that the next one knows of it.
    """
    starts, now_ms = delivery.starts + 1, core.now_ms()
    refused_by = delivery_items.update(
        core,
        delivery,
        set={"starts": starts, "alarm": now_ms},
        conditions=["starts = :seen", UNHELD],
        values={"seen": delivery.starts, "lapsed": core.lapsed_ms()},
    ).refused_by
    return None if refused_by else starts


def end_execution(core: Core, delivery: DeliveryState) -> None:
    """Notes that no execution is awake, or will be: the last one ends, since posting is paused."""
    if delivery.alarm_ms:
        seen = {"alarm": delivery.alarm_ms}
        delivery_items.update(core, delivery, remove=["alarm"], seen=seen)


def expire(core: Core, delivery: DeliveryState) -> None:
    """Ends the lease of a holder that is certainly gone."""
    delivery_items.update(core, delivery, set={"held_until": 0}, holder=delivery.holder)


def _needs_start(core: Core, delivery: DeliveryState, handover: LeaseRelease) -> bool:
    if handover.wake_ms is None:
        return False
    wakes = core.now_ms() - WAKING_MS < delivery.alarm_ms <= handover.wake_ms + MARGIN_MS
    return not wakes


def _release(
    core: Core,
    delivery: DeliveryState,
    holder: str,
    handover: LeaseRelease,
    generation: int | None,
    starting: bool,
) -> Update:
    due_ms, wake_ms, blocked = handover.due_ms, handover.wake_ms, handover.blocked
    changes: dict[str, Value] = {
        "state": "delivering" if due_ms is None else "retrying",
        "marks": handover.marks_ms,
        "dues": handover.dues_ms,
        "kept_until": handover.kept_until_ms,
        "blocks": int(handover.blocks),
        "looked": handover.looked_ms,
        "posted": handover.posted_ms,
    }
    if handover.full_ms:
        changes["bucket_full"] = handover.full_ms
    removed, seen = ["holder", "held_until"], {"delays": delivery.delays}
    slow = handover.slowness
    if slow != (delivery.slow_until_ms, delivery.slow_for_ms):
        if slow.until_ms:
            changes |= {"slow_until": slow.until_ms, "slow_for": slow.for_ms}
        else:
            removed += ["slow_until", "slow_for"]
    circuit = handover.circuit
    if circuit is not None:
        changes["breaker"] = packed(circuit)
        if circuit.error:
            changes["breaker_error"] = circuit.error
    if handover.probe_due_ms:
        changes["probe_due"] = handover.probe_due_ms
    elif delivery.probe_due_ms:
        removed.append("probe_due")
    if circuit is None and delivery.circuit != Circuit():
        removed.append("breaker")
    if delivery.circuit.error and not (circuit and circuit.error):
        removed.append("breaker_error")
    if delivery.delays and handover.delayed_ms is None:
        removed.append("delays")
    if handover.clean_ms:
        changes["clean"] = handover.clean_ms
        seen["late"] = delivery.late
    if due_ms is None:
        removed += ["next_due", "probe_sent", "last_error"]
    else:
        changes |= {"next_due": due_ms, "probe_sent": handover.sent_ms}
        changes["last_error"] = handover.error
    if blocked:
        removed.append("again")
    if generation is not None and wake_ms is None:
        removed.append("alarm")
    elif wake_ms is not None and (generation is not None or starting):
        changes["alarm"] = wake_ms
    if generation is None:
        seen["alarm"] = delivery.alarm_ms
    if starting:
        changes["starts"] = delivery.starts + 1
    return delivery_items.update(
        core,
        delivery,
        set=changes,
        remove=removed,
        holder=holder,
        seen=seen,
        conditions=[f"attribute_not_exists({'hurried' if blocked else 'again'})"],
    )
