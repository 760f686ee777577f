"""Creating, changing and deleting subscriptions of topics."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Set
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from cirrusmq.base.errors import AlreadyExists, InvalidParameter
from cirrusmq.base.names import QUEUE_NAME, SUBSCRIPTION_NAME, check_name, new_id
from cirrusmq.filters.selection import compile_filter
from cirrusmq.filters.tags import TAG_CHARACTERS
from cirrusmq.model.topic import (
    Subscription,
    SubscriptionInput,
    Topic,
    checked,
    create_subscription,
    over,
    own_dead_letter_queue,
)
from cirrusmq.queues.queues import find_queue
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.storage import directory
from cirrusmq.storage.directory import subscription_key
from cirrusmq.storage.optimistic_locking import DirectoryChange, change
from cirrusmq.subscriptions import confirmations, replays, writes
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.delivery import rules as delivery_rules
from cirrusmq.subscriptions.subscriptions import find_subscription, list_subscriptions
from cirrusmq.subscriptions.topics import find_topic, topic_removal
from cirrusmq.subscriptions.writes import update_subscription
from cirrusmq.webhooks.urls import check_endpoint


def put_subscription(
    core: Core,
    topic: Topic,
    name: str,
    given: SubscriptionInput,
    *,
    resource_id: str | None = None,
    made_by: str | None = None,
    by: str = "",
    tag_characters: int = TAG_CHARACTERS,
    exact: bool = False,
    sdk: Mapping[str, str] | None = None,
) -> tuple[Subscription, bool]:
    """Creates a subscription, or finds one with these attributes. Returns (it, created).

    An attribute that is not given is not compared, but with `exact` must be at its default.
    resource_id: the id of a new one, never used before; None draws one. made_by: the account that
    makes it; None for the topic's own. by: the id of the access key that asks for it; empty
    without one. tag_characters: the most of a tag in the filter. sdk: what SNS set besides.

    A message published after the answer is later than the subscription by every clock: no publish
    that began earlier comes between messages whose order is kept.
    """
    check_name("subscription", name, SUBSCRIPTION_NAME)
    _check_tags(topic, given, tag_characters)
    wanted = _wanted(core, topic, name, given)
    wanted = msgspec.structs.replace(wanted, made_by=made_by, sdk=dict(sdk or {}))
    held = msgspec.structs.asdict(given)
    compared = None if exact else {each for each, value in held.items() if value is not UNSET}
    subscription, created, token = change(
        core, lambda: _creation(core, topic, wanted, compared, resource_id, by)
    )
    core.wait_until(subscription.created_ms + core.skew_ms)
    replays.take_effect(core, subscription)
    if token is not None:
        confirmations.ask(core, subscription, token)
    return subscription, created


def _creation(
    core: Core,
    topic: Topic,
    wanted: Subscription,
    compared: Set[str] | None,
    resource_id: str | None,
    by: str,
) -> DirectoryChange[tuple[Subscription, bool, str | None]]:
    """Returns the subscription, whether it is new, and the token that its endpoint must return."""
    found = directory.read(core, subscription_key(topic.id, wanted.name), Subscription)
    if found is not None:
        _check_same(found.value, wanted, compared)
        return DirectoryChange(result=(found.value, False, None))
    now_ms = core.now_ms()
    subscription = msgspec.structs.replace(
        wanted, id=resource_id or new_id(core.random), created_ms=now_ms, modified_ms=now_ms
    )
    subscription, token = confirmations.begin(core, subscription)
    started = list[dict[str, Any]]()
    from_ms = replays.check_start(core, subscription.start)
    if from_ms is not None:
        replay, started = replays.begin(core, topic, wanted.name, subscription.id, from_ms, by)
        subscription = msgspec.structs.replace(subscription, replay=replay)
    return DirectoryChange(
        result=(subscription, True, token),
        writes=[*writes.creation(core, topic, subscription), *started],
        refusals=writes.creation_refusals(),
        keys=[subscription_key(topic.id, "")],
    )


def change_subscription(
    core: Core,
    topic: Topic,
    name: str,
    given: SubscriptionInput,
    *,
    tag_characters: int = TAG_CHARACTERS,
    sdk: Mapping[str, str] | None = None,
) -> Subscription:
    """Changes some attributes, for all members of a group at once.

    tag_characters: the most of a tag in a filter that is given; one that stays may have longer.
    sdk: what changes besides the attributes; an empty text removes.
    """
    check_name("subscription", name, SUBSCRIPTION_NAME)
    _check_tags(topic, given, tag_characters)

    def update(before: Subscription) -> Subscription:
        after = checked(over(before, given), topic.attributes.filter)
        beside = {key: value for key, value in (before.sdk | dict(sdk or {})).items() if value}
        return msgspec.structs.replace(
            after, sdk=beside, dead_letter_error=None, modified_ms=core.now_ms()
        )

    return update_subscription(core, topic.id, name, update)


def _check_tags(topic: Topic, given: SubscriptionInput, characters: int) -> None:
    if not isinstance(given.filter, UnsetType):
        compile_filter(given.filter, topic.attributes.filter, tag_characters=characters)


def pause(core: Core, topic: Topic, name: str) -> Subscription:
    """Makes its messages wait; a post that began goes on, and held messages can be settled."""
    return _set_paused(core, topic, name, paused=True)


def resume(core: Core, topic: Topic, name: str) -> Subscription:
    """Ends a pause; a worker begins with the waiting messages. A repeat starts another worker."""
    subscription = _set_paused(core, topic, name, paused=False)
    if subscription.protocol == "http":
        delivery_items.notify(core, delivery_rules.waiting(subscription, wake="resumed"))
    elif subscription.invoke is not None:
        # As `invoking.waking` does, which is above this package.
        core.invoke("call", {"invoke": {"source": subscription.present_id, "hops": 0}})
    return subscription


def retry_now(core: Core, topic: Topic, name: str) -> None:
    """Makes a URL's messages that wait for their retry due at once, each once.

    Only the messages that one invocation can post; the others keep their times.
    """
    subscription = find_subscription(
        core, topic.id, check_name("subscription", name, SUBSCRIPTION_NAME)
    ).value
    if subscription.protocol != "http":
        raise InvalidParameter("subscription", "must be of a URL: others have no schedule")
    if subscription.paused:
        raise InvalidParameter("subscription", "is paused: resume it first")
    delivery_items.notify(core, delivery_rules.waiting(subscription, wake="hurried"))


def _set_paused(core: Core, topic: Topic, name: str, *, paused: bool) -> Subscription:
    check_name("subscription", name, SUBSCRIPTION_NAME)

    def update(before: Subscription) -> Subscription:
        if not before.pausable:
            raise InvalidParameter(
                "subscription", "must be of a URL, or a pull subscription in mode clustering"
            )
        return msgspec.structs.replace(before, paused=paused, gone=False)

    return update_subscription(core, topic.id, name, update)


def pause_gone(core: Core, subscription: Subscription) -> None:
    """Pauses a subscription whose URL is gone for good (410), until it is resumed.

    Nothing is changed if it was made again, or has another URL by now.
    """

    def update(before: Subscription) -> Subscription:
        if (before.id, before.endpoint) != (subscription.id, subscription.endpoint):
            return before
        return msgspec.structs.replace(before, paused=True, gone=True)

    update_subscription(core, subscription.topic_id, subscription.name, update)


def delete_subscription(core: Core, topic: Topic, name: str) -> None:
    """Deletes a subscription; the messages that it had not taken are gone with it."""
    check_name("subscription", name, SUBSCRIPTION_NAME)

    def plan() -> DirectoryChange[None]:
        found = find_subscription(core, topic.id, name)
        return DirectoryChange(
            result=None,
            writes=writes.removal(core, found),
            keys=[subscription_key(topic.id, "")],
        )

    change(core, plan)


def delete_topic(core: Core, account: str, name: str) -> None:
    """Deletes a topic and its subscriptions, these first: a repeat finishes what stopped."""

    def plan() -> DirectoryChange[None]:
        topic = find_topic(core, account, name)
        for subscription in list_subscriptions(core, topic.value):
            key = subscription_key(topic.value.id, subscription.name)
            found = directory.read(core, key, Subscription)
            if found is not None:
                with contextlib.suppress(TransactionRefused):  # it changed: the topic stays
                    core.store.transact(writes.removal(core, found))
        core.cache.turn_over(subscription_key(topic.value.id, ""))
        return topic_removal(core, topic)

    change(core, plan)


def _wanted(core: Core, topic: Topic, name: str, given: SubscriptionInput) -> Subscription:
    """Returns the subscription that a PUT asks for, without its id."""
    wanted = create_subscription(topic, name, given)
    endpoint = wanted.endpoint
    if endpoint is None:
        return wanted
    if wanted.protocol == "http":
        settings = core.settings
        check_endpoint(
            endpoint,
            http_allowed=settings.http_endpoints,
            allowed_networks=settings.allowed_networks,
        )
        return wanted
    check_name("endpoint", endpoint, QUEUE_NAME)
    queue = find_queue(core, topic.account, endpoint).value
    return msgspec.structs.replace(wanted, endpoint_id=queue.id)


def _check_same(existing: Subscription, wanted: Subscription, compared: Set[str] | None) -> None:
    """Raises AlreadyExists if an attribute in `compared` differs; None compares all."""
    before, asked = existing.attributes(), wanted.attributes()
    made_for_it = existing.dead_letter_queue == own_dead_letter_queue(existing.id)
    if made_for_it and asked["dead_letter_queue"] is None:
        before["dead_letter_queue"] = None
    if existing.policy == wanted.policy:  # a default that is written out is still the default
        before["retry"] = asked["retry"]
    names = before.keys() | asked.keys() if compared is None else compared
    same = all(before.get(name) == asked.get(name) for name in names)
    if existing.name != wanted.name or not same:
        raise AlreadyExists(f"subscription {existing.name} exists with other attributes")
