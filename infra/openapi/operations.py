"""What each route takes and answers, beside what its path and its structs say already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cirrusmq.model.queue import QueueInput
from cirrusmq.model.topic import SubscriptionInput, TopicInput
from cirrusmq.operations.redrive import RedriveRequest
from cirrusmq.operations.rewind import RewindRequest
from cirrusmq.publishing.publish import PublishRequest
from cirrusmq.queues.receivers import ReceiverInput
from cirrusmq.receiving.peek import PeekRequest
from cirrusmq.receiving.receive import ReceiveRequest
from cirrusmq.sending.send import SendRequest
from cirrusmq.settlement.dead_letter import DeadLetterRequest
from cirrusmq.settlement.delete import DeleteRequest
from cirrusmq.settlement.visibility import GiveBackRequest, VisibilityRequest
from cirrusmq.subscriptions.confirmations import ConfirmRequest
from cirrusmq_lambda.http import NoFields
from cirrusmq_lambda.routes.access import GrantRequest, KeyRequest
from cirrusmq_lambda.routes.service import ASSETS

from . import answers

QUEUE = "/queues/{queue}"
TOPIC = "/topics/{topic}"
SUBSCRIPTION = f"{TOPIC}/subscriptions/{{subscription}}"

MESSAGE = {"body": "hello", "attributes": {"region": "shanghai"}}
RECEIPTS = {"receipts": ["l6wwYzVncXZz"]}
PAGE = ("limit", "cursor")
LOG = ("after", "limit")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One route."""

    tag: str
    summary: str
    answers: Mapping[int, Any]
    """Status -> struct of the answer; None: no body; texts: the media types."""
    body: type | None = None
    examples: Mapping[str, Any] = field(default_factory=dict)
    """Bodies that are worth trying, by name."""
    query: Sequence[str] = ()
    problems: Sequence[str] = ()
    """Codes that neither its path nor its having a body tells."""
    needs_key: bool | None = True
    """None: a key or a token."""


def _receipts(
    holder: str, tag: str, call: str, summary: str, body: type, result: type, example: Any
) -> dict[str, Operation]:
    operation = Operation(
        tag=tag,
        summary=summary,
        body=body,
        answers={200: result},
        examples={call: example},
        problems=("BatchTooLarge",),
    )
    return {f"POST {holder}/messages/{call}": operation}


def _of_messages(holder: str, tag: str) -> dict[str, Operation]:
    """What queues and pull subscriptions have in common."""
    return {
        f"POST {holder}/messages/receive": Operation(
            tag=tag,
            summary="Receive messages and hold them for a while",
            body=ReceiveRequest,
            answers={200: answers.ReceivedMessages},
            examples={"wait for up to 16": {"max": 16, "wait_seconds": 20}},
            problems=("ReceiverNotFound",) if holder == QUEUE else (),
        ),
        f"POST {holder}/messages/peek": Operation(
            tag=tag,
            summary="Look at active messages without claiming them",
            body=PeekRequest,
            answers={200: answers.PeekedMessages},
            examples={"ten": {"max": 10}},
        ),
        **_receipts(
            holder,
            tag,
            "delete",
            "Delete messages that are done",
            DeleteRequest,
            answers.DeletedReceipts,
            RECEIPTS,
        ),
        **_receipts(
            holder,
            tag,
            "visibility",
            "Hold messages for longer or shorter",
            VisibilityRequest,
            answers.ChangedReceipts,
            {"entries": [{"receipt": "l6wwYzVncXZz", "visibility_timeout_seconds": 60}]},
        ),
        **_receipts(
            holder,
            tag,
            "give-back",
            "Give messages back, to be received again",
            GiveBackRequest,
            answers.GivenBackReceipts,
            {**RECEIPTS, "delay_seconds": 10},
        ),
        **_receipts(
            holder,
            tag,
            "dead-letter",
            "Give messages up for good",
            DeadLetterRequest,
            answers.DeletedReceipts,
            {**RECEIPTS, "reason": "cannot be read"},
        ),
    }


