"""Each route's body, and bodies that are worth trying; all else is beside the route itself."""

from __future__ import annotations

from collections.abc import Mapping
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
from cirrusmq.receiving.receive_request import ReceiveRequest
from cirrusmq.receiving.replies.answer import ReplyRequest
from cirrusmq.schedules.schedule import ScheduleInput
from cirrusmq.sending.send_request import SendRequest
from cirrusmq.settlement.dead_letter import DeadLetterRequest
from cirrusmq.settlement.delete import DeleteRequest
from cirrusmq.settlement.visibility import GiveBackRequest, VisibilityRequest
from cirrusmq.subscriptions.confirmations import ConfirmRequest
from cirrusmq.subscriptions.replays import GroupRewindRequest, RedeliverRequest
from cirrusmq_lambda.http import NoFields
from cirrusmq_lambda.routes.access import GrantRequest, KeyRequest, RotateRequest, TopicGrantRequest
from cirrusmq_lambda.routes.publishing import HandleRequest

QUEUE = "/queues/{queue}"
TOPIC = "/topics/{topic}"
SUBSCRIPTION = f"{TOPIC}/subscriptions/{{subscription}}"

MESSAGE = {"body": "hello", "attributes": {"region": "shanghai"}}
RECEIPTS = {"receipts": ["l6wwYzVncXZz"]}
HANDLE = {"handle": "Half-01M7XGA279E8FYRFWHK8M956SX"}


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One route."""

    body: type | None = None
    examples: Mapping[str, Any] = field(default_factory=dict)
    """Bodies that are worth trying, by name."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """A query that is worth trying, of a call that answers nothing without one."""
    traced: bool = False
    """True if its messages take the trace context of the call's headers."""
    takes_token: bool = False
    """True if a token in its body is as good as a key."""


def _receipts(holder: str, call: str, body: type, example: Any) -> dict[str, Operation]:
    operation = Operation(body=body, examples={call: example})
    return {f"POST {holder}/messages/{call}": operation}


def _grants(holder: str, body: type, examples: dict[str, Any]) -> dict[str, Operation]:
    """The grants on a queue, or on a topic."""
    one = f"{holder}/grants/{{account}}"
    return {
        f"PUT {one}": Operation(body=body, examples=examples),
        f"GET {one}": Operation(),
        f"DELETE {one}": Operation(),
        f"GET {holder}/grants": Operation(),
    }


def _of_messages(holder: str) -> dict[str, Operation]:
    """The calls that queues and pull subscriptions have in common."""
    return {
        f"POST {holder}/messages/receive": Operation(
            body=ReceiveRequest,
            examples={
                "wait for up to 16": {"max": 16, "wait_seconds": 20},
                "and delete what is done": {"max": 16, "delete": RECEIPTS["receipts"]},
                "by an attribute": {"max": 16, "where": {"name": "color", "value": "red"}},
            },
        ),
        f"POST {holder}/messages/peek": Operation(
            body=PeekRequest,
            examples={
                "ten": {"max": 10},
                "old dead letters": {"dead_letter": {"older_than_seconds": 3_600}},
                "in flight": {"max": 16, "state": "inactive"},
            },
        ),
        **_receipts(holder, "delete", DeleteRequest, RECEIPTS),
        **_receipts(
            holder,
            "visibility",
            VisibilityRequest,
            {"entries": [{"receipt": "l6wwYzVncXZz", "visibility_timeout_seconds": 60}]},
        ),
        **_receipts(holder, "give-back", GiveBackRequest, {**RECEIPTS, "delay_seconds": 10}),
        **_receipts(
            holder, "dead-letter", DeadLetterRequest, {**RECEIPTS, "reason": "cannot be read"}
        ),
    }


