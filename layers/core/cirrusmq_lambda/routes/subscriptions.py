"""Subscriptions of a topic."""

from __future__ import annotations

import contextlib

from msgspec import UNSET
from msgspec.structs import replace

from cirrusmq.access.permissions import check_invoke
from cirrusmq.base.errors import Forbidden, InvalidParameter, SubscriptionNotFound
from cirrusmq.model.topic import SubscriptionInput, Topic
from cirrusmq.subscriptions import confirmations, management, replays, subscriptions
from cirrusmq.subscriptions.confirmations import ConfirmRequest
from cirrusmq.subscriptions.replays import GroupRewindRequest, RedeliverRequest
from cirrusmq.subscriptions.state import read_state
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_lambda import rights
from cirrusmq_lambda.answers.operations import OperationStarted
from cirrusmq_lambda.answers.subscriptions import (
    NewSubscription,
    SigningSecret,
    SubscriptionAttributes,
    SubscriptionPage,
    SubscriptionWithState,
)
from cirrusmq_lambda.circuits import circuit_of
from cirrusmq_lambda.http import NoFields, Request, Route, following, read_flag
from cirrusmq_lambda.replies import Accepted, Created, NoContent, Ok
from cirrusmq_lambda.topic_paths import reached, subscription_of, topic_of


def put_subscription(request: Request) -> Created[NewSubscription] | Ok[SubscriptionAttributes]:
    """Subscribes a URL, a queue or a group of consumers; the answer for a new URL shows its signing
    secret. Raises AlreadyExists, InvalidFilter, LimitExceeded, QueueNotFound.
    """
    core, name = request.core, request.path("subscription")
    topic, made_by, by = _topic_to_subscribe(request), None, request.caller.key_id
    body = _subscription_input(request, topic)
    check_invoke(core, request.caller, body.invoke)
    if topic.account != request.caller.account:
        made_by = request.caller.account
    subscription, created = management.put_subscription(
        core, topic, name, body, made_by=made_by, by=by, exact=read_flag(request.query, "exact")
    )
    if not created:
        return Ok(SubscriptionAttributes.of(subscription))
    signed = subscription.protocol == "http"
    secret = confirmations.signing_secrets(core, subscription.id)[0] if signed else UNSET
    return Created(NewSubscription.of(subscription, secret=secret))


def patch_subscription(request: Request) -> Ok[SubscriptionAttributes]:
    """Changes a subscription for all its members. Raises InvalidFilter, QueueNotFound."""
    topic, subscription = subscription_of(request, "admin")
    body = _subscription_input(request, topic)
    check_invoke(request.core, request.caller, body.invoke)
    changed = management.change_subscription(request.core, topic, subscription.name, body)
    return Ok(SubscriptionAttributes.of(changed))


def show_subscription(request: Request) -> Ok[SubscriptionWithState]:
    """Returns a subscription's attributes, its counts, and the state of its deliveries."""
    _, subscription = subscription_of(request, "info")
    state = read_state(request.core, subscription)
    circuit = circuit_of(request.core, subscription.id, subscription.invoke)
    state = replace(state, circuit=circuit or state.circuit)
    return Ok(SubscriptionWithState.at(subscription, state, request.core.now_ms()))


def show_subscriptions(request: Request) -> Ok[SubscriptionPage]:
    """Returns a page of a topic's subscriptions."""
    core, topic = request.core, topic_of(request, "info")
    limit, cursor = request.page()
    listed, more = subscriptions.page_of_subscriptions(core, topic, limit, cursor)
    shown = list(map(SubscriptionAttributes.of, listed))
    return Ok(SubscriptionPage(subscriptions=shown, cursor=following(more)))


def remove_subscription(request: Request) -> NoContent:
    """Deletes a subscription."""
    topic, subscription = subscription_of(request, "admin")
    management.delete_subscription(request.core, topic, subscription.name)
    return NoContent()


def _topic_to_subscribe(request: Request) -> Topic:
    """Returns the topic in the path if the caller may make the subscription in the path."""
    found = reached(request, "subscribe", "admin")
    topic = get_topic(request.core, found.account, found.name)
    if "admin" in found.allowed:
        return topic
    with contextlib.suppress(SubscriptionNotFound):
        there = subscriptions.get_subscription(request.core, topic, request.path("subscription"))
        found.require_subscription(there, "subscribe")
    return topic


