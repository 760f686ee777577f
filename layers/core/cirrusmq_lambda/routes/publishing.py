"""Publishes to a topic, at once or by half messages that are decided later.

Few calls use half messages or matches, so their modules are imported by these calls: other cold
starts do not load them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec
from msgspec import UnsetType

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.publishing.publish import PublishRequest, publish
from cirrusmq_lambda.answers.published import (
    MatchedMessage,
    MatchedMessages,
    Prepared,
    PublishedMessage,
    PublishedMessages,
    UndecidedTransaction,
    UndecidedTransactions,
)
from cirrusmq_lambda.http import Request, Route
from cirrusmq_lambda.problems import describe
from cirrusmq_lambda.replies import Created, NoContent, Ok
from cirrusmq_lambda.topic_paths import topic_of

T = TypeVar("T")


def publish_messages(request: Request) -> Created[PublishedMessages] | Ok[PublishedMessages]:
    """Publishes up to 16 messages to all subscriptions that they match; 201 if all are stored or
    none. Raises BatchTooLarge, MessageTooLarge.
    """
    topic = topic_of(request, "publish")
    body = request.body_with_messages(PublishRequest)
    if not isinstance(body.transaction, UnsetType):
        from cirrusmq.publishing.half_messages.prepare import prepare

        half = prepare(
            *(request.core, topic, request.caller, body, body.transaction), trace=request.trace
        )
        return Created(PublishedMessages(messages=[], transaction=Prepared.of(half)))
    entries = [
        PublishedMessage(error=describe(each, request.id))
        if isinstance(each, CirrusMQError)
        else PublishedMessage.of(each)
        for each in publish(request.core, topic, request.caller, body, trace=request.trace)
    ]
    shown = PublishedMessages(messages=entries)
    return Created(shown) if body.atomic else Ok(shown)


def match_messages(request: Request) -> Ok[MatchedMessages]:
    """Returns the subscriptions that would get messages, or a filter's result; publishes none.
    Raises BatchTooLarge, InvalidFilter, MessageTooLarge.
    """
    from cirrusmq.publishing.matching import MatchRequest, match, try_filter

    topic = topic_of(request, "info")
    body = request.body_with_messages(MatchRequest)
    if isinstance(body.filter, UnsetType):
        matches = match(request.core, topic, body, request.trace)
        return _matched(request, matches, MatchedMessage.of)
    trials = try_filter(request.core, topic, body, body.filter)
    return _matched(request, trials, MatchedMessage.tried)


def _matched(
    request: Request, results: Iterable[T | CirrusMQError], show: Callable[[T], MatchedMessage]
) -> Ok[MatchedMessages]:
    entries = [
        MatchedMessage(error=describe(each, request.id))
        if isinstance(each, CirrusMQError)
        else show(each)
        for each in results
    ]
    return Ok(MatchedMessages(messages=entries))


class HandleRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a commit or a rollback."""

    handle: str


def commit_half(request: Request) -> Ok[PublishedMessages]:
    """Publishes messages prepared with `transaction`; a repetition gets the same answer. Raises
    Conflict, MessageNotFound.
    """
    from cirrusmq.publishing.half_messages.decide import commit

    topic = topic_of(request, "publish")
    handle = request.body(HandleRequest).handle
    published = commit(request.core, topic, request.caller.account, handle)
    return Ok(PublishedMessages(messages=list(map(PublishedMessage.of, published))))


def roll_back_half(request: Request) -> NoContent:
    """Drops messages prepared with `transaction`; a repetition changes nothing. Raises Conflict,
    MessageNotFound.
    """
    from cirrusmq.publishing.half_messages.decide import roll_back

    topic = topic_of(request, "publish")
    handle = request.body(HandleRequest).handle
    roll_back(request.core, topic, request.caller.account, handle)
    return NoContent()


def receive_half(request: Request) -> Ok[UndecidedTransactions]:
    """Returns half messages that a group of producers must decide; the caller leases each."""
    from cirrusmq.publishing.half_messages.checks import HalfReceiveRequest, receive_halves

    topic = topic_of(request, "publish")
    asked = request.body(HalfReceiveRequest)
    checks = receive_halves(request.core, topic, request.caller.account, asked)
    return Ok(UndecidedTransactions(transactions=list(map(UndecidedTransaction.of, checks))))


ROUTES: dict[str, Route] = {
    "POST /topics/{topic}/messages": publish_messages,
    "POST /topics/{topic}/match": match_messages,
    "POST /topics/{topic}/half/commit": commit_half,
    "POST /topics/{topic}/half/rollback": roll_back_half,
    "POST /topics/{topic}/half/receive": receive_half,
}
