"""The attributes of each kind of resource, by the structs of the contract.

The structs define the attributes, their ranges and defaults, so that a new attribute of a struct is
read, compared and written here, too.
"""

from __future__ import annotations

import json
from typing import Any, cast, get_args, get_type_hints

import msgspec

from cirrusmq.base.errors import CirrusMQError, InvalidParameter
from cirrusmq.base.names import (
    ACCOUNT_NAME,
    QUEUE_NAME,
    RECEIVER_NAME,
    SCHEDULE_NAME,
    SUBSCRIPTION_NAME,
    TOPIC_NAME,
    NameRule,
    check_name,
)
from cirrusmq.base.shapes import decode
from cirrusmq.base.timestamps import parse_time
from cirrusmq.filters.selection import compile_filter
from cirrusmq.model.described import with_given
from cirrusmq.model.queue import (
    Queue,
    QueueAttributes,
    QueueInput,
    ReceiverInput,
    change_attributes,
    create_attributes,
)
from cirrusmq.model.topic import (
    EARLIEST,
    LATEST,
    Subscription,
    SubscriptionInput,
    Topic,
    TopicAttributes,
    TopicInput,
    change_topic_attributes,
    create_subscription,
    over,
)
from cirrusmq.schedules.rules import check_rule
from cirrusmq.schedules.schedule import ScheduleInput, read_definition
from cirrusmq.webhooks.urls import check_endpoint
from cirrusmq_client import answers
from cirrusmq_local.declarations.resources import GRANTS, Attributes, Kind, Place

PERMISSIONS: dict[Kind, tuple[str, ...]] = {
    "grant": get_args(get_type_hints(answers.GrantState)["permission"]),
    "topic_grant": get_args(get_type_hints(answers.TopicGrantState)["permission"]),
}
_NAMES: dict[Kind, NameRule] = {
    "queue": QUEUE_NAME,
    "receiver": RECEIVER_NAME,
    "grant": ACCOUNT_NAME,
    "topic": TOPIC_NAME,
    "topic_grant": ACCOUNT_NAME,
    "subscription": SUBSCRIPTION_NAME,
    "schedule": SCHEDULE_NAME,
}
_SCHEDULED = ("queue", "topic", "cron", "time_zone", "every_seconds", "message", "missed")
"""Attributes of a schedule."""
_DEFAULT_RECEIVER = "default"


def check_place(place: Place) -> None:
    """Raises InvalidParameter if a resource of this kind may not have this name."""
    check_name("name", place.name, _NAMES[place.kind])
    if place.kind == "receiver" and place.name.lower() == _DEFAULT_RECEIVER:
        raise InvalidParameter("name", "must not be default, which is the queue itself")


def complete(place: Place, given: Attributes, topic: Attributes | None = None) -> Attributes:
    """Returns all attributes of a resource from the given ones, in the service's form.

    `topic`: attributes of a subscription's topic. Raises the service's error, InvalidParameter or
    InvalidFilter, with the parameter and its range.
    """
    match place.kind:
        case "queue":
            return _builtins(create_attributes(_decode(given, QueueInput)))
        case "topic":
            return _builtins(with_given(TopicAttributes(), _decode(given, TopicInput)))
        case "receiver":
            return _receiver(_decode(given, ReceiverInput))
        case "subscription":
            made = _subscription(place, given, topic or {}).attributes()
            return cast(Attributes, msgspec.to_builtins(made))
        case "grant" | "topic_grant":
            return _grant(place.kind, given)
        case "schedule":
            return _schedule(given)


def defaults(place: Place, attributes: Attributes) -> Attributes:
    """Returns the default attributes of such a resource, without required attributes."""
    if place.kind in GRANTS:
        return {}
    if place.kind == "schedule":
        return {"missed": "one", "time_zone": "UTC"}
    if place.kind != "subscription":
        return complete(place, {})
    needed = {name: attributes[name] for name in ("protocol", "endpoint") if name in attributes}
    plain = complete(place, {name: held for name, held in needed.items() if held is not None})
    return {name: held for name, held in plain.items() if name not in needed}


def differing(place: Place, attributes: Attributes) -> Attributes:
    """Returns the attributes that differ from their defaults."""
    usual = defaults(place, attributes)
    return {
        name: held for name, held in attributes.items() if name not in usual or usual[name] != held
    }


def of_answer(place: Place, answer: Attributes) -> Attributes:
    """Returns the attributes in an answer of the service, without ids, times and counts."""
    if place.kind in GRANTS:
        return {"permission": answer["permission"]}
    if place.kind == "schedule":
        return _schedule({name: answer[name] for name in _SCHEDULED if name in answer})
    if place.kind == "subscription":
        known = tuple(
            _subscription(
                place, {"protocol": answer["protocol"]} | _endpoint(answer), {}
            ).attributes()
        )
    else:
        known = tuple(complete(place, {}))
    return {name: answer.get(name) for name in known}


