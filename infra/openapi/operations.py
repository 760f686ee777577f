"""Each route's summary, body, query and problems; its path and its answers are in the code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cirrusmq.model.queue import QueueInput, ReceiverChangeInput, ReceiverInput
from cirrusmq.model.topic import SubscriptionInput, TopicInput
from cirrusmq.operations.redrive import RedriveRequest
from cirrusmq.operations.rewind import RewindRequest
from cirrusmq.publishing.half_messages.checks import HalfReceiveRequest
from cirrusmq.publishing.matching import MatchRequest
from cirrusmq.publishing.publish import PublishRequest
from cirrusmq.receiving.lookup.cancel import RescheduleRequest
from cirrusmq.receiving.peek import PeekRequest
from cirrusmq.receiving.receive import ReceiveRequest
from cirrusmq.receiving.replies.answer import ReplyRequest
from cirrusmq.schedules.schedule import ScheduleInput
from cirrusmq.sending.send import SendRequest
from cirrusmq.settlement.dead_letter import DeadLetterRequest
from cirrusmq.settlement.delete import DeleteRequest
from cirrusmq.settlement.visibility import GiveBackRequest, VisibilityRequest
from cirrusmq.subscriptions.confirmations import ConfirmRequest
from cirrusmq.subscriptions.replays import GroupRewindRequest, RedeliverRequest
from cirrusmq_lambda.http import NoFields
from cirrusmq_lambda.routes.access import (
    GrantRequest,
    KeyRequest,
    RotateRequest,
    TopicGrantRequest,
)
from cirrusmq_lambda.routes.publishing import HandleRequest

QUEUE = "/queues/{queue}"
TOPIC = "/topics/{topic}"
SUBSCRIPTION = f"{TOPIC}/subscriptions/{{subscription}}"

MESSAGE = {"body": "hello", "attributes": {"region": "shanghai"}}
RECEIPTS = {"receipts": ["l6wwYzVncXZz"]}
HANDLE = {"handle": "Half-01M7XGA279E8FYRFWHK8M956SX"}
PAGE = ("limit", "cursor")
LOG = ("after", "limit")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One route."""

    tag: str
    summary: str
    body: type | None = None
    examples: Mapping[str, Any] = field(default_factory=dict)
    """Bodies that are worth trying, by name."""
    query: Sequence[str] = ()
    asked: Mapping[str, str] = field(default_factory=dict)
    """A query that is worth trying, of a call that answers nothing without one."""
    traced: bool = False
    """True if its messages take the trace context of the call's headers."""
    problems: Sequence[str] = ()
    """Codes that follow neither from its path nor from its body."""
    needs_key: bool | None = True
    """None: a key or a token."""


def _receipts(
    holder: str, tag: str, call: str, summary: str, body: type, example: Any
) -> dict[str, Operation]:
    operation = Operation(
        tag=tag,
        summary=summary,
        body=body,
        examples={call: example},
        problems=("BatchTooLarge",),
    )
    return {f"POST {holder}/messages/{call}": operation}


def _grants(
    holder: str, kind: str, body: type, examples: dict[str, Any], afterwards: str = ""
) -> dict[str, Operation]:
    """The grants on a queue, or on a topic."""
    one = f"{holder}/grants/{{account}}"
    return {
        f"PUT {one}": Operation(
            tag="Access", summary=f"Let another account use a {kind}", body=body, examples=examples
        ),
        f"GET {one}": Operation(
            tag="Access",
            summary=f"Show an account's permission on a {kind}",
            problems=("GrantNotFound",),
        ),
        f"DELETE {one}": Operation(
            tag="Access", summary=f"Take a grant back{afterwards}", problems=("GrantNotFound",)
        ),
        f"GET {holder}/grants": Operation(
            tag="Access", summary=f"List the grants on a {kind}", query=PAGE
        ),
    }


