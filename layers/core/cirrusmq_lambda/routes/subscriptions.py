"""Subscriptions of a topic."""

from __future__ import annotations

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.model.topic import SubscriptionInput
from cirrusmq.subscriptions import confirmations, subscriptions
from cirrusmq.subscriptions.confirmations import ConfirmRequest
from cirrusmq.subscriptions.state import show_state
from cirrusmq_lambda.http import Answer, Request, Route, answer, page_answer
from cirrusmq_lambda.topic_paths import topic_of


def put_subscription(request: Request) -> Answer:
    """Subscribe; a URL's signing secret is in the answer that creates it, and nowhere else."""
    core, topic = request.core, topic_of(request)
    name, body = request.path("subscription"), request.body(SubscriptionInput)
    subscription, created = subscriptions.put_subscription(core, topic, name, body)
    shown = subscription.show()
    if created and subscription.protocol == "http":
        shown["secret"] = confirmations.signing_secret(core, subscription.id)
    return answer(201 if created else 200, shown)


def patch_subscription(request: Request) -> Answer:
    """Change some attributes."""
    topic, body = topic_of(request), request.body(SubscriptionInput)
    name = request.path("subscription")
    changed = subscriptions.change_subscription(request.core, topic, name, body)
    return answer(200, changed.show())


def show_subscription(request: Request) -> Answer:
    """All attributes, how many messages wait, and how delivering goes."""
    core = request.core
    subscription = subscriptions.get_subscription(
        core, topic_of(request), request.path("subscription")
    )
    return answer(200, subscription.show() | show_state(core, subscription))


def show_subscriptions(request: Request) -> Answer:
    """A page of a topic's subscriptions."""
    core, topic = request.core, topic_of(request)
    limit, cursor = request.page()
    listed, following = subscriptions.page_of_subscriptions(core, topic, limit, cursor)
    return page_answer("subscriptions", [each.show() for each in listed], following)


def remove_subscription(request: Request) -> Answer:
    """Unsubscribe."""
    topic = topic_of(request)
    subscriptions.delete_subscription(request.core, topic, request.path("subscription"))
    return answer(204)


def confirm(request: Request) -> Answer:
    """Take a token back from who got it, or send its owner's endpoint a new one."""
    body: ConfirmRequest = request.body(ConfirmRequest)
    name = request.path("subscription")
    if body.token is not None:
        if not 1 <= len(body.token) <= 256:
            raise InvalidParameter("token", "must be a token of 1 to 256 characters")
        confirmations.confirm(request.core, request.path("topic"), name, body.token)
    else:
        confirmations.ask_again(request.core, topic_of(request), name)
    return answer(204)


_SUBSCRIPTION = "/topics/{topic}/subscriptions/{subscription}"
ROUTES: dict[str, Route] = {
    f"PUT {_SUBSCRIPTION}": put_subscription,
    f"PATCH {_SUBSCRIPTION}": patch_subscription,
    f"GET {_SUBSCRIPTION}": show_subscription,
    "GET /topics/{topic}/subscriptions": show_subscriptions,
    f"DELETE {_SUBSCRIPTION}": remove_subscription,
    f"POST {_SUBSCRIPTION}/confirm": confirm,
}
