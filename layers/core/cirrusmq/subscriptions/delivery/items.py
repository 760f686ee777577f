"""The items of delivery states, and the notice that starts a worker.

They are in the message table under separate partition keys, so that the sweep finds all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from cirrusmq.model.breaker import Circuit, unpack
from cirrusmq.model.topic import Subscription
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import (
    ConditionFailed,
    Item,
    key,
    number_in,
    shard_key,
    shard_keys,
)
from cirrusmq.subscriptions.delivery.rules import UNTRIED_MS, DeliveryState

SHARDS = 128
"""Partition keys of delivery states: a busy subscription writes its own 200 times a second, and no
key should hold more than four such states out of a hundred."""
Value: TypeAlias = int | str | tuple[int, ...]
"""The value of an attribute."""


def read(core: Core, subscription_id: str) -> DeliveryState | None:
    """Returns the delivery state now, strongly consistent, or None if the subscription is gone."""
    pk = state_key(subscription_id)["pk"]["S"]
    item = core.store.get(core.tables.messages, pk, subscription_id)
    return None if item is None else read_item(item)


def read_all(core: Core) -> Iterator[DeliveryState]:
    """Yields the delivery states of all subscriptions of the deployment, keys read in parallel.

    Eventually consistent, at half the units: every use is a hint or has its condition, and a state
    that one read misses is in the next one.
    """

    def items_of(pk: str) -> list[Item]:
        return list(core.store.query_all(core.tables.messages, pk, consistent=False))

    for items in core.in_parallel(items_of, shard_keys("S", SHARDS)):
        for item in items:
            yield read_item(item)


def state_key(subscription_id: str) -> Item:
    """Returns the key of a subscription's delivery state."""
    return key(shard_key("S", subscription_id, SHARDS), subscription_id)


def read_item(item: Item) -> DeliveryState:
    """Returns the delivery state in an item."""
    number = partial(number_in, item)

    def numbers(name: str) -> tuple[int, ...]:
        return tuple(int(each["N"]) for each in item.get(name, {"L": []})["L"])

    def text(name: str) -> str:
        return str(item.get(name, {"S": ""})["S"])

    return DeliveryState(
        account=text("account"),
        topic=text("topic"),
        subscription=text("subscription"),
        subscription_id=item["sk"]["S"],
        state="retrying" if text("state") == "retrying" else "delivering",
        starts=number("starts"),
        generation=number("generation"),
        alarm_ms=number("alarm"),
        holder=text("holder"),
        held_until_ms=number("held_until"),
        again=text("again") if "again" in item else None,
        next_due_ms=number("next_due"),
        last_error=text("last_error") or None,
        clean_ms=numbers("clean"),
        marks_ms=numbers("marks"),
        dues_ms=numbers("dues"),
        kept_until_ms=number("kept_until"),
        blocks=number("blocks") > 0,
        looked_ms=number("looked"),
        posted_ms=number("posted"),
        paused=number("paused") > 0,
        rate=number("rate"),
        full_ms=number("bucket_full"),
        hurried=number("hurried") > 0,
        delays=number("delays"),
        late=number("late"),
        slow_until_ms=number("slow_until"),
        slow_for_ms=number("slow_for"),
        circuit=(
            unpack(numbers("breaker"), text("breaker_error")) if "breaker" in item else Circuit()
        ),
        probe_due_ms=number("probe_due"),
    )


def notify(core: Core, first: dict[str, Any], *others: dict[str, Any], slow: bool = False) -> None:
    """Starts a worker that delivers waiting messages of these subscriptions (`waiting`).

    slow: True if they are known to be slow; else `push` finds out.
    """
    event = {"deliver": first, **({"others": others} if others else {})}
    if slow:
        core.invoke("push_slow", event)
    else:
        core.invoke("push", event)


def creation(core: Core, subscription: Subscription) -> dict[str, Any]:
    """Returns a transaction's write of a new subscription's delivery state."""
    item = {
        **state_key(subscription.id),
        "account": {"S": subscription.account},
        "topic": {"S": subscription.topic},
        "subscription": {"S": subscription.name},
        "state": {"S": "delivering"},
        "generation": {"N": "0"},
        "starts": {"N": "0"},
        "slow_until": {"N": str(UNTRIED_MS)},
        **_wired(_bounds_of(subscription)),
    }
    return {"Put": {"TableName": core.tables.messages, "Item": item}}


def removal(core: Core, subscription: Subscription) -> dict[str, Any]:
    """Returns a transaction's delete of a deleted subscription's delivery state."""
    return {"Delete": {"TableName": core.tables.messages, "Key": state_key(subscription.id)}}


