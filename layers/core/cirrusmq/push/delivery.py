"""Delivering a subscription's messages to its URL, and retrying when it fails.

Parcels stay until TTL removes them, so that a repeated fan-out finds their keys taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec.structs import replace

from cirrusmq.access import shares
from cirrusmq.model.breaker import Circuit
from cirrusmq.push import poster_lease
from cirrusmq.push.blocking_queue import BlockingFeed
from cirrusmq.push.independent_queue import IndependentFeed
from cirrusmq.push.lease_session import Turn, post_all
from cirrusmq.push.pending import Push, push_of
from cirrusmq.push.post_queue import Feed
from cirrusmq.push.poster_lease import Acquired, LeaseRelease
from cirrusmq.push.scan_pending import Look
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.recent_ids import Recent
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.queries import read_page
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.delivery import rules as delivery_rules
from cirrusmq.subscriptions.delivery.rules import DeliveryState

ROUNDS = 1_500
"""Rounds of one execution, of nine events each; 25,000 events would fail it."""
SLEEP_MS = 2_000
"""Shorter waits are slept out by an execution: cheaper than transitions, and exact."""
EARLY_MS = 500
"""Time before the due time at which an execution begins its next round, or up to a second more."""
HOPS = 64
"""Invocations in a row that continue one without time left; after them the sweep starts one."""
LATER_MS = (10_000, 20_000)
"""Delay of a round, drawn between the two, if the account's share is in use."""
_TRIES = 8


class LeftToOthers(Recent):
    """Ids of subscriptions that another worker served when this environment last tried to."""


class _RoundResult(NamedTuple):
    """How an invocation left its subscription; all fields are unset if it lost the lease."""

    due_ms: int | None = None
    more_from: str | None = None
    """First key of messages left to be posted, for which there was no time."""
    posted: bool = False
    slow: bool = False
    """True if the subscription is slow now."""


def deliver(push: Push) -> dict[str, Any] | None:
    """Posts until there is nothing to post now, or time is up.

    If another worker holds the lease, it is asked to scan again. The lease is tried before the
    state is read, unless this environment found it taken, or the subscription slow, the last time:
    a write that is refused costs five reads.

    Returns the event for `push_slow` (`waiting`), or None if there is nothing for it.
    """
    core, holder = push.core, f"push/{push.invocation_id}"
    subscription_id = push.subscription.id
    if push.delayed:
        delivery_items.note_delayed(core, subscription_id)
    if not push.takes_slow and shares.is_slow(core, push.subscription.account):
        return _passed_on(push)
    delivery: DeliveryState | None = delivery_rules.unread(push.subscription)
    if subscription_id in core.memory(LeftToOthers):
        delivery = delivery_items.read(core, subscription_id)
    for _ in range(_TRIES):
        if delivery is None:
            return None
        if delivery.held(core.now_ms(), core.clock.scale) and not delivery.paused:
            core.memory(LeftToOthers).add(subscription_id)
            if push.wake == "hurried":
                delivery = poster_lease.request_hurry(core, delivery)
            else:
                delivery = poster_lease.request_look(core, delivery, push.start)
            continue
        if delivery.paused or (_is_blocked(push, delivery) and not push.wake):
            core.memory(LeftToOthers).add(subscription_id)
            return None  # resuming, or its execution when it wakes, scans everything
        if delivery.slow(core.now_ms()) and not push.takes_slow:
            core.memory(LeftToOthers).add(subscription_id)
            return _passed_on(push)
        begun_ms = core.now_ms()
        acquired = poster_lease.acquire(
            *(core, delivery, holder),
            blocked_too=bool(push.wake) or not push.blocks,
            slow_too=push.takes_slow,
            open_too=bool(push.wake) or push.subscription.breaker is None,
        )
        if acquired is None:
            return None
        if acquired.mine:
            core.memory(LeftToOthers).discard(subscription_id)
            return _post_and_continue(push, acquired, holder, begun_ms)
        delivery = acquired.delivery
    return None


def _passed_on(push: Push) -> dict[str, Any]:
    """Returns this invocation's event for another one; delayed messages are already noted."""
    return delivery_rules.waiting(
        push.subscription, push.start, push.partitions, push.hops, push.wake
    )


def _post_and_continue(
    push: Push, acquired: Acquired, holder: str, begun_ms: int
) -> dict[str, Any] | None:
    """Posts as the holder, and leaves the rest, if there is any, to a new invocation.

    Returns the rest if it is for `push_slow`.
    """
    worked = _work(push, acquired, holder, begun_ms, None)
    got_on = worked.posted or push.shared_until_ms is not None
    if worked.more_from is None or not got_on or push.hops >= HOPS:
        return None
    hops = push.hops + 1
    rest = delivery_rules.waiting(push.subscription, worked.more_from, hops=hops)
    if worked.slow:
        return rest
    delivery_items.notify(push.core, rest)
    return None


