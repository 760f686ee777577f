"""Reads an account's resources through the client library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cirrusmq.model.topic import own_dead_letter_queue
from cirrusmq_client import Client
from cirrusmq_client.errors import (
    GrantNotFound,
    QueueNotFound,
    ReceiverNotFound,
    ScheduleNotFound,
    SubscriptionNotFound,
    TopicNotFound,
)
from cirrusmq_local.declarations import contract
from cirrusmq_local.declarations.resources import Attributes, Found, Place

GONE = (
    *(QueueNotFound, ReceiverNotFound, GrantNotFound),
    *(TopicNotFound, SubscriptionNotFound, ScheduleNotFound),
)
_WAITING = ("active", "inactive", "delayed")


def read_account(client: Client) -> dict[Place, Found]:
    """Returns every queue, receiver, grant, topic, subscription and schedule of the key's account.

    Makes two calls for each queue and topic, beside the listings. A resource that is deleted
    during the reads is left out.
    """
    found: dict[Place, Found] = {}
    own_queues = set()
    for topic in list(client.list_topics()):
        place = Place("topic", topic["name"])
        found[place] = _found(place, topic)
        for subscription in _entries(client.list_subscriptions(place.name)):
            inner = Place("subscription", subscription["name"], place.name)
            own_queue = own_dead_letter_queue(subscription["id"])
            found[inner] = _found(inner, subscription, own_queue)
            own_queues.add(own_queue)
        for granted in _entries(iter(client.list_topic_grants(place.name))):
            inner = Place("topic_grant", granted["account"], place.name)
            found[inner] = _found(inner, granted)
    for queue in list(client.list_queues()):
        place = Place("queue", queue["name"])
        attributes = contract.of_answer(place, queue)
        found[place] = Found(attributes=attributes, automatic=place.name in own_queues)
        for receiver in _entries(client.list_receivers(place.name)):
            inner = Place("receiver", receiver["name"], place.name)
            found[inner] = _found(inner, receiver)
        for grant in _entries(iter(client.list_grants(place.name))):
            inner = Place("grant", grant["account"], place.name)
            found[inner] = _found(inner, grant)
    for schedule in list(client.list_schedules()):
        place = Place("schedule", schedule["name"])
        found[place] = _found(place, schedule)
    return found


def exported(found: Mapping[Place, Found]) -> dict[Place, Attributes]:
    """Returns the resources that belong into a file.

    Leaves out queues that the service made for subscriptions: it makes them again when needed.
    """
    automatic = {place.name for place, each in found.items() if each.automatic}
    return {
        place: each.attributes
        for place, each in found.items()
        if not each.automatic and place.parent not in automatic
    }


def count_waiting(client: Client, place: Place) -> int:
    """Returns how many messages, active, held or delayed, a resource has; 0 if it is gone."""
    try:
        return sum(_counts(client, place))
    except GONE:
        return 0


def is_pending(client: Client, place: Place) -> bool:
    """Returns True if a subscription waits for its endpoint to confirm."""
    return client.show_subscription(place.parent, place.name)["state"] == "unconfirmed"


def _counts(client: Client, place: Place) -> Iterator[int]:
    match place.kind:
        case "queue":
            yield _waiting(client.show_queue(place.name))
            for receiver in client.list_receivers(place.name):
                yield _waiting(client.show_receiver(place.name, receiver["name"]))
        case "receiver":
            yield _waiting(client.show_receiver(place.parent, place.name))
        case "topic":
            yield client.show_topic(place.name)["counts"]["active"]
        case "subscription":
            yield _waiting(client.show_subscription(place.parent, place.name))
        case "grant" | "topic_grant" | "schedule":
            yield 0


def _waiting(shown: Mapping[str, Any]) -> int:
    counts = shown.get("counts", {})
    return sum(counts.get(name, 0) for name in _WAITING)


def _found(place: Place, answer: Mapping[str, Any], own_queue: str | None = None) -> Found:
    attributes = dict(contract.of_answer(place, answer))
    if own_queue is not None and attributes["dead_letter_queue"] == own_queue:
        attributes["dead_letter_queue"] = None  # made by the service, not asked for
    return Found(attributes=attributes, own_queue=own_queue)


def _entries(listed: Iterator[Any]) -> list[Any]:
    """Returns the entries of a listing; none if their queue or topic is gone."""
    try:
        return list(listed)
    except GONE:
        return []