def _of_messages(holder: str, tag: str) -> dict[str, Operation]:
    """The calls that queues and pull subscriptions have in common."""
    return {
        f"POST {holder}/messages/receive": Operation(
            tag=tag,
            summary="Receive messages and hold them for a while; before that, delete others",
            body=ReceiveRequest,
            examples={
                "wait for up to 16": {"max": 16, "wait_seconds": 20},
                "and delete what is done": {"max": 16, "delete": RECEIPTS["receipts"]},
                "by an attribute": {"max": 16, "where": {"name": "color", "value": "red"}},
            },
            problems=(
                *("BatchTooLarge", "MessageTooLarge"),
                *(("ReceiverNotFound",) if holder == QUEUE else ()),
            ),
        ),
        f"POST {holder}/messages/peek": Operation(
            tag=tag,
            summary="Look at messages of one state without claiming them",
            body=PeekRequest,
            examples={
                "ten": {"max": 10},
                "old dead letters": {"dead_letter": {"older_than_seconds": 3_600}},
                "in flight": {"max": 16, "state": "inactive"},
            },
            problems=("MessageTooLarge",),
        ),
        **_receipts(
            holder,
            tag,
            "delete",
            "Delete messages that are done",
            DeleteRequest,
            RECEIPTS,
        ),
        **_receipts(
            holder,
            tag,
            "visibility",
            "Hold messages for longer or shorter",
            VisibilityRequest,
            {"entries": [{"receipt": "l6wwYzVncXZz", "visibility_timeout_seconds": 60}]},
        ),
        **_receipts(
            holder,
            tag,
            "give-back",
            "Give messages back, to be received again",
            GiveBackRequest,
            {**RECEIPTS, "delay_seconds": 10},
        ),
        **_receipts(
            holder,
            tag,
            "dead-letter",
            "Give messages up for good",
            DeadLetterRequest,
            {**RECEIPTS, "reason": "cannot be read"},
        ),
    }


_QUEUES = {
    f"PUT {QUEUE}": Operation(
        tag="Queues",
        summary="Create a queue, or find one with the attributes that are given",
        body=QueueInput,
        examples={
            "defaults": {},
            "with dead letters": {"dead_letter": {"queue": "failed", "max_receives": 5}},
        },
        query=("exact",),
        problems=("AlreadyExists", "LimitExceeded"),
    ),
    f"PATCH {QUEUE}": Operation(
        tag="Queues",
        summary="Change some attributes of a queue",
        body=QueueInput,
        examples={"longer timeout": {"visibility_timeout_seconds": 120}},
        problems=("InUse",),
    ),
    f"GET {QUEUE}": Operation(
        tag="Queues",
        summary="Show a queue and its counts",
    ),
    "GET /queues": Operation(
        tag="Queues",
        summary="List queues",
        query=("prefix", *PAGE),
    ),
    f"DELETE {QUEUE}": Operation(tag="Queues", summary="Delete a queue", problems=("InUse",)),
    f"POST {QUEUE}/purge": Operation(
        tag="Queues",
        summary="Remove everything that was sent before this call",
        body=NoFields,
    ),
    f"POST {QUEUE}/rewind": Operation(
        tag="Queues",
        summary="Make deleted messages active again, from a time on; with one partition, and in"
        " each group of an ordered queue, in order of sending",
        body=RewindRequest,
        examples={
            "to a time": {"to": "2026-11-20T08:00:00.000Z"},
            "in unix seconds": {"to": 1795161600},
        },
        problems=("NotRewindable",),
    ),
    f"POST {QUEUE}/redrive": Operation(
        tag="Queues",
        summary="Send dead letters back, or move any queue's active messages to another one",
        body=RedriveRequest,
        examples={
            "to their sources": {},
            "some, to one queue": {"to": "q", "max_messages": 100},
            "a subscription's": {"dead_letter": {"source_queue": "news", "subscription": "web"}},
        },
        problems=("BatchTooLarge",),
    ),
}