def _subscription_input(request: Request, topic: Topic) -> SubscriptionInput:
    """Returns a subscription's body; it may not name another account's queues."""
    body: SubscriptionInput = request.body(SubscriptionInput)
    names_queue = body.protocol == "queue" or isinstance(body.dead_letter_queue, str)
    if names_queue and topic.account != request.caller.account:
        raise Forbidden("only its owner may name queues: they are queues of the topic's account")
    rights.check_named(request.caller, "dead_letter_queue", body.dead_letter_queue)
    if body.protocol == "queue":
        rights.check_named(request.caller, "endpoint", body.endpoint)
    return body


def rewind_group(request: Request) -> Accepted[OperationStarted]:
    """Delivers everything published from a time on to a group again. Raises LimitExceeded,
    NotRewindable.
    """
    topic, subscription = subscription_of(request, "admin")
    body = request.body(GroupRewindRequest)
    started = replays.rewind(request.core, topic, subscription.name, body, request.caller.key_id)
    return Accepted(OperationStarted(operation=started))


def redeliver_messages(request: Request) -> Accepted[OperationStarted]:
    """Delivers messages of the last day to a URL or a group again, by their ids. Raises Conflict,
    MessageNotFound.
    """
    # Imported here: only this rare call reads the records of fan-out.
    from cirrusmq.operations.redelivery import redeliver

    topic, subscription = subscription_of(request, "admin")
    body = request.body(RedeliverRequest)
    started = redeliver(request.core, topic, subscription, body, request.caller.key_id)
    return Accepted(OperationStarted(operation=started.id))


def show_secret(request: Request) -> Ok[SigningSecret]:
    """Returns the current signing secret; it changes when the deployment's secret does."""
    _, subscription = subscription_of(request, "admin")
    request.body(NoFields)
    if subscription.protocol != "http":
        raise InvalidParameter("subscription", "must be of a URL: others get no signature")
    return Ok(SigningSecret(secret=confirmations.signing_secrets(request.core, subscription.id)[0]))


def pause_subscription(request: Request) -> Ok[SubscriptionAttributes]:
    """Pauses a URL or a group: its messages wait, within their life."""
    topic, subscription = subscription_of(request, "admin")
    request.body(NoFields)
    paused = management.pause(request.core, topic, subscription.name)
    return Ok(SubscriptionAttributes.of(paused))


def resume_subscription(request: Request) -> Ok[SubscriptionAttributes]:
    """Resumes a paused URL or group, beginning with the messages that wait."""
    topic, subscription = subscription_of(request, "admin")
    request.body(NoFields)
    resumed = management.resume(request.core, topic, subscription.name)
    return Ok(SubscriptionAttributes.of(resumed))


def retry_now(request: Request) -> NoContent:
    """Posts messages that wait for their retry to a URL now, each once."""
    topic, subscription = subscription_of(request, "admin")
    request.body(NoFields)
    management.retry_now(request.core, topic, subscription.name)
    return NoContent()


def confirm(request: Request) -> NoContent:
    """Confirms a subscription by its token, or sends the endpoint a new token for the owner."""
    body: ConfirmRequest = request.body(ConfirmRequest)
    name = request.path("subscription")
    if body.token is not None:
        if not 1 <= len(body.token) <= 256:
            raise InvalidParameter("token", "must be a token of 1 to 256 characters")
        confirmations.confirm(request.core, request.path("topic"), name, body.token)
    else:
        topic, _ = subscription_of(request, "admin")
        confirmations.ask_again(request.core, topic, name)
    return NoContent()


_SUBSCRIPTION = "/topics/{topic}/subscriptions/{subscription}"
ROUTES: dict[str, Route] = {
    f"PUT {_SUBSCRIPTION}": put_subscription,
    f"PATCH {_SUBSCRIPTION}": patch_subscription,
    f"GET {_SUBSCRIPTION}": show_subscription,
    "GET /topics/{topic}/subscriptions": show_subscriptions,
    f"DELETE {_SUBSCRIPTION}": remove_subscription,
    f"POST {_SUBSCRIPTION}/confirm": confirm,
    f"POST {_SUBSCRIPTION}/secret": show_secret,
    f"POST {_SUBSCRIPTION}/pause": pause_subscription,
    f"POST {_SUBSCRIPTION}/resume": resume_subscription,
    f"POST {_SUBSCRIPTION}/retry": retry_now,
    f"POST {_SUBSCRIPTION}/rewind": rewind_group,
    f"POST {_SUBSCRIPTION}/redeliver": redeliver_messages,
}