_QUEUES = {
    f"PUT {QUEUE}": Operation(
        tag="Queues",
        summary="Create a queue, or find it with exactly these attributes",
        body=QueueInput,
        answers={201: answers.QueueAttributes, 200: answers.QueueAttributes},
        examples={
            "defaults": {},
            "with dead letters": {"dead_letter": {"queue": "failed", "max_receives": 5}},
        },
        problems=("AlreadyExists", "LimitExceeded"),
    ),
    f"PATCH {QUEUE}": Operation(
        tag="Queues",
        summary="Change some attributes of a queue",
        body=QueueInput,
        answers={200: answers.QueueAttributes},
        examples={"longer timeout": {"visibility_timeout_seconds": 120}},
        problems=("InUse",),
    ),
    f"GET {QUEUE}": Operation(
        tag="Queues",
        summary="Show a queue and its counts",
        answers={200: answers.QueueWithCounts},
    ),
    "GET /queues": Operation(
        tag="Queues",
        summary="List queues",
        answers={200: answers.QueuePage},
        query=("prefix", *PAGE),
    ),
    f"DELETE {QUEUE}": Operation(
        tag="Queues", summary="Delete a queue", answers={204: None}, problems=("InUse",)
    ),
    f"POST {QUEUE}/purge": Operation(
        tag="Queues",
        summary="Remove everything that was sent before this call",
        body=NoFields,
        answers={202: answers.OperationStarted},
    ),
    f"POST {QUEUE}/rewind": Operation(
        tag="Queues",
        summary="Make deleted messages active again, from a time on",
        body=RewindRequest,
        answers={202: answers.OperationStarted},
        examples={"to a time": {"to": "2026-11-20T08:00:00.000Z"}},
        problems=("NotRewindable",),
    ),
    f"POST {QUEUE}/redrive": Operation(
        tag="Queues",
        summary="Send the messages of a dead-letter queue back",
        body=RedriveRequest,
        answers={202: answers.OperationStarted},
        examples={"to their sources": {}, "some, to one queue": {"to": "q", "max_messages": 100}},
    ),
    "GET /operations/{id}": Operation(
        tag="Queues",
        summary="Show how far a purge, rewind or redrive is",
        answers={200: answers.OperationState},
    ),
}

_RECEIVERS = {
    f"PUT {QUEUE}/receivers/{{receiver}}": Operation(
        tag="Receivers",
        summary="Add an independent receiver to a queue",
        body=ReceiverInput,
        answers={201: answers.ReceiverAttributes, 200: answers.ReceiverAttributes},
        examples={"from now on": {}},
        problems=("AlreadyExists", "LimitExceeded"),
    ),
    f"GET {QUEUE}/receivers/{{receiver}}": Operation(
        tag="Receivers",
        summary="Show a receiver and its counts",
        answers={200: answers.ReceiverWithCounts},
    ),
    f"GET {QUEUE}/receivers": Operation(
        tag="Receivers",
        summary="List the receivers of a queue",
        answers={200: answers.ReceiverPage},
        query=PAGE,
    ),
    f"DELETE {QUEUE}/receivers/{{receiver}}": Operation(
        tag="Receivers", summary="Remove a receiver", answers={204: None}
    ),
}

_MESSAGES = {
    f"POST {QUEUE}/messages": Operation(
        tag="Messages",
        summary="Send messages",
        body=SendRequest,
        answers={201: answers.SentMessages, 200: answers.SentMessages},
        examples={
            "one": {"messages": [MESSAGE]},
            "later": {"messages": [{"body": "hello", "delay_seconds": 60}]},
        },
        problems=("MessageTooLarge", "BatchTooLarge", "LimitExceeded"),
    ),
    **_of_messages(QUEUE, "Messages"),
}

_TOPICS = {
    f"PUT {TOPIC}": Operation(
        tag="Topics",
        summary="Create a topic, or find it with exactly these attributes",
        body=TopicInput,
        answers={201: answers.TopicAttributes, 200: answers.TopicAttributes},
        examples={"by tags": {}, "by routing key": {"filter": "routing_key"}},
        problems=("AlreadyExists", "LimitExceeded"),
    ),
    f"PATCH {TOPIC}": Operation(
        tag="Topics",
        summary="Change some attributes of a topic",
        body=TopicInput,
        answers={200: answers.TopicAttributes},
        examples={"description": {"description": "what happens to orders"}},
    ),
    f"GET {TOPIC}": Operation(
        tag="Topics",
        summary="Show a topic and its counts",
        answers={200: answers.TopicWithCounts},
    ),
    "GET /topics": Operation(
        tag="Topics",
        summary="List topics",
        answers={200: answers.TopicPage},
        query=("prefix", *PAGE),
    ),
    f"DELETE {TOPIC}": Operation(
        tag="Topics", summary="Delete a topic and its subscriptions", answers={204: None}
    ),
    f"POST {TOPIC}/messages": Operation(
        tag="Topics",
        summary="Publish messages to all subscriptions that they match",
        body=PublishRequest,
        answers={201: answers.PublishedMessages, 200: answers.PublishedMessages},
        examples={"tagged": {"messages": [{**MESSAGE, "tags": ["order"]}]}},
        problems=("MessageTooLarge", "BatchTooLarge"),
    ),
    f"GET {TOPIC}/messages": Operation(
        tag="Topics",
        summary="Read a topic's messages in order",
        answers={200: answers.LogPage},
        query=LOG,
    ),
    f"GET {TOPIC}/messages/{{id}}": Operation(
        tag="Topics",
        summary="Trace what became of a message",
        answers={200: answers.MessageTrace},
        problems=("MessageNotFound",),
    ),
}