_OPERATIONS = {
    "GET /operations": Operation(
        tag="Operations",
        summary="List the purges, rewinds, redrives, backfills and replays of the last seven days",
        query=("state", "kind", "queue", "topic", *PAGE),
    ),
    "GET /operations/{id}": Operation(
        tag="Operations",
        summary="Show how far an operation is",
        problems=("OperationNotFound",),
    ),
}

_SCHEDULES = {
    "PUT /schedules/{schedule}": Operation(
        tag="Schedules",
        summary="Send a message at times of a cron expression, or every n seconds",
        body=ScheduleInput,
        examples={
            "each working day at 8": {
                "queue": "orders",
                "cron": "0 8 * * 1-5",
                "time_zone": "Europe/Berlin",
                "message": {"body": "report"},
            },
            "every five minutes": {
                "queue": "orders",
                "every_seconds": 300,
                "message": {"body": "look"},
            },
        },
        problems=(
            *("AlreadyExists", "LimitExceeded", "MessageTooLarge", "QueueNotFound"),
            "TopicNotFound",
        ),
    ),
    "GET /schedules/{schedule}": Operation(
        tag="Schedules", summary="Show a schedule, its next time and its last error"
    ),
    "GET /schedules": Operation(
        tag="Schedules", summary="List the account's schedules", query=("prefix", *PAGE)
    ),
    "DELETE /schedules/{schedule}": Operation(tag="Schedules", summary="Delete a schedule"),
}

_RECEIVERS = {
    f"PUT {QUEUE}/receivers/{{receiver}}": Operation(
        tag="Receivers",
        summary="Add an independent receiver to a queue",
        body=ReceiverInput,
        examples={"from now on": {}, "with what is there": {"start": "earliest"}},
        query=("exact",),
        problems=("AlreadyExists", "LimitExceeded"),
    ),
    f"PATCH {QUEUE}/receivers/{{receiver}}": Operation(
        tag="Receivers",
        summary="Change some attributes of a receiver",
        body=ReceiverChangeInput,
        examples={"pause": {"paused": True}, "a rate": {"receive_rate": 100}},
    ),
    f"GET {QUEUE}/receivers/{{receiver}}": Operation(
        tag="Receivers",
        summary="Show a receiver and its counts",
    ),
    f"GET {QUEUE}/receivers": Operation(
        tag="Receivers",
        summary="List the receivers of a queue",
        query=PAGE,
    ),
    f"DELETE {QUEUE}/receivers/{{receiver}}": Operation(
        tag="Receivers", summary="Remove a receiver"
    ),
    f"GET {QUEUE}/consumers": Operation(
        tag="Receivers",
        summary="List the access keys that received within seven days, and when last",
        query=("receiver", *PAGE),
        problems=("ReceiverNotFound",),
    ),
}

_MESSAGES = {
    f"POST {QUEUE}/messages": Operation(
        tag="Messages",
        summary="Send messages",
        body=SendRequest,
        traced=True,
        examples={
            "one": {"messages": [MESSAGE]},
            "later": {"messages": [{"body": "hello", "delay_seconds": 60}]},
        },
        problems=("MessageTooLarge", "BatchTooLarge", "LimitExceeded"),
    ),
    f"GET {QUEUE}/messages/{{id}}": Operation(
        tag="Messages",
        summary="Show a message's state, found within 50 read units; with `body=true` its body",
        query=("receiver", "group", "body"),
        problems=("MessageNotFound", "MessageTooLarge", "ReceiverNotFound"),
    ),
    f"DELETE {QUEUE}/messages/{{id}}": Operation(
        tag="Messages",
        summary="Cancel a message that was not received; from a receiver, if one is named",
        query=("receiver", "group"),
        problems=("MessageNotFound", "ReceiverNotFound", "Conflict"),
    ),
    f"PATCH {QUEUE}/messages/{{id}}": Operation(
        tag="Messages",
        summary="Change when a message is due that was not received",
        body=RescheduleRequest,
        examples={
            "from now": {"delay_seconds": 600},
            "at a time": {"deliver_at": "2026-11-20T08:00:00.000Z"},
        },
        query=("receiver", "group"),
        problems=("MessageNotFound", "ReceiverNotFound", "Conflict"),
    ),
    f"POST {QUEUE}/messages/{{id}}/reply": Operation(
        tag="Messages",
        summary="Reply to a message that asks for it, and delete the message",
        body=ReplyRequest,
        examples={
            "a reply": {"receipt": "l6wwYzVncXZz", "reply": {"body": "4"}},
            "with attributes": {
                "receipt": "l6wwYzVncXZz",
                "reply": {"body": "none", "attributes": {"error": "no such order"}},
            },
        },
        problems=("ReceiptExpired", "ReplyTooLate", "Conflict", "MessageTooLarge"),
    ),
    f"GET {QUEUE}/messages/{{id}}/reply": Operation(
        tag="Messages",
        summary="Wait for the reply to a message that the caller's account sent with `reply`",
        query=("reply_by", "wait_seconds"),
        asked={"reply_by": "2026-11-20T08:00:00.000Z"},
        problems=("ReplyNotFound",),
    ),
    **_of_messages(QUEUE, "Messages"),
}