def bounds(core: Core, subscription: Subscription) -> dict[str, Any]:
    """Returns a transaction's write of a pause and of the rate, which posters read uncached."""
    given = _bounds_of(subscription)
    removed = [name for name in ("paused", "rate") if name not in given]
    parts = [f"SET {', '.join(f'{name} = :{name}' for name in given)}"] if given else []
    parts += [f"REMOVE {', '.join(removed)}"] if removed else []
    write = {
        "TableName": core.tables.messages,
        "Key": state_key(subscription.id),
        "UpdateExpression": " ".join(parts),
        "ConditionExpression": "attribute_exists(pk)",
    }
    if given:
        values = {f":{name}": value for name, value in _wired(given).items()}
        write["ExpressionAttributeValues"] = values
    return {"Update": write}


def note_late(core: Core, subscription_id: str) -> None:
    """Makes scans start at the beginning again: a late parcel may be before keys that they passed.

    scan:    reads the state ── reads the partitions ───────────── clean = k ? no: late
    fan-out:                       puts a parcel before k ── late + 1, no clean
    """
    _note(core, subscription_id, "ADD late :one REMOVE clean")


def note_delayed(core: Core, subscription_id: str) -> None:
    """Makes holders of the lease scan for messages that are to be posted later.

    A:  holds ── looks: nothing ─────────────────── release? delays has changed: looks again
    fan-out:                     puts m ── delays + 1
    """
    _note(core, subscription_id, "ADD delays :one")


def _note(core: Core, subscription_id: str, expression: str) -> None:
    request = {
        "TableName": core.tables.messages,
        "Key": state_key(subscription_id),
        "UpdateExpression": expression,
        "ConditionExpression": "attribute_exists(pk)",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    core.store.try_write("UpdateItem", request)  # unless the subscription was deleted


class Update(NamedTuple):
    """The result of an update."""

    written: bool
    found: DeliveryState | None
    """The state before the write, or the state that refused it; None if it is gone."""
    repeated: bool = False
    """True if an update was refused and the SDK had sent it more than once."""

    @property
    def refused_by(self) -> DeliveryState | None:
        """The state that refused the update; None if it was written, or the state is gone."""
        return None if self.written else self.found


def update(
    core: Core,
    delivery: DeliveryState,
    *,
    set: Mapping[str, Value] = {},
    remove: Sequence[str] = (),
    holder: str | None = None,
    seen: Mapping[str, int] = {},
    conditions: Sequence[str] = (),
    values: Mapping[str, Value] = {},
) -> Update:
    """Sets and removes attributes, if all conditions hold.

    holder: the holder that must have the lease; None for any. seen: numbers that must be as they
    were read, 0 for a missing attribute. conditions: may use the values that are set, as
    `:<attribute>`, and further `values`.
    """
    wanted = list(conditions)
    given = {f":{name}": _wire(value) for name, value in {**set, **values}.items()}
    if holder is not None:
        wanted.append("holder = :present_holder")
        given[":present_holder"] = {"S": holder}
    for name, number in seen.items():
        wanted.append(f"{name} = :{name}_seen" if number else f"attribute_not_exists({name})")
        if number:
            given[f":{name}_seen"] = {"N": str(number)}
    # `state` is a reserved word.
    changes = [f"{'#state' if name == 'state' else name} = :{name}" for name in set]
    parts = [f"SET {', '.join(changes)}"] if set else []
    parts += [f"REMOVE {', '.join(remove)}"] if remove else []
    change, condition = " ".join(parts), " AND ".join(wanted)
    request = {
        "TableName": core.tables.messages,
        "Key": state_key(delivery.subscription_id),
        "UpdateExpression": change,
        "ConditionExpression": condition,
        "ExpressionAttributeValues": given,
        "ReturnValues": "ALL_OLD",
    }
    if "#state" in change + condition:
        request["ExpressionAttributeNames"] = {"#state": "state"}
    try:
        item = core.store.write("UpdateItem", request)
    except ConditionFailed as failed:
        found = None if failed.item is None else read_item(failed.item)
        return Update(written=False, found=found, repeated=failed.repeated)
    return Update(written=True, found=None if item is None else read_item(item))


def _bounds_of(subscription: Subscription) -> dict[str, int]:
    """Returns the bounds that a subscription has."""
    given = {"paused": int(subscription.paused), "rate": subscription.rate or 0}
    return {name: value for name, value in given.items() if value}


def _wired(values: Mapping[str, Value]) -> dict[str, Any]:
    return {name: _wire(value) for name, value in values.items()}


def _wire(value: Value) -> dict[str, Any]:
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, int):
        return {"N": str(value)}
    return {"L": [{"N": str(number)} for number in value]}