def retry(push: Push, given: dict[str, Any]) -> dict[str, Any]:
    """Runs one round of an execution. Returns what the execution does next."""
    core, rounds = push.core, given["rounds"] + 1
    core.wait_until(min(given["due_ms"], core.now_ms() + SLEEP_MS))
    following = {**given, "rounds": rounds}
    with shares.posting(core, push.subscription.account, push.left_ms) as share:
        if not share.admitted and rounds <= ROUNDS:
            return _later(push, following)
        due_ms = _round(replace(push, share=share), int(given["generation"]), rounds)
    return {"action": "done"} if due_ms is None else _wait(core, due_ms, following)


def _later(push: Push, following: dict[str, Any]) -> dict[str, Any]:
    """Returns the next step of an execution that may not post now: it waits, or has a successor.

    share in use   #1 waits ── 30 s overdue: the sweep starts #2 ── #1 wakes: ends ── #2 waits
    """
    core = push.core
    delivery = delivery_items.read(core, push.subscription.id)
    if delivery is None or delivery.starts > following["generation"]:
        return {"action": "done"}
    wait_ms = core.random.uniform(*LATER_MS) * core.clock.scale
    return _wait(core, core.now_ms() + int(wait_ms), following)


def _round(push: Push, number: int, rounds: int) -> int | None:
    """Posts due messages as the execution of this number. Returns its next round, or None."""
    core, holder = push.core, f"{number}/{push.invocation_id}"
    delivery = delivery_items.read(core, push.subscription.id)
    for _ in range(_TRIES):
        if delivery is None or delivery.generation > number:
            return None
        if delivery.paused:
            poster_lease.end_execution(core, delivery)
            return None
        if delivery.held(core.now_ms(), core.clock.scale):
            if delivery.holder.startswith(f"{number}/"):  # a round that this one repeats
                return delivery.held_until_ms
            delivery = poster_lease.leave_to_holder(core, delivery)
            continue
        if rounds > ROUNDS:
            _start_anew(push, delivery)
            return None
        begun_ms = core.now_ms()
        acquired = poster_lease.acquire(core, delivery, holder, number)
        if acquired is None:
            return None
        if acquired.mine:
            worked = _work(push, acquired, holder, begun_ms, number)
            return worked.due_ms if worked.more_from is None else 0
        delivery = acquired.delivery
    return None


def resume_if_stuck(core: Core, delivery: DeliveryState, *, keeps: bool) -> bool:
    """Starts a worker if none runs. Returns True if a message was overdue, or a worker died.

    Besides, it reads messages that were delivered since the last scan, so that later scans begin
    behind them, and if it `keeps` messages, also messages whose event was lost.
    """
    if delivery.paused:
        return False
    now_ms, scale = core.now_ms(), core.clock.scale
    stuck, passed = delivery.stuck(now_ms, scale), _has_passed(delivery)
    if delivery.held(now_ms, scale) or not (stuck or passed or keeps):
        return False
    push = push_of(core, delivery)
    if push is None:
        return False
    blocked = _is_blocked(push, delivery)
    if stuck and blocked:
        _start_anew(push, delivery)
    elif stuck or (not blocked and (passed or _has_some(push, delivery))):
        waiting = delivery_rules.waiting(push.subscription)
        delivery_items.notify(core, waiting, slow=delivery.slow(now_ms))
    return stuck