_TOPICS = {
    f"PUT {TOPIC}": Operation(
        tag="Topics",
        summary="Create a topic, or find one with the attributes that are given",
        body=TopicInput,
        examples={"by tags": {}, "by routing key": {"filter": "routing_key"}},
        query=("exact",),
        problems=("AlreadyExists", "LimitExceeded"),
    ),
    f"PATCH {TOPIC}": Operation(
        tag="Topics",
        summary="Change some attributes of a topic",
        body=TopicInput,
        examples={"description": {"description": "what happens to orders"}},
    ),
    f"GET {TOPIC}": Operation(
        tag="Topics",
        summary="Show a topic and its counts",
    ),
    "GET /topics": Operation(
        tag="Topics",
        summary="List topics",
        query=("prefix", *PAGE),
    ),
    f"DELETE {TOPIC}": Operation(tag="Topics", summary="Delete a topic and its subscriptions"),
    f"POST {TOPIC}/messages": Operation(
        tag="Topics",
        summary="Publish messages to all subscriptions that they match",
        body=PublishRequest,
        traced=True,
        examples={
            "tagged": {"messages": [{**MESSAGE, "tags": ["order"]}]},
            "later": {"messages": [{**MESSAGE, "delay_seconds": 3_600}]},
            "to be decided": {"messages": [MESSAGE], "transaction": {"check_after_seconds": 30}},
        },
        problems=("MessageTooLarge", "BatchTooLarge"),
    ),
    f"POST {TOPIC}/match": Operation(
        tag="Topics",
        summary="Show which subscriptions would get messages, or which of them a filter lets pass",
        body=MatchRequest,
        traced=True,
        examples={
            "tagged": {"messages": [{**MESSAGE, "tags": ["order"]}]},
            "a filter that is tried": {
                "messages": [{**MESSAGE, "attributes": {"amount": "250"}}],
                "filter": {"sql": "amount > 100"},
            },
        },
        problems=("MessageTooLarge", "BatchTooLarge", "InvalidFilter"),
    ),
    f"POST {TOPIC}/half/commit": Operation(
        tag="Topics",
        summary="Publish what was prepared with transaction",
        body=HandleRequest,
        examples={"a handle": HANDLE},
        problems=("Conflict", "MessageNotFound"),
    ),
    f"POST {TOPIC}/half/rollback": Operation(
        tag="Topics",
        summary="Drop what was prepared with transaction",
        body=HandleRequest,
        examples={"a handle": HANDLE},
        problems=("Conflict", "MessageNotFound"),
    ),
    f"POST {TOPIC}/half/receive": Operation(
        tag="Topics",
        summary="Receive what producers prepared and have not decided",
        body=HalfReceiveRequest,
        examples={"receive": {"max": 16, "visibility_timeout_seconds": 30}},
    ),
    f"GET {TOPIC}/messages": Operation(
        tag="Topics",
        summary="Read a topic's messages in order",
        query=LOG,
        problems=("MessageTooLarge",),
    ),
    f"GET {TOPIC}/messages/{{id}}": Operation(
        tag="Topics",
        summary="Trace a message: its state at each subscription; with `body=true` its body",
        query=("body",),
        problems=("MessageNotFound", "MessageTooLarge"),
    ),
}