_QUEUES = {
    f"PUT {QUEUE}": Operation(
        body=QueueInput,
        examples={
            "defaults": {},
            "with dead letters": {"dead_letter": {"queue": "failed", "max_receives": 5}},
        },
    ),
    f"PATCH {QUEUE}": Operation(
        body=QueueInput, examples={"longer timeout": {"visibility_timeout_seconds": 120}}
    ),
    f"GET {QUEUE}": Operation(),
    "GET /queues": Operation(),
    f"DELETE {QUEUE}": Operation(),
    f"POST {QUEUE}/purge": Operation(body=NoFields),
    f"POST {QUEUE}/rewind": Operation(
        body=RewindRequest,
        examples={
            "to a time": {"to": "2026-11-20T08:00:00.000Z"},
            "in unix seconds": {"to": 1795161600},
        },
    ),
    f"POST {QUEUE}/redrive": Operation(
        body=RedriveRequest,
        examples={
            "to their sources": {},
            "some, to one queue": {"to": "q", "max_messages": 100},
            "a subscription's": {"dead_letter": {"source_queue": "news", "subscription": "web"}},
        },
    ),
}

_OPERATIONS = {"GET /operations": Operation(), "GET /operations/{id}": Operation()}

_SCHEDULES = {
    "PUT /schedules/{schedule}": Operation(
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
    ),
    "GET /schedules/{schedule}": Operation(),
    "GET /schedules": Operation(),
    "DELETE /schedules/{schedule}": Operation(),
}

_RECEIVERS = {
    f"PUT {QUEUE}/receivers/{{receiver}}": Operation(
        body=ReceiverInput,
        examples={"from now on": {}, "with what is there": {"start": "earliest"}},
    ),
    f"PATCH {QUEUE}/receivers/{{receiver}}": Operation(
        body=ReceiverChangeInput,
        examples={"pause": {"paused": True}, "a rate": {"receive_rate": 100}},
    ),
    f"GET {QUEUE}/receivers/{{receiver}}": Operation(),
    f"GET {QUEUE}/receivers": Operation(),
    f"DELETE {QUEUE}/receivers/{{receiver}}": Operation(),
    f"GET {QUEUE}/consumers": Operation(),
}

_MESSAGES = {
    f"POST {QUEUE}/messages": Operation(
        body=SendRequest,
        traced=True,
        examples={
            "one": {"messages": [MESSAGE]},
            "later": {"messages": [{"body": "hello", "delay_seconds": 60}]},
        },
    ),
    f"GET {QUEUE}/messages/{{id}}": Operation(),
    f"DELETE {QUEUE}/messages/{{id}}": Operation(),
    f"PATCH {QUEUE}/messages/{{id}}": Operation(
        body=RescheduleRequest,
        examples={
            "from now": {"delay_seconds": 600},
            "at a time": {"deliver_at": "2026-11-20T08:00:00.000Z"},
        },
    ),
    f"POST {QUEUE}/messages/{{id}}/reply": Operation(
        body=ReplyRequest,
        examples={
            "a reply": {"receipt": "l6wwYzVncXZz", "reply": {"body": "4"}},
            "with attributes": {
                "receipt": "l6wwYzVncXZz",
                "reply": {"body": "none", "attributes": {"error": "no such order"}},
            },
        },
    ),
    f"GET {QUEUE}/messages/{{id}}/reply": Operation(asked={"reply_by": "2026-11-20T08:00:00.000Z"}),
    **_of_messages(QUEUE),
}

_TOPICS = {
    f"PUT {TOPIC}": Operation(
        body=TopicInput, examples={"by tags": {}, "by routing key": {"filter": "routing_key"}}
    ),
    f"PATCH {TOPIC}": Operation(
        body=TopicInput, examples={"description": {"description": "what happens to orders"}}
    ),
    f"GET {TOPIC}": Operation(),
    "GET /topics": Operation(),
    f"DELETE {TOPIC}": Operation(),
    f"POST {TOPIC}/messages": Operation(
        body=PublishRequest,
        traced=True,
        examples={
            "tagged": {"messages": [{**MESSAGE, "tags": ["order"]}]},
            "later": {"messages": [{**MESSAGE, "delay_seconds": 3_600}]},
            "to be decided": {"messages": [MESSAGE], "transaction": {"check_after_seconds": 30}},
        },
    ),
    f"POST {TOPIC}/match": Operation(
        body=MatchRequest,
        traced=True,
        examples={
            "tagged": {"messages": [{**MESSAGE, "tags": ["order"]}]},
            "a filter that is tried": {
                "messages": [{**MESSAGE, "attributes": {"amount": "250"}}],
                "filter": {"sql": "amount > 100"},
            },
        },
    ),
    f"POST {TOPIC}/half/commit": Operation(body=HandleRequest, examples={"a handle": HANDLE}),
    f"POST {TOPIC}/half/rollback": Operation(body=HandleRequest, examples={"a handle": HANDLE}),
    f"POST {TOPIC}/half/receive": Operation(
        body=HalfReceiveRequest, examples={"receive": {"max": 16, "visibility_timeout_seconds": 30}}
    ),
    f"GET {TOPIC}/messages": Operation(),
    f"GET {TOPIC}/messages/{{id}}": Operation(),
}