def changes(
    place: Place, before: Attributes, after: Attributes, topic: Attributes | None = None
) -> Attributes:
    """Returns the attributes to change; none if both mean the same.

    Raises InvalidParameter or InUse if an attribute cannot be changed.
    """
    changed = {name: held for name, held in after.items() if before.get(name) != held}
    if not changed:
        return {}
    match place.kind:
        case "queue":
            queue = Queue(
                account="",
                name=place.name,
                id="",
                attributes=msgspec.convert(dict(before), QueueAttributes),
                created_ms=0,
                modified_ms=0,
            )
            change_attributes(queue, _decode(changed, QueueInput), 0)
        case "topic":
            held = msgspec.convert(dict(before), TopicAttributes)
            change_topic_attributes(held, _decode(changed, TopicInput))
        case "receiver":
            raise InvalidParameter(next(iter(changed)), "is fixed when the receiver is created")
        case "subscription":
            return _subscription_changes(place, before, changed, topic or {})
        case "grant" | "topic_grant":
            pass
        case "schedule":
            return after  # a change replaces all of it
    return changed


def _subscription_changes(
    place: Place, before: Attributes, changed: dict[str, Any], topic: Attributes
) -> Attributes:
    given = {name: held for name, held in before.items() if held is not None}
    present = _subscription(place, given, topic)
    if present.protocol != changed.get("protocol", present.protocol):
        raise InvalidParameter("protocol", "is fixed when the subscription is created")
    wanted = over(present, _decode(changed, SubscriptionInput))
    if present.policy == wanted.policy:  # a default that is written out is still the default
        changed.pop("retry", None)
    return changed


def _subscription(place: Place, given: Attributes, topic: Attributes) -> Subscription:
    held = Topic(
        account="",
        name=place.parent,
        id="",
        attributes=msgspec.convert(dict(topic), TopicAttributes),
        created_ms=0,
        modified_ms=0,
    )
    subscription = create_subscription(held, place.name, _decode(given, SubscriptionInput))
    if subscription.protocol == "http" and subscription.endpoint is not None:
        # Only the deployment knows if http: is allowed, and which networks are.
        every = ("0.0.0.0/0", "::/0")
        check_endpoint(subscription.endpoint, http_allowed=True, allowed_networks=every)
    elif subscription.endpoint is not None:
        check_name("endpoint", subscription.endpoint, QUEUE_NAME)
    _check_start(subscription.start)
    return subscription


def _check_start(start: str) -> None:
    """Checks the form of a start; only the service knows if the time is in the log."""
    if start not in (LATEST, EARLIEST):
        parse_time("start", start)


def _receiver(given: ReceiverInput) -> Attributes:
    start = LATEST if isinstance(given.start, msgspec.UnsetType) else given.start
    _check_start(start)
    selected = None if isinstance(given.filter, msgspec.UnsetType) else given.filter
    return {"start": start, "filter": compile_filter(selected, "queue").normalized()}


def _grant(kind: Kind, given: Attributes) -> Attributes:
    unknown = [name for name in given if name != "permission"]
    if unknown:
        raise InvalidParameter(unknown[0], "this field is not known")
    if given.get("permission") not in PERMISSIONS[kind]:
        raise InvalidParameter("permission", f"must be one of {', '.join(PERMISSIONS[kind])}")
    return dict(given)


def _schedule(given: Attributes) -> Attributes:
    definition = read_definition(_decode(given, ScheduleInput), "")
    target, rule = definition.target, definition.rule
    check_name(target.kind, target.name, QUEUE_NAME if target.kind == "queue" else TOPIC_NAME)
    check_rule(rule, 0)
    times: dict[str, Any] = {"cron": rule.cron, "time_zone": rule.time_zone}
    if rule.every_seconds is not None:
        times = {"every_seconds": rule.every_seconds}
    message = msgspec.to_builtins(definition.message)
    return {target.kind: target.name, "message": message, "missed": definition.missed, **times}


def _endpoint(answer: Attributes) -> dict[str, Any]:
    return {"endpoint": answer["endpoint"]} if answer.get("endpoint") is not None else {}


def _decode(given: Attributes, shape: type[Any]) -> Any:
    try:
        body = json.dumps(dict(given), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CirrusMQError(f"is not a value that JSON has: {error}") from error
    return decode(body, shape)


def _builtins(attributes: msgspec.Struct) -> Attributes:
    return cast("Attributes", msgspec.to_builtins(attributes))
