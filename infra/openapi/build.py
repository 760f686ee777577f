"""Puts the document together: paths and answers from the routes, schemas from the structs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import NODEFAULT
from msgspec.structs import FieldInfo

from cirrusmq import __version__
from cirrusmq.base import errors
from cirrusmq.base.limits import (
    LOG_ENTRIES,
    LOG_ENTRIES_DEFAULT,
    PAGE_ENTRIES,
    PAGE_ENTRIES_DEFAULT,
    RATES_HOURS,
    RATES_NAMES,
    RECEIVE_WAIT_SECONDS,
    REPORT_LINES,
)
from cirrusmq.model.invoke import Invoke, InvokeInput
from cirrusmq.model.queue import QueueAttributes, QueueInput, ReceiverInput
from cirrusmq.model.topic import Subscription, SubscriptionInput, TopicAttributes, TopicInput
from cirrusmq.model.trace_context import TRACEPARENT, TRACESTATE
from cirrusmq.queues.operations import Kind, State
from cirrusmq.queues.receiver_log import LATEST
from cirrusmq_lambda import problems, queries
from cirrusmq_lambda.answers.body import Problem, Time
from cirrusmq_lambda.http import Route

from .fields import described
from .operations import OPERATIONS, Operation
from .policies import filter_schema, retry_schema
from .routes import Declared, answers_of
from .trial import Units
from .webhooks import schemas as webhook_schemas
from .webhooks import webhooks

_DESCRIPTION = """\
Queues and topics over HTTP. A call shows an access key as `Authorization: Bearer <id>:<secret>`;
names are those of the key's account, another account's queue is `{account}:{queue}` and its topic
`{account}:{topic}`, by a grant. Unknown fields are refused. Times are RFC 3339 in UTC with
milliseconds, durations are seconds.

A URL is posted to as `webhooks` says, by the subscription's `content_format`. In headers,
attributes and tags have `%XX` for all but visible ASCII, for `%` and for `,`.

A request has at most 1 MiB of JSON; one that brings messages 25 MiB, gzipped where that is over
6,291,556 bytes: `Content-Encoding: gzip`, `Content-Type: application/octet-stream`. An answer has
at most 4.7 MB. A message that needs more is answered alone, gzipped, to calls that say
`Accept-Encoding: gzip`; others are told `MessageTooLarge` where there is nothing else.

