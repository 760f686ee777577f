"""Pushing: delivering a subscription's messages to its URL, and retrying when it fails.

A parcel's message is claimed as a receiver claims it, posted, and marked: delivered, due again, or
dropped. Parcels stay until TTL removes them, so that a repeated fan-out finds their keys taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cirrusmq import confirmations, schedules
from cirrusmq.attempts import Attempt, attempt_all, due_after
from cirrusmq.core import Core
from cirrusmq.dead_letters import dead_letter_queue, move_to_queue
from cirrusmq.parcel import Parcel
from cirrusmq.pushes import Push, expiring, has_waiting, next_due_ms, next_messages, probe_sent_ms
from cirrusmq.schedules import Schedule
from cirrusmq.subscriptions import cached_subscriptions
from cirrusmq.topic import Subscription

TOGETHER = 16
"""Messages posted side by side where their order does not matter."""
ROUNDS = 1_500
"""Rounds of one execution, of nine events each; 25,000 events would fail it."""
SLEEP_MS = 2_000
"""Shorter waits are slept out here: cheaper than transitions, and exact."""
LONGEST_WAIT_MS = 30_000
"""Where messages do not wait for each other: another one may fail and be due sooner."""


def notify(core: Core, subscription: Subscription, start: str = "") -> None:
    """Have what waits for a subscription delivered, soon and elsewhere.

    With `start` only from that sort key on, so that a message costs no look at those before it.
    """
    core.invoke("push", {"deliver": {**_place(subscription), "start": start}})


def deliver(push: Push) -> None:
    """Deliver what waits, until nothing does, something fails, or time is up."""
    if not push.start:
        _save_expiring(push)
    while True:
        schedule = schedules.read(push.core, push.subscription.id)
        if schedule is None or (schedule.state == "retrying" and push.blocks):
            return
        if push.core.now_ms() >= push.deadline_ms:
            notify(push.core, push.subscription)
            return
        if not push.in_order:
            if not _deliver_together(push, schedule):
                return
        elif not _deliver_in_order(push, schedule):
            return


def retry(push: Push, given: dict[str, Any]) -> dict[str, Any]:
    """One round of a retrying subscription; answers what its execution does next."""
    core = push.core
    schedule = schedules.read(core, push.subscription.id)
    if schedule is None or _stale(schedule, given["generation"]):
        return {"action": "done"}
    following = {**given, "rounds": given.get("rounds", 0) + 1}
    if following["rounds"] > ROUNDS:
        begin_retrying(push, schedule, schedule.next_due_ms, schedule.last_error or "")
        return {"action": "done"}
    if not schedules.hold(core, schedule, push.invocation_id, schedules.LOOK_MS):
        return _wait(schedule.held_until_ms - core.now_ms(), following)
    while core.now_ms() < push.deadline_ms:
        due_ms = next_due_ms(push, schedule)
        if due_ms is None:
            return _calm_down(push, schedule)
        wait_ms = due_ms - core.now_ms()
        if wait_ms > SLEEP_MS:
            schedules.release(core, schedule, push.invocation_id, due_ms)
            most_ms = wait_ms if push.blocks else min(wait_ms, LONGEST_WAIT_MS)
            return _wait(most_ms, following)
        core.wait_until(due_ms)
        latest_ms = _hold_to_post(push, schedule)
        if latest_ms is None:
            return {"action": "done"}
        chosen = next_messages(push, schedule, 1 if push.blocks else TOGETHER)
        attempts = _attempt(push, chosen, latest_ms, alone=push.blocks)
        failed = [attempt for attempt in attempts if attempt.error is not None]
        if failed:
            _note(push, schedule, failed, push.invocation_id)
        elif attempts and push.blocks:
            return _calm_down(push, schedule)
    schedules.release(core, schedule, push.invocation_id)
    return _wait(0, following)


def begin_retrying(push: Push, schedule: Schedule, due_ms: int, error: str) -> None:
    """Go over to a new generation and start its execution; nothing where another one did.

    Where the start fails, the sweep finds the schedule due and nobody at it.
    """
    sent_ms = probe_sent_ms(push, schedule)
    started = schedules.start_retrying(push.core, schedule, due_ms, error, sent_ms)
    if started is not None:
        push.core.start_execution(
            f"{started.subscription_id}-{started.generation}",
            {
                "retry": {
                    **_place(push.subscription),
                    "generation": started.generation,
                    "rounds": 0,
                }
            },
        )


def send_confirmation(core: Core, given: dict[str, Any], request_id: str) -> None:
    """Post a subscription's token to its endpoint; the owner can ask for another one."""
    from cirrusmq.outbound import requests

    for subscription in cached_subscriptions(core, given["topic_id"]):
        if subscription.name != given["subscription"] or subscription.endpoint is None:
            continue
        path = f"/topics/{subscription.topic}/subscriptions/{subscription.name}/confirm"
        headers, body = requests.confirmation(
            account=subscription.account,
            topic=subscription.topic,
            subscription=subscription.name,
            token=given["token"],
            confirm_url=core.settings.public_url + path,
            expires_ms=given["expires_ms"],
            secret=confirmations.signing_secret(core, subscription.id),
            request_id=request_id,
            now_s=core.real_seconds(),
        )
        core.post(subscription.endpoint, headers, body)


