"""The subscriptions that would get messages, and a filter's effect on them; publishes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.request_token import check_attempt
from cirrusmq.filters.explanation import why_not
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.selection import Filter, compile_filter
from cirrusmq.model.message import Message
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.publishing.publish import PublishRequest, check_messages
from cirrusmq.publishing.recipients import Draft, confirmed_subscriptions
from cirrusmq.runtime.core import Core
from cirrusmq.sending.request_messages import NO_TRACE, read_contents


class MatchRequest(PublishRequest, forbid_unknown_fields=True, frozen=True):
    """The body of a match: a publish's body, and a filter to test."""

    filter: dict[str, Any] | UnsetType | None = UNSET


class Trial(msgspec.Struct, frozen=True):
    """The result of a filter for a message."""

    passes: bool
    why_not: str | None
    """A clause, if the message does not pass."""


def match(
    core: Core, topic: Topic, request: PublishRequest, trace: Mapping[str, str] = NO_TRACE
) -> list[tuple[Subscription, ...] | CirrusMQError]:
    """Returns for each message the subscriptions that get it if it is published now, by name.

    A publish chooses the subscriptions by the same code; fan-out follows the record.
    An `attempt` is checked, and of no effect. `trace`: as a publish has it, of messages that have
    none: a filter may name it.
    """
    drafts = _drafts(core, topic, request, confirmed_subscriptions(core, topic), trace)
    return [each.subscriptions if isinstance(each, Draft) else each for each in drafts]


def try_filter(
    core: Core, topic: Topic, request: PublishRequest, filter: dict[str, Any] | None
) -> list[Trial | CirrusMQError]:
    """Returns for each message if a subscription with this filter would get it.

    No subscription is read. Raises as creating one does: InvalidFilter, InvalidParameter.
    """
    selection = compile_filter(filter, topic.attributes.filter)
    drafts = _drafts(core, topic, request, [])
    return [_trial(selection, each) if isinstance(each, Draft) else each for each in drafts]


def _drafts(
    core: Core,
    topic: Topic,
    request: PublishRequest,
    subscriptions: list[Subscription],
    trace: Mapping[str, str] = NO_TRACE,
) -> list[Draft | CirrusMQError]:
    if not isinstance(request.attempt, UnsetType):
        check_attempt(request.attempt, core.now_ms(), core.clock.scale)
    contents = read_contents(request.messages, core.settings.batch_bytes, trace=trace)
    drafts, refused = check_messages(core, topic, request, contents, subscriptions)
    results: dict[int, Draft | CirrusMQError] = {**refused, **drafts}
    return [results[index] for index in range(len(request.messages))]


def _trial(selection: Filter, draft: Draft) -> Trial:
    message = draft.message
    body = message.body if isinstance(message, Message) else ""
    seen = Filterable(message.tags, draft.routing_key, message.attributes, body)
    clause = why_not(selection, seen)
    return Trial(clause is None, clause)