_SUBSCRIPTIONS = {
    f"PUT {SUBSCRIPTION}": Operation(
        tag="Subscriptions",
        summary="Subscribe a URL, a queue or a group of consumers",
        body=SubscriptionInput,
        examples={
            "a URL": {"protocol": "http", "endpoint": "https://example.com/hook"},
            "a queue": {
                "protocol": "queue",
                "endpoint": "orders",
                "filter": {"tags": ["order"]},
            },
            "consumers": {
                "protocol": "pull",
                "filter": {"tags": ["order"], "sql": "price BETWEEN 10 AND 100"},
            },
            "consumers of what the log has, too": {"protocol": "pull", "start": "earliest"},
        },
        query=("exact",),
        problems=("AlreadyExists", "InvalidFilter", "LimitExceeded", "QueueNotFound"),
    ),
    f"PATCH {SUBSCRIPTION}": Operation(
        tag="Subscriptions",
        summary="Change a subscription for all its members",
        body=SubscriptionInput,
        examples={"other waits": {"retry": {"policy": "custom", "waits": [1, 10, 60]}}},
        problems=("InvalidFilter", "QueueNotFound"),
    ),
    f"GET {SUBSCRIPTION}": Operation(
        tag="Subscriptions",
        summary="Show a subscription, its counts, and the state of its deliveries",
    ),
    f"GET {SUBSCRIPTION}/consumers": Operation(
        tag="Subscriptions",
        summary="List the access keys that received from a group within seven days, and when last",
        query=PAGE,
    ),
    f"DELETE {SUBSCRIPTION}": Operation(tag="Subscriptions", summary="Unsubscribe"),
    f"GET {TOPIC}/subscriptions": Operation(
        tag="Subscriptions",
        summary="List the subscriptions of a topic",
        query=PAGE,
    ),
    f"POST {SUBSCRIPTION}/confirm": Operation(
        tag="Subscriptions",
        summary="Confirm an endpoint by its token; without one, have a new token sent",
        body=ConfirmRequest,
        examples={"with the token that came": {"token": "local.0123456789abcdef"}, "anew": {}},
        needs_key=None,
    ),
    f"POST {SUBSCRIPTION}/rewind": Operation(
        tag="Subscriptions",
        summary="Give a group everything published from a time on once more",
        body=GroupRewindRequest,
        examples={"to a time": {"to": "2026-11-20T08:00:00.000Z"}},
        problems=("NotRewindable", "LimitExceeded"),
    ),
    f"POST {SUBSCRIPTION}/redeliver": Operation(
        tag="Subscriptions",
        summary="Deliver messages of the last day to a URL or a group once more, by their ids",
        body=RedeliverRequest,
        examples={"one": {"ids": ["Msg-01M7XV36R3RBNQ643TZT3ZMKWA0"]}},
        problems=("MessageNotFound", "Conflict"),
    ),
    f"POST {SUBSCRIPTION}/secret": Operation(
        tag="Subscriptions",
        summary="Show the secret that signs what a URL gets, as it is since its last turn-over",
        body=NoFields,
    ),
    f"POST {SUBSCRIPTION}/pause": Operation(
        tag="Subscriptions",
        summary="Pause a URL or a group: what arrives waits, within its life",
        body=NoFields,
    ),
    f"POST {SUBSCRIPTION}/resume": Operation(
        tag="Subscriptions",
        summary="Resume a paused URL or group, beginning with what waits",
        body=NoFields,
    ),
    f"POST {SUBSCRIPTION}/retry": Operation(
        tag="Subscriptions",
        summary="Post what waits for its retry to a URL now, each message once",
        body=NoFields,
    ),
    f"GET {SUBSCRIPTION}/messages": Operation(
        tag="Subscriptions",
        summary="Read, in order, the messages that a broadcasting subscription's filter selects",
        query=LOG,
        problems=("MessageTooLarge",),
    ),
    **_of_messages(SUBSCRIPTION, "Subscriptions"),
}

