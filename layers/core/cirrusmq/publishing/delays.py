"""When a message is to be delivered that is published for later, and whom that is possible for."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import UnsetType
from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.timestamps import parse_moment
from cirrusmq.model.topic import Subscription
from cirrusmq.publishing.recipients import Draft, endpoint
from cirrusmq.runtime.core import Core


class WantedDelay(NamedTuple):
    """When a message is to be delivered, as its publisher says: one of the two."""

    delay_seconds: int | UnsetType
    deliver_at: str | int | float | UnsetType

    @property
    def parameter(self) -> str:
        """The name of the given parameter; `deliver_at` only if `delay_seconds` is not given."""
        return "deliver_at" if isinstance(self.delay_seconds, UnsetType) else "delay_seconds"


def with_delay(core: Core, draft: Draft, due: WantedDelay | None, where: str) -> Draft:
    """The draft with its due time, if one is given that is not over.

    Raises InvalidParameter if a subscription that gets it cannot have it then.
    """
    if due is None:
        return draft
    now_ms, life_ms = core.now_ms(), limits.TOPIC_LIFE_SECONDS * 1_000
    name = f"{where}.{due.parameter}"
    if isinstance(due.deliver_at, UnsetType):
        assert not isinstance(due.delay_seconds, UnsetType)
        due_ms = now_ms + due.delay_seconds * 1_000
    elif isinstance(due.delay_seconds, UnsetType):
        due_ms = parse_moment(name, due.deliver_at)
    else:
        raise InvalidParameter(name, "and deliver_at cannot be given together")
    if due_ms <= now_ms:
        return draft
    if due_ms >= now_ms + life_ms:
        raise InvalidParameter(name, f"must be less than {life_ms // 1_000:,} seconds from now")
    for each in draft.subscriptions:
        _check_reader(core, each, due_ms - now_ms, name)
    if isinstance(due.deliver_at, UnsetType):
        return replace(draft, delay_ms=due_ms - now_ms)
    return replace(draft, deliver_at_ms=due_ms)


def _check_reader(core: Core, subscription: Subscription, delay_ms: int, name: str) -> None:
    queue = endpoint(core, subscription) if subscription.protocol == "queue" else None
    in_order = subscription.ordered or subscription.pushed_in_order
    if in_order or (queue is not None and queue.attributes.ordered):
        raise InvalidParameter(
            name,
            f"is not possible: subscription {subscription.name} gets its messages in order, and "
            "later ones would wait",
        )
    retention_seconds = queue.attributes.message_retention_seconds if queue else None
    if retention_seconds and delay_ms >= retention_seconds * 1_000:
        raise InvalidParameter(
            name,
            f"must be below the retention of subscription {subscription.name}'s queue, "
            f"{retention_seconds:,} seconds",
        )
