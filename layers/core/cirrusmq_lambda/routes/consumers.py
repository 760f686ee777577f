"""The access keys that receive from a queue, a receiver or a group."""

from __future__ import annotations

from cirrusmq.access.consumers import page_of_consumers
from cirrusmq.access.permissions import find_queue
from cirrusmq.queues.receivers import source_named
from cirrusmq_lambda.answers.consumers import ConsumerPage, ConsumerState
from cirrusmq_lambda.http import Request, Route, following
from cirrusmq_lambda.replies import Ok
from cirrusmq_lambda.topic_paths import pull_subscription


def show_consumers_of_queue(request: Request) -> Ok[ConsumerPage]:
    """Returns a page of the keys that received from a queue, or from one of its receivers, within
    seven days, and when last. Raises ReceiverNotFound.
    """
    queue = find_queue(request.core, request.caller, request.path("queue"), "info")
    source = source_named(request.core, queue, request.query.get("receiver"))
    return _page(request, source.owner_id)


def show_consumers_of_subscription(request: Request) -> Ok[ConsumerPage]:
    """Returns a page of the keys that received from a group within seven days, and when last."""
    return _page(request, pull_subscription(request, "clustering", "info").id)


def _page(request: Request, source_id: str) -> Ok[ConsumerPage]:
    limit, cursor = request.page()
    found, more = page_of_consumers(request.core, source_id, limit, cursor)
    shown = [ConsumerState.of(each, request.caller.account) for each in found]
    return Ok(ConsumerPage(consumers=shown, cursor=following(more)))


ROUTES: dict[str, Route] = {
    "GET /queues/{queue}/consumers": show_consumers_of_queue,
    "GET /topics/{topic}/subscriptions/{subscription}/consumers": show_consumers_of_subscription,
}