_ACCESS = {
    **_grants(QUEUE, "queue", GrantRequest, {"sending": {"permission": "send"}}),
    **_grants(
        TOPIC,
        "topic",
        TopicGrantRequest,
        {"publishing": {"permission": "publish"}},
        "; subscriptions that the account made are still there",
    ),
    "GET /grants": Operation(
        tag="Access",
        summary="List the grants of other accounts to the caller's",
        query=PAGE,
    ),
    "POST /keys": Operation(
        tag="Access",
        summary="Make an access key; its secret is shown once",
        body=KeyRequest,
        examples={
            "of the own account": {"description": "for the nightly run"},
            "to send and no more": {
                "scope": {"send": {"queues": ["orders"]}},
                "expires_at": "2027-11-20T00:00:00.000Z",
            },
            "for the SDK of SQS": {"signing": True},
        },
    ),
    "GET /keys": Operation(
        tag="Access",
        summary="List access keys",
        query=("account", *PAGE),
    ),
    "DELETE /keys/{id}": Operation(
        tag="Access",
        summary="Delete an access key",
        problems=("KeyNotFound", "InUse"),
    ),
    "POST /keys/{id}/rotate": Operation(
        tag="Access",
        summary="Give an access key a new secret; the one before is good for a while",
        body=RotateRequest,
        examples={"a day for both": {"grace_seconds": 86_400}},
        problems=("KeyNotFound",),
    ),
    "GET /audit": Operation(
        tag="Access",
        summary="List the changes of the last 90 days: which key made which call",
        query=("from", "to", "key_id", "resource", *PAGE),
    ),
}

_SERVICE = {
    "GET /rates": Operation(
        tag="Reports",
        summary="Show how many messages came and went: in the last hour, or by the hour",
        query=("queues", "receivers", "topics", "subscriptions", "hours"),
        asked={"queues": "orders,failed", "subscriptions": "news/all"},
        problems=(
            "QueueNotFound",
            "ReceiverNotFound",
            "TopicNotFound",
            "SubscriptionNotFound",
        ),
    ),
    "GET /reports/billing": Operation(
        tag="Reports",
        summary="Show the account's invoices, a page of their lines",
        query=("from", "to", *PAGE),
        problems=("ReportNotFound", "LimitExceeded"),
    ),
    "GET /reports/backlog": Operation(
        tag="Reports",
        summary="Show the backlogs of the account's queues and subscriptions",
        query=("at",),
        problems=("ReportNotFound", "LimitExceeded"),
    ),
    "GET /health": Operation(
        tag="Service",
        summary="Show that the service answers, and its time",
        needs_key=False,
    ),
    "GET /endpoints": Operation(
        tag="Service",
        summary="Show the URLs that take sends, receives, deletes and publishes beside this one",
    ),
    "GET /openapi.json": Operation(
        tag="Service",
        summary="This document",
        needs_key=False,
    ),
    "GET /docs/api": Operation(tag="Service", summary="A page to try it", needs_key=False),
    "GET /docs/api/{asset}": Operation(
        tag="Service",
        summary="A file of that page",
        problems=("NotFound",),
        needs_key=False,
    ),
}

OPERATIONS: dict[str, Operation] = (
    _QUEUES
    | _MESSAGES
    | _SCHEDULES
    | _RECEIVERS
    | _TOPICS
    | _SUBSCRIPTIONS
    | _OPERATIONS
    | _ACCESS
    | _SERVICE
)