def _work(
    push: Push, acquired: Acquired, holder: str, begun_ms: int, generation: int | None
) -> _RoundResult:
    """Posts as the holder until there is nothing to post now, then releases the lease.

    An execution sleeps out short waits, since its caller waits for it anyway.
    """
    core, delivery = push.core, acquired.delivery
    turn = Turn(push, acquired, holder, begun_ms)
    executing = generation is not None
    feed = _feed(push, acquired, due_alone=executing)
    if push.wake == "hurried" or delivery.hurried:
        feed.hurry()
        turn.hurry()
    patience_ms = SLEEP_MS if executing else 0
    while True:
        has_all = post_all(turn, feed)
        if turn.lost:
            return _RoundResult()
        probe_ms = turn.probe_ms(feed)
        if probe_ms is not None and probe_ms <= core.now_ms() + patience_ms and turn.may_go_on:
            core.wait_until(probe_ms)
            continue
        first = feed.first_due()
        if first is not None and first.due_ms <= core.now_ms() + patience_ms and turn.may_post:
            core.wait_until(first.due_ms)
            feed.resume()
            continue
        blocked = first is not None and push.blocks
        delayed_ms = feed.next_delayed_ms()
        wakes = delayed_ms is not None and delayed_ms <= core.now_ms() + patience_ms
        if delayed_ms is not None and wakes and turn.may_post and not blocked:
            core.wait_until(delayed_ms)
            feed.look_again("")
            continue
        # While the breaker is open, an execution tries the next message, and reads all again.
        has_all = (has_all and turn.may_post) or probe_ms is not None
        more_from = None if has_all else feed.next_key()
        now_ms = core.now_ms()
        slow = delivery_rules.judge(delivery, now_ms, posted=feed.posted, was_slow=turn.is_slow)
        handover = replace(
            feed.handover(),
            full_ms=turn.pace.handed_ms if turn.pace else 0,
            delayed_ms=delayed_ms,
            slowness=slow,
            circuit=turn.circuit,
        )
        if (circuit := turn.open_circuit) is not None:
            handover = _while_open(handover, circuit, probe_ms, now_ms)
        released = poster_lease.release(core, delivery, holder, handover, generation)
        if released.ending == "again":
            requested = turn.take_request()
            if requested is not None:
                delivery = replace(delivery, delays=requested.delays)
                feed.answer(requested)
                continue
        if released.ending != "released":
            return _RoundResult()
        if released.starts is not None:
            _start(push, released.starts, handover.wake_ms or 0)
        if turn.is_slow and delivery_rules.is_demoted(delivery, now_ms):
            shares.note_demotion(core, push.subscription.account)
        return _RoundResult(
            due_ms=handover.wake_ms,
            more_from=more_from,
            posted=feed.posted,
            slow=now_ms < slow.until_ms,
        )


def _feed(push: Push, acquired: Acquired, *, due_alone: bool) -> Feed:
    """Returns the message source of the subscription's policy.

    due_alone: new messages have invocations of their own, unless they are blocked.
    """
    if acquired.delivery.probe_due_ms:
        due_alone = False  # messages that came since the breaker opened have no invocation
    if push.blocks:
        return BlockingFeed(push, acquired.delivery, push.start, dirty=acquired.dirty)
    return IndependentFeed(
        push, acquired.delivery, push.start, dirty=acquired.dirty, due_alone=due_alone
    )


def _while_open(
    handover: LeaseRelease, circuit: Circuit, probe_ms: int | None, now_ms: int
) -> LeaseRelease:
    """Returns the state left by a session whose breaker is open: nothing is due before its time."""
    due_ms = handover.due_ms
    if probe_ms is not None:
        sent_ms = handover.sent_ms or now_ms
        return replace(
            handover, due_ms=probe_ms, probe_due_ms=probe_ms, error=circuit.error, sent_ms=sent_ms
        )
    return handover if due_ms is None else replace(handover, due_ms=max(due_ms, circuit.probe_ms))


def _start_anew(push: Push, delivery: DeliveryState) -> None:
    starts = poster_lease.start_anew(push.core, delivery)
    if starts is not None:
        _start(push, starts, push.core.now_ms())


def _start(push: Push, starts: int, due_ms: int) -> None:
    """Starts an execution that waits until a message is due.

    Its name has the time in it: a table that was restored counts its starts a second time.
    """
    core = push.core
    given = {
        **delivery_rules.place_of(push.subscription),
        "generation": starts,
        "rounds": 0,
    }
    name = f"{push.subscription.id}-{starts}-{core.now_ms()}"
    core.start_execution(name, _wait(core, due_ms, given))


def _is_blocked(push: Push, delivery: DeliveryState) -> bool:
    """Returns True if a message that failed, or the open breaker, holds the others back."""
    if delivery.probe_due_ms and push.subscription.breaker is not None:
        return True
    return delivery.state == "retrying" and push.blocks


def _has_passed(delivery: DeliveryState) -> bool:
    """Returns True if a message was posted since the last scan, or too shortly before it."""
    return delivery.looked_ms < delivery.posted_ms + delivery_rules.SETTLED_MS


def _has_some(push: Push, delivery: DeliveryState) -> bool:
    """Returns True if a parcel is behind the clean keys, of a lost event, since none was posted."""
    core, look = push.core, Look(push, delivery, "", ())
    for partition in push.all_partitions:
        pk, start = partition_key(PARCELS, push.source.id, partition), look.start_of(partition)
        if read_page(core, pk, start, look.until, 1, consistent=False).parcels:
            return True
    return False


def _wait(core: Core, due_ms: int, following: dict[str, Any]) -> dict[str, Any]:
    """Returns a wait of whole seconds, with time to begin the round, which sleeps for the rest."""
    seconds = max(0, due_ms - core.now_ms() - EARLY_MS) // 1000
    action = "wait" if seconds else "again"
    return {"action": action, "wait_seconds": seconds, "retry": {**following, "due_ms": due_ms}}
