"""The state of a subscription: its counts, and whether its deliveries succeed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from cirrusmq.base import ulid
from cirrusmq.base.limits import COUNT_EXACT_MESSAGES
from cirrusmq.model.breaker import Circuit
from cirrusmq.model.parcel import send_and_position
from cirrusmq.model.source import Source
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.queues.counts import Counts, count, total
from cirrusmq.runtime.core import Core
from cirrusmq.storage.counters import read_kept
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.queries import scan_pages
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.delivery.due_marks import read_waiting
from cirrusmq.subscriptions.failed_answers import FailedAnswer, read_answers
from cirrusmq.subscriptions.sources import subscription_source
from cirrusmq.subscriptions.subscriptions import cached_subscriptions


class SubscriptionState(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription's counts, None if it holds no messages, and whether its deliveries succeed.

    next_attempt_ms, last_error: for a URL that is `retrying`, else None.
    """

    state: Literal["unconfirmed", "paused", "delivering", "retrying"] = "delivering"
    counts: Counts | None
    next_attempt_ms: int | None = None
    last_error: str | None = None
    circuit: Circuit | None = None
    """The state of its breaker, for a URL that has one."""
    failed_answers: Sequence[FailedAnswer] = ()
    """For a URL that keeps them."""


def read_state(core: Core, subscription: Subscription) -> SubscriptionState:
    """Returns the subscription's state now."""
    state = _state(core, subscription)
    if not subscription.keep_answers:
        return state
    return replace(state, failed_answers=read_answers(core, subscription.id))


def _state(core: Core, subscription: Subscription) -> SubscriptionState:
    counts = None
    if subscription.pausable:
        counts = _counts(core, subscription)
    if not subscription.confirmed:
        return SubscriptionState(state="unconfirmed", counts=counts)
    delivery = None
    if subscription.protocol == "http" and (subscription.breaker or not subscription.paused):
        delivery = delivery_items.read(core, subscription.id)
    circuit = None
    if subscription.breaker is not None:
        circuit = Circuit() if delivery is None else delivery.circuit
    if subscription.paused:
        return SubscriptionState(state="paused", counts=counts, circuit=circuit)
    if delivery is not None and delivery.state == "retrying":
        return SubscriptionState(
            state="retrying",
            counts=counts,
            next_attempt_ms=delivery.next_due_ms,
            last_error=delivery.last_error,
            circuit=circuit,
        )
    return SubscriptionState(counts=counts, circuit=circuit)


def _counts(core: Core, subscription: Subscription) -> Counts:
    if subscription.protocol != "http":
        counted = [count(core, each) for each in subscription_source(subscription).all]
        return counted[0] if len(counted) == 1 else total(counted)
    # A probe and messages blocked behind it are to be pushed: a URL's have no other state.
    delayed: set[str] = set()
    ids = _first(_undelivered(core, subscription, delayed))
    active = len(ids)
    if active > COUNT_EXACT_MESSAGES:
        active = max(active, read_kept(core, subscription.id).messages)
    sends = [known[0] for known in map(send_and_position, ids) if known]
    return Counts(
        active=active,
        delayed=len(delayed),
        oldest_ms=min(map(ulid.time_of, sends), default=None),
        approximate=max(len(ids), len(delayed)) > COUNT_EXACT_MESSAGES,
    )


def count_topic(core: Core, topic: Topic) -> int:
    """Returns the number of messages that some subscription has not taken; a bound above 10,000."""
    ids = itertools.chain.from_iterable(
        _waiting(core, subscription) for subscription in cached_subscriptions(core, topic.id)
    )
    return len(_first(ids))


def _first(ids: Iterable[str]) -> set[str]:
    """Returns ids, each once, up to one more than are counted exactly."""
    found: set[str] = set()
    for each in ids:
        found.add(each)
        if len(found) > COUNT_EXACT_MESSAGES:
            break
    return found


def _waiting(core: Core, subscription: Subscription) -> Iterator[str]:
    """Yields ids of the messages that a subscription has not taken yet."""
    if not subscription.pausable:
        return
    if subscription.protocol == "http":
        yield from _undelivered(core, subscription)
        return
    for source in subscription_source(subscription).all:
        for partition in range(source.partitions):
            yield from _live(core, source, partition, "")


def _undelivered(
    core: Core, subscription: Subscription, delayed: set[str] | None = None
) -> Iterator[str]:
    """Yields ids of a URL's messages: by its marks, and behind the clean keys.

    delayed: gets the ids of messages that are to be posted later instead, up to one more than are
    counted exactly; None yields them, too.

    Messages delivered in the last two minutes or so are read too; some ids are in it twice.
    """
    delivery = delivery_items.read(core, subscription.id)
    if delivery is None:
        return
    now_ms, source = core.now_ms(), subscription_source(subscription)
    zeros = (0,) * subscription.partitions
    clean, dues = delivery.clean_ms or zeros, delivery.dues_ms or zeros
    marked = delivery.holder or delivery.kept_until_ms > now_ms
    for partition, from_ms in enumerate(delivery.marks_ms or zeros):
        start_ms = max(clean[partition], source.query_from_ms(now_ms, core.clock.scale))
        yield from _live(core, source, partition, f"{start_ms:013d}", delayed)
        if not marked and not dues[partition]:
            continue
        for mark in read_waiting(core, source.id, partition, from_ms, now_ms):
            if mark.sent_ms < start_ms:
                yield mark.message_id


def _live(
    core: Core, source: Source, partition: int, start: str, delayed: set[str] | None = None
) -> Iterator[str]:
    now_ms = core.now_ms()
    for page in scan_pages(core, partition_key(PARCELS, source.id, partition), start):
        for parcel in filter(source.keeps, page.parcels):
            for index in range(parcel.count):
                if not parcel.live(index) or now_ms >= parcel.expires_ms:
                    continue
                due_ms = parcel.visible_ms[index]
                waits = not parcel.receives[index] and due_ms > max(now_ms, parcel.sent_ms)
                if delayed is None or not waits:
                    yield parcel.message_id(index)
                    continue
                delayed.add(parcel.message_id(index))
                if len(delayed) > COUNT_EXACT_MESSAGES:
                    return
