"""The source of a subscription."""

from __future__ import annotations

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.model.queue import DeadLetter
from cirrusmq.model.source import Source
from cirrusmq.model.topic import Subscription, Topic, own_dead_letter_queue
from cirrusmq.queues.queues import get_queue
from cirrusmq.queues.receivers import source_with_id
from cirrusmq.queues.resources import find_resource
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory
from cirrusmq.storage.directory import topic_key
from cirrusmq.storage.queries import LAST_KEY
from cirrusmq.subscriptions.subscriptions import cached_subscriptions


def group_source(core: Core, subscription: Subscription) -> Source:
    """Returns the source of a pull subscription's consumers, with its former ones, and with the
    frontier of a running replay: as the operation last saved, or a little before."""
    source = subscription_source(subscription)
    if subscription.replay is None or not subscription.replay.running:
        return source
    # Few groups are rewound: the others' cold starts do without.
    from cirrusmq.queues.frontiers import frontier

    of_operation = subscription.account, subscription.replay.operation
    reached = frontier(core, *of_operation, subscription.topic_id, ordered=source.ordered)
    return _withheld(core, replace(source, frontier=reached))


def _withheld(core: Core, source: Source) -> Source:
    """Returns the source with former ones whose newest messages wait for the frontier, too.

    rewound to    ............|
    former           m8 (slow clock)          m7 is before m8, and may not be there yet
    replay                      m7 (fast clock)
    """
    if not source.ordered or not source.former or source.frontier is None:
        return source
    since_ms = source.former[-1].ends_ms or 0
    last_ms = since_ms + core.skew_ms + int(limits.ATTEMPT_AHEAD_MS * core.clock.scale)
    if source.frontier > f"{last_ms:013d}{LAST_KEY}":
        return source
    from_ms = since_ms - core.skew_ms
    former = [replace(each, withheld_from_ms=from_ms) for each in source.former]
    return replace(source, former=tuple(former))


def subscription_source(subscription: Subscription) -> Source:
    """Returns the source of a pull or http subscription, with its former ones."""
    source = _source(subscription)
    epochs = subscription.epochs
    former = [replace(source, id=epoch.id, ends_ms=epoch.until_ms) for epoch in epochs]
    later = [*former[1:], source] if source.ordered else []
    placed = [
        replace(each, former=tuple(former[:at]), later=tuple(later[at:]))
        for at, each in enumerate(former)
    ]
    return replace(source, former=tuple(placed)) if placed else source


def _source(subscription: Subscription) -> Source:
    policy = subscription.policy
    named = subscription.dead_letter_queue
    unnamed = named is None and policy is not None and policy.ending == "dead_letter"
    if unnamed:
        named = own_dead_letter_queue(subscription.id)
    return Source(
        id=subscription.present_id,
        account=subscription.account,
        queue_name=subscription.topic,
        subscription=subscription.name,
        subscription_id=subscription.id,
        text_attributes=subscription.text_attributes,
        log_id=subscription.topic_id,
        partitions=subscription.partitions,
        ordered=subscription.ordered and subscription.protocol == "pull",
        visibility_timeout_seconds=limits.VISIBILITY_SECONDS_DEFAULT,
        receive_wait_seconds=limits.RECEIVE_WAIT_SECONDS_DEFAULT,
        retry=policy if subscription.protocol == "pull" else None,
        dead_letter=DeadLetter(queue=named) if named else None,
        makes_dead_letter_queue=unnamed,
        lacks_dead_letter_queue=unnamed and subscription.dead_letter_error is not None,
        longest_retention_seconds=limits.TOPIC_LIFE_SECONDS,
        invoke=subscription.invoke,
        paused=subscription.paused,
    )


def present_source(core: Core, resource_id: str) -> Source | None:
    """Does what `source_of_resource` does, but returns the present source of a rewound group.

    resource_id: of any of the group's sources, or the group's own.
    """
    return source_of_resource(core, resource_id, present=True)


def source_of_resource(core: Core, resource_id: str, *, present: bool = False) -> Source | None:
    """Returns the source with this id, or None for URLs, topics, and deleted resources.

    present: as `present_source` returns it.
    """
    resource = find_resource(core, resource_id)
    if resource is None or resource.pushed:
        return None
    name, _, subscription_name = resource.name.partition("/")
    if resource.kind in ("queue", "receiver"):
        try:
            return source_with_id(core, get_queue(core, resource.account, name), resource_id)
        except CirrusMQError:
            return None  # it has been deleted
    topic = directory.read_cached(core, topic_key(resource.account, name), Topic)
    for subscription in cached_subscriptions(core, topic.id) if topic else ():
        if subscription.name == subscription_name:
            source = group_source(core, subscription)
            held = {each.id: each for each in source.all}
            if present and resource_id in (source.owner_id, *held):
                return source
            if resource_id in held:
                return held[resource_id]
    return None