The units of DynamoDB that each call tells are those of the call alone, with its first example, in a
small service whose caches are warm: `x-units`. Work that follows it, as a purge's, comes on top.
"""
_TAGS = {
    "Queues": "Making, changing and emptying queues.",
    "Messages": "Sending, receiving and ending messages of a queue.",
    "Schedules": "Messages at times of a cron expression, or every n seconds.",
    "Receivers": "Receivers of a queue that each get every message.",
    "Topics": "Publishing to all who subscribe.",
    "Subscriptions": "Who gets what is published, and how.",
    "Operations": "Long work on queues and subscriptions, which goes on after its call's answer.",
    "Access": "Access keys, grants between accounts, and who changed what.",
    "Reports": "Rates of an hour or a week; billing and backlog, as the pipeline finished them.",
    "Service": "The service itself.",
}
_TAG_OF = {
    r".*/grants|/keys|/audit": "Access",
    r"/queues/{queue}/(receivers|consumers)": "Receivers",
    r"/queues/{queue}/messages": "Messages",
    r"/queues": "Queues",
    r"/topics/{topic}/subscriptions": "Subscriptions",
    r"/topics": "Topics",
    r"/schedules": "Schedules",
    r"/operations": "Operations",
    r"/rates|/reports": "Reports",
    r"/": "Service",
}
"""Tags by how a path begins; the first that fits."""
_RAISES = re.compile(r"\s+Raises\s([\w,\s]+)\.")
"""In a route's docstring: codes that follow neither from its path nor from its body."""
_PATH_PARAMETERS = {
    "queue": "a queue's name, or `account:queue`",
    "topic": "a topic's name, or `account:topic`",
    "subscription": "a subscription's name",
    "receiver": "a receiver's name",
    "schedule": "a schedule's name",
    "account": "an account's name",
    "id": "an id",
    "asset": "a file's name",
}
_NOT_FOUND = {
    "queue": "QueueNotFound",
    "topic": "TopicNotFound",
    "subscription": "SubscriptionNotFound",
    "receiver": "ReceiverNotFound",
    "schedule": "ScheduleNotFound",
}
_TRACE_HEADERS = [
    {"name": name, "in": "header", "description": text, "schema": {"type": "string"}}
    for name, text in (
        (TRACEPARENT, "W3C's trace context, an attribute of each message that has none and room"),
        (TRACESTATE, "beside it; over 512 characters it is left out"),
    )
]
_QUERY_TEXTS = {
    "prefix": "only names that begin with this, in its case",
    "cursor": "the cursor of the page before",
    "after": "a time, or the cursor of the last answer",
    "account": "another account, for an admin key",
    "receiver": "one of the queue's receivers; without it, the queue itself",
    "queue": "only of this queue",
    "topic": "only of this topic's subscriptions",
    "key_id": "only those made with this access key",
    "resource": "only of this queue, topic or key, or of what is below it: `orders/copy`",
    "group": "the message's group, in an ordered or a fair queue: bounds the search to it",
}
_QUERY_NAMES = {
    "queues": "orders,failed",
    "receivers": "orders/audit",
    "topics": "news",
    "subscriptions": "news/printer,news/web",
}
_QUERY_TIMES = {
    "/reports/billing": {"from": "first month's time", "to": "last month's time"},
    "/reports/backlog": {"at": "not after this"},
    "/audit": {"from": "not before this", "to": "not after this"},
}
_QUERY_WORDS: dict[str, Any] = {"state": State, "kind": Kind}
_MADE: dict[type, type] = {
    QueueInput: QueueAttributes,
    TopicInput: TopicAttributes,
    SubscriptionInput: Subscription,
}
"""Attributes as a caller gives them, and as they are when they are made."""
_MEDIA = "application/json"
_PROBLEM_MEDIA = "application/problem+json"
_RETRY_AFTER = "Retry-After"
_TO_REPEAT = ("429", "503")


def build(routes: Mapping[str, Route], units: Mapping[str, Units]) -> dict[str, Any]:
    """The document of these routes with their units; KeyError for one without a description."""
    shapes = list(_shapes(routes))
    _, components = msgspec.json.schema_components(
        shapes, ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for key in sorted(routes, key=_place):
        method, path = key.split(" ")
        paths.setdefault(path, {})[method.lower()] = _operation(key, routes[key], units)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CirrusMQ",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "."}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "security": [{"access_key": []}],
        "paths": paths,
        "webhooks": webhooks(),
        "components": {
            "schemas": dict(sorted(described(_completed(components)).items())),
            "headers": {
                _RETRY_AFTER: {
                    "description": "Seconds after which the call may be made again.",
                    "schema": {"type": "integer", "minimum": 1},
                }
            },
            "securitySchemes": {
                "access_key": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "<access key id>:<secret>",
                }
            },
        },
    }


def _completed(components: dict[str, Any]) -> dict[str, Any]:
    """The schemas with what the structs leave to the model, and with defaults.

    A struct of attributes that a caller gives stands for a PUT, where an absent one has its
    default if the PUT creates, and for a PATCH, where it stays as it is: `QueueInput` and
    `QueueInputChange`.
    """
    completed = components | webhook_schemas()
    completed |= {"RetryPolicy": retry_schema(), "Filter": filter_schema()}
    for schema in components.values():
        for name, ref in (("retry", "RetryPolicy"), ("filter", "Filter")):
            for each in _objects(schema.get("properties", {}).get(name, {})):
                del each["type"]
                each["$ref"] = f"#/components/schemas/{ref}"
    completed[ReceiverInput.__name__]["properties"]["start"]["default"] = LATEST
    for given, made in _MADE.items():
        change = components[given.__name__]
        completed[_change_of(given)] = change | {"title": _change_of(given)}
        completed[given.__name__] = _with_defaults(change, made)
    invoke = components[InvokeInput.__name__]
    return completed | {InvokeInput.__name__: _with_defaults(invoke, Invoke)}