_SUBSCRIPTIONS = {
    f"PUT {SUBSCRIPTION}": Operation(
        tag="Subscriptions",
        summary="Subscribe a URL, a queue or a group of consumers",
        body=SubscriptionInput,
        answers={201: answers.NewSubscription, 200: answers.SubscriptionAttributes},
        examples={
            "a URL": {"protocol": "http", "endpoint": "https://example.com/hook"},
            "a queue": {
                "protocol": "queue",
                "endpoint": "orders",
                "filter": {"tags": ["order"]},
            },
            "consumers": {"protocol": "pull", "filter": {"sql": "price BETWEEN 10 AND 100"}},
        },
        problems=("AlreadyExists", "InvalidFilter", "LimitExceeded", "QueueNotFound"),
    ),
    f"PATCH {SUBSCRIPTION}": Operation(
        tag="Subscriptions",
        summary="Change a subscription for all its members",
        body=SubscriptionInput,
        answers={200: answers.SubscriptionAttributes},
        examples={"another ladder": {"retry": {"policy": "custom", "waits": [1, 10, 60]}}},
        problems=("InvalidFilter", "QueueNotFound"),
    ),
    f"GET {SUBSCRIPTION}": Operation(
        tag="Subscriptions",
        summary="Show a subscription, what waits for it, and how delivering goes",
        answers={200: answers.SubscriptionWithState},
    ),
    f"DELETE {SUBSCRIPTION}": Operation(
        tag="Subscriptions", summary="Unsubscribe", answers={204: None}
    ),
    f"GET {TOPIC}/subscriptions": Operation(
        tag="Subscriptions",
        summary="List the subscriptions of a topic",
        answers={200: answers.SubscriptionPage},
        query=PAGE,
    ),
    f"POST {SUBSCRIPTION}/confirm": Operation(
        tag="Subscriptions",
        summary="Confirm an endpoint by its token; without one, have a new token sent",
        body=ConfirmRequest,
        answers={204: None},
        examples={"with the token that came": {"token": "local.0123456789abcdef"}, "anew": {}},
        needs_key=None,
    ),
    f"GET {SUBSCRIPTION}/messages": Operation(
        tag="Subscriptions",
        summary="Read, in order, what a broadcasting subscription's filter lets through",
        answers={200: answers.LogPage},
        query=LOG,
    ),
    **_of_messages(SUBSCRIPTION, "Subscriptions"),
}

_ACCESS = {
    f"PUT {QUEUE}/grants/{{account}}": Operation(
        tag="Access",
        summary="Let another account use a queue",
        body=GrantRequest,
        answers={200: answers.GrantState},
        examples={"sending": {"permission": "send"}},
    ),
    f"GET {QUEUE}/grants/{{account}}": Operation(
        tag="Access",
        summary="Show what an account may do with a queue",
        answers={200: answers.GrantState},
        problems=("GrantNotFound",),
    ),
    f"DELETE {QUEUE}/grants/{{account}}": Operation(
        tag="Access",
        summary="Take a grant back",
        answers={204: None},
        problems=("GrantNotFound",),
    ),
    f"GET {QUEUE}/grants": Operation(
        tag="Access",
        summary="List the grants on a queue",
        answers={200: answers.GrantPage},
        query=PAGE,
    ),
    "GET /grants": Operation(
        tag="Access",
        summary="List what other accounts share with the caller's",
        answers={200: answers.SharedPage},
        query=PAGE,
    ),
    "POST /keys": Operation(
        tag="Access",
        summary="Make an access key; its secret is shown once",
        body=KeyRequest,
        answers={201: answers.NewKey},
        examples={"of the own account": {"description": "for the nightly run"}},
    ),
    "GET /keys": Operation(
        tag="Access",
        summary="List access keys",
        answers={200: answers.KeyPage},
        query=("account", *PAGE),
    ),
    "DELETE /keys/{id}": Operation(
        tag="Access",
        summary="Delete an access key",
        answers={204: None},
        problems=("KeyNotFound", "InUse"),
    ),
}

_SERVICE = {
    "GET /reports/billing": Operation(
        tag="Reports",
        summary="Show the account's invoices",
        answers={200: answers.BillingReport},
        query=("from", "to"),
        problems=("ReportNotFound", "LimitExceeded"),
    ),
    "GET /reports/backlog": Operation(
        tag="Reports",
        summary="Show what stood in the account's queues and subscriptions",
        answers={200: answers.BacklogReport},
        query=("at",),
        problems=("ReportNotFound", "LimitExceeded"),
    ),
    "GET /health": Operation(
        tag="Service",
        summary="Show that the service answers, and what time it is there",
        answers={200: answers.Health},
        needs_key=False,
    ),
    "GET /openapi.json": Operation(
        tag="Service",
        summary="This document",
        answers={200: ("application/json",)},
        needs_key=False,
    ),
    "GET /docs": Operation(
        tag="Service", summary="A page to try it", answers={200: ("text/html",)}, needs_key=False
    ),
    "GET /docs/{asset}": Operation(
        tag="Service",
        summary="A file of that page",
        answers={200: tuple(sorted(ASSETS.values()))},
        problems=("NotFound",),
        needs_key=False,
    ),
}

OPERATIONS: dict[str, Operation] = (
    _QUEUES | _MESSAGES | _RECEIVERS | _TOPICS | _SUBSCRIPTIONS | _ACCESS | _SERVICE
)
