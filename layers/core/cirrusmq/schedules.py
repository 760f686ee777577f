"""The schedule of an HTTP subscription: whether it delivers or retries, and who may.

    DELIVERING ──(an attempt fails; generation + 1)──> RETRYING, one execution named after it
        ^                                                  │
        └──────(the probe is accepted, or none is left)────┘

Only who carries the present generation delivers while it retries, and only while it is the holder.
The item lies in the message table under 16 partition keys, so that the sweep finds all of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from cirrusmq.core import Core
from cirrusmq.storage.shards import shard_key, shard_keys
from cirrusmq.storage.store import ConditionFailed, Item, key
from cirrusmq.topic import Subscription

HOLD_MS = 30_000
"""Real milliseconds that who posts is the only one."""
POST_MS = 17_000
"""Real milliseconds that a post, of 15 s at most, and writing down what became of it may take."""
LOOK_MS = 10_000
"""Milliseconds of the core's clock that who looks for what is due next is the only one."""
LATE_MS = 30_000
"""A record fanned out so long after its publishing is late."""
SETTLED_MS = 2 * LATE_MS
"""Before what was published so long ago, only late parcels come in."""
State: TypeAlias = Literal["delivering", "retrying"]


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription's schedule as it was read. Times are in milliseconds since the epoch."""

    account: str
    topic: str
    subscription: str
    subscription_id: str
    state: State
    generation: int
    holder: str
    held_until_ms: int
    next_due_ms: int
    last_error: str | None
    probe_sent_ms: int
    clean_through: str
    """Nothing before this sort key is left to deliver."""
    late: int
    """How often a parcel came so late that it may lie before that key."""

    def stuck(self, now_ms: int) -> bool:
        """Whether it retries, is due, and nobody is at it."""
        late_ms = now_ms - max(self.next_due_ms, self.held_until_ms)
        return self.state == "retrying" and late_ms > HOLD_MS


def own_dead_letter_queue(subscription_id: str) -> str:
    """Name of the queue that is made for dead letters where none was named."""
    return f"dlq-{subscription_id}"


def creation(core: Core, subscription: Subscription) -> dict[str, Any]:
    """A transaction's write of the schedule of a new subscription."""
    item = {
        **_key(subscription.id),
        "account": {"S": subscription.account},
        "topic": {"S": subscription.topic},
        "subscription": {"S": subscription.name},
        "state": {"S": "delivering"},
        "generation": {"N": "0"},
    }
    return {"Put": {"TableName": core.tables.messages, "Item": item}}


def removal(core: Core, subscription: Subscription) -> dict[str, Any]:
    """A transaction's delete of the schedule of a deleted subscription."""
    return {"Delete": {"TableName": core.tables.messages, "Key": _key(subscription.id)}}


def read(core: Core, subscription_id: str) -> Schedule | None:
    """The schedule now, strongly consistent; None where the subscription is gone."""
    pk = _key(subscription_id)["pk"]["S"]
    item = core.store.get(core.tables.messages, pk, subscription_id)
    return None if item is None else _read(item)


def read_all(core: Core) -> Iterator[Schedule]:
    """The schedules of all subscriptions of the deployment."""
    for pk in shard_keys("S"):
        for item in core.store.query_all(core.tables.messages, pk):
            yield _read(item)


def hold_ms(core: Core) -> int:
    """How long who posts is the only one, on the core's clock: posts take real seconds."""
    return int(HOLD_MS * core.clock.scale)


def latest_post_ms(core: Core, begun_ms: int) -> int:
    """When the last post may start under a hold or lease that was asked for at `begun_ms`.

    A: asks for 30 s ── is told so late ───────────> 25 s later: a post would outlive its lease
    """
    return begun_ms + int((HOLD_MS - POST_MS) * core.clock.scale)


def hold(core: Core, schedule: Schedule, holder: str, most_ms: int) -> bool:
    """Become the one that delivers, for at most so long; whether nobody else is.

    A: holds until 12:00:30 ─── posts ───> 12:00:29 done
    B: 12:00:10 holder = A, in time ──> refused
    C: 12:00:31 A's time is over    ──> C holds; A's later writes find another holder
    """
    now_ms = core.now_ms()
    return _update(
        core,
        schedule,
        "SET holder = :holder, held_until = :until",
        {":holder": {"S": holder}, ":until": {"N": str(now_ms + most_ms)}},
        "(attribute_not_exists(holder) OR holder = :holder OR held_until < :now)",
        {":now": {"N": str(now_ms)}},
    )


def release(core: Core, schedule: Schedule, holder: str, next_due_ms: int | None = None) -> bool:
    """Stop being the one that delivers, until `next_due_ms` where something is due then."""
    update = "REMOVE holder, held_until"
    values: Item = {}
    if next_due_ms is not None:
        update = "SET next_due = :due " + update
        values[":due"] = {"N": str(next_due_ms)}
    return _update(core, schedule, update, values, "holder = :holder", {":holder": {"S": holder}})