def _with_defaults(given: dict[str, Any], made: type) -> dict[str, Any]:
    """The schema of what a caller gives, with the defaults of what is made of it."""
    properties = {name: dict(held) for name, held in given["properties"].items()}
    for field in msgspec.structs.fields(made):
        held, default = properties.get(field.name), _default(field)
        if held is None or default is NODEFAULT:
            continue
        if default is not None or {"type": "null"} in held.get("anyOf", ()):
            held["default"] = default
    return given | {"properties": properties}


def _objects(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The places in a property's schema that are any object."""
    for each in (schema, *schema.get("anyOf", ())):
        if each == {"type": "object"}:
            yield each


def _default(field: FieldInfo) -> Any:
    """Return the default of a field in JSON, or NODEFAULT if it has none."""
    if field.default_factory is not NODEFAULT:
        return msgspec.to_builtins(field.default_factory())
    return field.default


def _change_of(given: type) -> str:
    return f"{given.__name__}Change"


def _place(key: str) -> tuple[int, str, int]:
    """Order in the document: as the operations are described, one path together."""
    path = key.split(" ")[1]
    order = list(OPERATIONS)
    first = next(n for n, held in enumerate(order) if held.endswith(f" {path}"))
    return first, path, order.index(key)


def _shapes(routes: Mapping[str, Route]) -> Iterator[Any]:
    yield Problem
    for key, route in routes.items():
        operation = OPERATIONS[key]
        if operation.body is not None:
            yield operation.body
        yield from (shape for shape in answers_of(route).values() if isinstance(shape, type))


def _operation(key: str, route: Route, units: Mapping[str, Units]) -> dict[str, Any]:
    operation = OPERATIONS[key]
    method, path = key.split(" ")
    names = sorted(queries.KNOWN.get(key, ()))
    told: dict[str, Any] = {
        "tags": [next(tag for begins, tag in _TAG_OF.items() if re.match(begins, path))],
        "summary": _summary(route),
        "operationId": _operation_id(method, path),
        "parameters": [
            *_path_parameters(path),
            *(_query(name, path) for name in names),
            *(_TRACE_HEADERS if operation.traced else ()),
        ],
        "responses": {str(status): _answer(shape) for status, shape in answers_of(route).items()}
        | _problems(key, route),
    }
    if key in units:
        written, read = units[key]
        told["description"] = f"Costs {written:g} write and {read:g} read units."
        told["x-units"] = {"write": written, "read": read}
    if operation.body is not None:
        told["requestBody"] = _body(operation, changes=method == "PATCH")
    if key in queries.WITHOUT_KEY:
        told["security"] = [{"access_key": []}, {}] if operation.takes_token else []
    return told


def _summary(route: Route) -> str:
    """Returns the sentence that a route's docstring begins with."""
    return _RAISES.sub("", " ".join(str(route.__doc__).partition("\n\n")[0].split())).removesuffix(
        "."
    )


def _operation_id(method: str, path: str) -> str:
    words = [word for word in re.split(r"[/{}.\-]+", path) if word]
    return "_".join([method.lower(), *words])


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_PARAMETERS[name],
            "schema": {"type": "string"},
        }
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query(name: str, path: str) -> dict[str, Any]:
    if name == "limit":
        bounds, default = PAGE_ENTRIES, PAGE_ENTRIES_DEFAULT
        text = "how many at most"
        if path.endswith("/messages"):
            bounds, default = LOG_ENTRIES, LOG_ENTRIES_DEFAULT
        elif path == "/reports/billing":
            bounds, default = REPORT_LINES, REPORT_LINES[1]
            text = "how many lines of invoices at most"
        schema = {
            "type": "integer",
            "minimum": bounds[0],
            "maximum": bounds[1],
            "default": default,
        }
    elif name == "body":
        text, schema = "whether to answer the body", {"type": "boolean", "default": False}
    elif name == "reply_by":
        text, schema = "as the answer to the send has it", msgspec.json.schema(Time)
    elif name == "wait_seconds":
        least, limit = RECEIVE_WAIT_SECONDS
        text = "how long to wait for the reply"
        schema = {"type": "number", "minimum": least, "maximum": limit, "default": 0}
    elif name == "exact":
        text = "whether an attribute that is not given must be at its default; else it may be any"
        schema = {"type": "boolean", "default": False}
    elif name == "hours":
        text = "as many hours, each a number; without it twelve times five minutes"
        schema = {"type": "integer", "minimum": RATES_HOURS[0], "maximum": RATES_HOURS[1]}
    elif name in _QUERY_NAMES:
        least, limit = RATES_NAMES
        text = f"names with commas between them, in all lists {least} to {limit}"
        schema = {"type": "string", "examples": [_QUERY_NAMES[name]]}
    elif name in _QUERY_TIMES.get(path, {}):
        text, schema = _QUERY_TIMES[path][name], msgspec.json.schema(Time)
    elif name in _QUERY_WORDS:
        text, schema = f"only of this {name}", msgspec.json.schema(_QUERY_WORDS[name])
    else:
        text, schema = _QUERY_TEXTS[name], {"type": "string"}
    return {"name": name, "in": "query", "description": text, "schema": schema}