_SUBSCRIPTIONS = {
    f"PUT {SUBSCRIPTION}": Operation(
        body=SubscriptionInput,
        examples={
            "a URL": {"protocol": "http", "endpoint": "https://example.com/hook"},
            "a queue": {"protocol": "queue", "endpoint": "orders", "filter": {"tags": ["order"]}},
            "consumers": {
                "protocol": "pull",
                "filter": {"tags": ["order"], "sql": "price BETWEEN 10 AND 100"},
            },
            "consumers of what the log has, too": {"protocol": "pull", "start": "earliest"},
        },
    ),
    f"PATCH {SUBSCRIPTION}": Operation(
        body=SubscriptionInput,
        examples={"other waits": {"retry": {"policy": "custom", "waits": [1, 10, 60]}}},
    ),
    f"GET {SUBSCRIPTION}": Operation(),
    f"GET {SUBSCRIPTION}/consumers": Operation(),
    f"DELETE {SUBSCRIPTION}": Operation(),
    f"GET {TOPIC}/subscriptions": Operation(),
    f"POST {SUBSCRIPTION}/confirm": Operation(
        body=ConfirmRequest,
        examples={"with the token that came": {"token": "local.0123456789abcdef"}, "anew": {}},
        takes_token=True,
    ),
    f"POST {SUBSCRIPTION}/rewind": Operation(
        body=GroupRewindRequest, examples={"to a time": {"to": "2026-11-20T08:00:00.000Z"}}
    ),
    f"POST {SUBSCRIPTION}/redeliver": Operation(
        body=RedeliverRequest, examples={"one": {"ids": ["Msg-01M7XV36R3RBNQ643TZT3ZMKWA0"]}}
    ),
    f"POST {SUBSCRIPTION}/secret": Operation(body=NoFields),
    f"POST {SUBSCRIPTION}/pause": Operation(body=NoFields),
    f"POST {SUBSCRIPTION}/resume": Operation(body=NoFields),
    f"POST {SUBSCRIPTION}/retry": Operation(body=NoFields),
    f"GET {SUBSCRIPTION}/messages": Operation(),
    **_of_messages(SUBSCRIPTION),
}

_ACCESS = {
    **_grants(QUEUE, GrantRequest, {"sending": {"permission": "send"}}),
    **_grants(TOPIC, TopicGrantRequest, {"publishing": {"permission": "publish"}}),
    "GET /grants": Operation(),
    "POST /keys": Operation(
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
    "GET /keys": Operation(),
    "DELETE /keys/{id}": Operation(),
    "POST /keys/{id}/rotate": Operation(
        body=RotateRequest, examples={"a day for both": {"grace_seconds": 86_400}}
    ),
    "GET /audit": Operation(),
}

_SERVICE = {
    "GET /rates": Operation(asked={"queues": "orders,failed", "subscriptions": "news/all"}),
    "GET /reports/billing": Operation(),
    "GET /reports/backlog": Operation(),
    "GET /health": Operation(),
    "GET /endpoints": Operation(),
    "GET /openapi.json": Operation(),
    "GET /docs/api": Operation(),
    "GET /docs/api/{asset}": Operation(),
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