def start_retrying(
    core: Core, schedule: Schedule, next_due_ms: int, error: str, probe_sent_ms: int
) -> Schedule | None:
    """Go over to retrying, with a new generation; None where another invocation did."""
    following = schedule.generation + 1
    changed = _update(
        core,
        schedule,
        "SET #state = :retrying, generation = :following, next_due = :due, "
        "last_error = :error, probe_sent = :sent REMOVE holder, held_until",
        {
            ":retrying": {"S": "retrying"},
            ":following": {"N": str(following)},
            ":due": {"N": str(next_due_ms)},
            ":error": {"S": error},
            ":sent": {"N": str(probe_sent_ms)},
        },
        names={"#state": "state"},
    )
    if not changed:
        return None
    return msgspec.structs.replace(
        schedule,
        state="retrying",
        generation=following,
        holder="",
        held_until_ms=0,
        next_due_ms=next_due_ms,
        last_error=error,
        probe_sent_ms=probe_sent_ms,
    )


def note_failure(
    core: Core,
    schedule: Schedule,
    next_due_ms: int,
    error: str,
    probe_sent_ms: int,
    holder: str | None = None,
) -> None:
    """Write down what is tried next, and why.

    A holder is one for `LOOK_MS` more: should it end here, others wait no longer than that.
    """
    values = {
        ":due": {"N": str(next_due_ms)},
        ":error": {"S": error},
        ":sent": {"N": str(probe_sent_ms)},
    }
    update, condition = "SET next_due = :due, last_error = :error, probe_sent = :sent", ""
    if holder is not None:
        update, condition = f"{update}, held_until = :until", "holder = :holder"
        values[":until"] = {"N": str(core.now_ms() + LOOK_MS)}
    _update(
        core,
        schedule,
        update,
        values,
        condition,
        None if holder is None else {":holder": {"S": holder}},
    )


def stop_retrying(core: Core, schedule: Schedule, holder: str) -> bool:
    """Go back to delivering; whether this one still was the holder of the present generation."""
    return _update(
        core,
        schedule,
        "SET #state = :delivering REMOVE holder, held_until, next_due, probe_sent",
        {":delivering": {"S": "delivering"}},
        "holder = :holder",
        {":holder": {"S": holder}},
        names={"#state": "state"},
    )


def note_clean(core: Core, schedule: Schedule, clean_through: str) -> None:
    """Scans need not start before this key any more, unless something came late meanwhile.

    scan: reads the schedule ── reads the partition ──────────────────────── clean = k ? no: late
    fan-out:                                         puts a parcel before k ── late + 1, no clean
    """
    _update(
        core,
        schedule,
        "SET clean = :clean",
        {":clean": {"S": clean_through}},
        "late = :late" if schedule.late else "attribute_not_exists(late)",
        {":late": {"N": str(schedule.late)}} if schedule.late else None,
    )


def note_late(core: Core, subscription_id: str) -> None:
    """Scans start at the beginning again: a late parcel may lie before what they passed."""
    request = {
        "TableName": core.tables.messages,
        "Key": _key(subscription_id),
        "UpdateExpression": "ADD late :one REMOVE clean",
        "ConditionExpression": "attribute_exists(pk)",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    with contextlib.suppress(ConditionFailed):  # the subscription was deleted
        core.store.write("UpdateItem", request)


def _update(
    core: Core,
    schedule: Schedule,
    update: str,
    values: Item,
    condition: str = "",
    condition_values: Item | None = None,
    names: dict[str, str] | None = None,
) -> bool:
    """Change the schedule if its generation is still the one that was read."""
    conditions = "generation = :generation" + (f" AND {condition}" if condition else "")
    request: dict[str, Any] = {
        "TableName": core.tables.messages,
        "Key": _key(schedule.subscription_id),
        "UpdateExpression": update,
        "ConditionExpression": conditions,
        "ExpressionAttributeValues": {
            ":generation": {"N": str(schedule.generation)},
            **values,
            **(condition_values or {}),
        },
    }
    if names:
        request["ExpressionAttributeNames"] = names
    try:
        core.store.write("UpdateItem", request)
    except ConditionFailed as failed:
        # A call that the SDK sent twice finds what its first try left.
        return failed.repeated and failed.item is not None and _applied(failed.item, values)
    return True


def _applied(item: Item, values: Item) -> bool:
    left = list(item.values())
    return bool(values) and all(value in left for value in values.values())


def _key(subscription_id: str) -> Item:
    return key(shard_key("S", subscription_id), subscription_id)


def _read(item: Item) -> Schedule:
    def number(name: str) -> int:
        return int(item.get(name, {"N": "0"})["N"])

    def text(name: str) -> str:
        return str(item.get(name, {"S": ""})["S"])

    return Schedule(
        account=text("account"),
        topic=text("topic"),
        subscription=text("subscription"),
        subscription_id=item["sk"]["S"],
        state="retrying" if text("state") == "retrying" else "delivering",
        generation=number("generation"),
        holder=text("holder"),
        held_until_ms=number("held_until"),
        next_due_ms=number("next_due"),
        last_error=text("last_error") or None,
        probe_sent_ms=number("probe_sent"),
        clean_through=text("clean"),
        late=number("late"),
    )