def _body(operation: Operation, *, changes: bool) -> dict[str, Any]:
    assert operation.body is not None
    media: dict[str, Any] = {"schema": _reference(operation.body)}
    if changes and operation.body in _MADE:
        media["schema"] = {"$ref": f"#/components/schemas/{_change_of(operation.body)}"}
    if operation.examples:
        media["examples"] = {
            name.replace(" ", "-"): {"summary": name, "value": value}
            for name, value in operation.examples.items()
        }
    required = any(field.required for field in msgspec.structs.fields(operation.body))
    return {"required": required, "content": {_MEDIA: media}}


def _answer(shape: Declared) -> dict[str, Any]:
    if shape is None:
        return {"description": "Done."}
    if isinstance(shape, tuple):
        return {"description": "The content.", "content": {media: {} for media in shape}}
    text = (shape.__doc__ or "").strip().splitlines()[0]
    return {"description": text, "content": {_MEDIA: {"schema": _reference(shape)}}}


def _problems(key: str, route: Route) -> dict[str, Any]:
    """The problems of a call by status: those of its path, its body and its key, and its own."""
    names = re.findall(r"{(\w+)}", key)
    raises = _RAISES.search(str(route.__doc__))
    own = re.findall(r"\w+", raises[1]) if raises else []
    assert all(hasattr(errors, code) for code in own), f"{key}: {own}"
    codes = ["Throttled", "Unavailable", *own]
    codes += [_NOT_FOUND[name] for name in names if name in _NOT_FOUND]
    if key not in queries.WITHOUT_KEY or OPERATIONS[key].takes_token:
        codes += ["Unauthenticated", "Forbidden", "InvalidParameter"]
    if OPERATIONS[key].body is not None:
        codes += ["MalformedRequest", "RequestTooLarge", "UnsupportedMediaType"]
    by_status: dict[str, list[str]] = {}
    for code in sorted(set(codes)):
        by_status.setdefault(str(problems.status_of(code)), []).append(code)
    return {status: _problem(status, held) for status, held in sorted(by_status.items())}


def _problem(status: str, codes: Sequence[str]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "description": ", ".join(codes),
        "content": {_PROBLEM_MEDIA: {"schema": _reference(Problem)}},
    }
    if status in _TO_REPEAT:
        told["headers"] = {_RETRY_AFTER: {"$ref": f"#/components/headers/{_RETRY_AFTER}"}}
    return told


def _reference(shape: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{shape.__name__}"}