def _save_expiring(push: Push) -> None:
    """Move what expires soon to the dead-letter queue: nothing is lost in silence.

    A message that waits behind a probe may never be attempted in its life of a day.
    """
    core, target = push.core, None
    schedule = schedules.read(core, push.subscription.id)
    for parcel, places in expiring(push, schedule) if schedule is not None else ():
        target = target or dead_letter_queue(core, push.source)
        if target is None:
            return
        for place in places:
            now_ms = core.now_ms()
            if not parcel.held(place, now_ms):
                left = move_to_queue(core, push.source, parcel, place, target, "retries", now_ms)
                parcel = left or parcel


def _deliver_together(push: Push, schedule: Schedule) -> bool:
    """Attempt some messages side by side; whether more may wait."""
    chosen = next_messages(push, schedule, TOGETHER)
    attempts = _attempt(push, chosen, push.deadline_ms)
    failed = [attempt for attempt in attempts if attempt.error is not None]
    if not failed:
        # What is put from now on has an invocation of its own.
        return sum(len(places) for _, places in chosen) == TOGETHER
    due_ms = due_after(failed, push.core.now_ms())
    if schedule.state == "delivering":
        begin_retrying(push, schedule, due_ms, failed[0].error or "")
    else:
        _note(push, schedule, failed)
    return not push.blocks


def _deliver_in_order(push: Push, schedule: Schedule) -> bool:
    """Attempt messages one after the other as the holder; whether to look again."""
    while push.core.now_ms() < push.deadline_ms:
        latest_ms = _hold_to_post(push, schedule)
        if latest_ms is None:
            return False  # who holds it looks again after releasing it
        chosen = next_messages(push, schedule, 1)
        attempts = _attempt(push, chosen, latest_ms, alone=True)
        if not attempts:
            break
        if attempts[0].error is not None:
            due_ms = due_after(attempts, push.core.now_ms())
            begin_retrying(push, schedule, due_ms, attempts[0].error)
            return False
    # What fan-out put in between found a holder, and leaves it to this one.
    return schedules.release(push.core, schedule, push.invocation_id) and has_waiting(
        push, schedule
    )


def _attempt(
    push: Push, chosen: Sequence[tuple[Parcel, list[int]]], latest_ms: int, *, alone: bool = False
) -> list[Attempt]:
    return attempt_all(
        push.core, push.subscription, push.source, chosen, alone=alone, latest_ms=latest_ms
    )


def _calm_down(push: Push, schedule: Schedule) -> dict[str, Any]:
    """Stop retrying and let what waits be delivered as usual."""
    if schedules.stop_retrying(push.core, schedule, push.invocation_id) and has_waiting(
        push, schedule
    ):
        notify(push.core, push.subscription)
    return {"action": "done"}


def _hold_to_post(push: Push, schedule: Schedule) -> int | None:
    """Be the only one who posts; until when a post may start, None where another one is."""
    core, begun_ms = push.core, push.core.now_ms()
    if not schedules.hold(core, schedule, push.invocation_id, schedules.hold_ms(core)):
        return None
    return min(push.deadline_ms, schedules.latest_post_ms(core, begun_ms))


def _note(push: Push, schedule: Schedule, failed: list[Attempt], holder: str | None = None) -> None:
    due_ms = due_after(failed, push.core.now_ms())
    error = failed[0].error or ""
    sent_ms = probe_sent_ms(push, schedule)
    schedules.note_failure(push.core, schedule, due_ms, error, sent_ms, holder)


def _wait(wait_ms: int, following: dict[str, Any]) -> dict[str, Any]:
    """Whole seconds, rounded down: what is left of them is slept out in the next round."""
    seconds = max(0, wait_ms) // 1000
    action = "wait" if seconds else "again"
    return {"action": action, "wait_seconds": seconds, "retry": following}


def _stale(schedule: Schedule, generation: int) -> bool:
    return schedule.state != "retrying" or schedule.generation != generation


def _place(subscription: Subscription) -> dict[str, Any]:
    return {"topic_id": subscription.topic_id, "subscription": subscription.name}
