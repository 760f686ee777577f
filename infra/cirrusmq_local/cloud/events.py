"""HTTP requests as events of an HTTP API or a function URL (payload format 2.0), and answers.

Sources: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from cirrusmq_local.cloud.cloudformation import ACCOUNT_ID
from cirrusmq_local.cloud.invocation import EventTooLargeError, FunctionError, TooManyRequestsError
from cirrusmq_local.cloud.routing import Match

DEFAULT = "$default"
"""The route key of an event that belongs to no declared route."""
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/javascript")


class BadAnswerError(Exception):
    """A function's answer is not one that an HTTP API can send."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request, its body read."""

    method: str
    raw_path: str
    query: str
    headers: Sequence[tuple[str, str]]
    """Names in lower case."""
    body: bytes
    source: str
    http_version: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


def make_event(request: Request, match: Match, request_id: str, now_ms: int) -> dict[str, Any]:
    """Returns the event for a function of the API; its path is decoded."""
    path = unquote(request.raw_path, errors="replace")
    event = _event(request, match.route.key, path, request_id, now_ms)
    if match.parameters:
        event["pathParameters"] = dict(match.parameters)
    return event


def make_url_event(request: Request, request_id: str, now_ms: int) -> dict[str, Any]:
    """Returns the event for a function at its own URL, which has no routes.

    The path is not decoded, and the caller is anonymous.
    """
    event = _event(request, DEFAULT, request.raw_path, request_id, now_ms)
    event["requestContext"] |= {"accountId": "anonymous"}
    return event


def _event(
    request: Request, route_key: str, path: str, request_id: str, now_ms: int
) -> dict[str, Any]:
    headers = _joined(request.headers)
    cookies = headers.pop("cookie", None)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": path,
        "rawQueryString": request.query,
        "headers": headers,
        "requestContext": {
            "accountId": ACCOUNT_ID,
            "apiId": "local",
            "domainName": headers.get("host", ""),
            "domainPrefix": "local",
            "http": {
                "method": request.method,
                "path": path,
                "protocol": f"HTTP/{request.http_version}",
                "sourceIp": request.source,
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": request_id,
            "routeKey": route_key,
            "stage": "$default",
            "time": _format_time(now_ms // 1_000),
            "timeEpoch": now_ms,
        },
        "isBase64Encoded": False,
    }
    if cookies is not None:
        event["cookies"] = [cookie.strip() for cookie in cookies.split(";")]
    if request.query:
        pairs = parse_qsl(request.query, keep_blank_values=True, errors="replace")
        event["queryStringParameters"] = _joined(pairs)
    if request.body:
        event["body"], event["isBase64Encoded"] = _body(
            request.body, headers.get("content-type", "")
        )
    return event


@lru_cache(maxsize=8)
def _format_time(now_seconds: int) -> str:
    return time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now_seconds))


def read_answer(answer: Any) -> Answer:
    """Returns a function's answer, decoded. Raises BadAnswerError if its shape is wrong."""
    try:
        text = answer.get("body") or ""
        body = base64.b64decode(text) if answer.get("isBase64Encoded") else text.encode()
        headers = [(str(name), str(value)) for name, value in (answer.get("headers") or {}).items()]
        headers += [("set-cookie", str(cookie)) for cookie in answer.get("cookies") or []]
        return Answer(status=int(answer["statusCode"]), headers=headers, body=body)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadAnswerError(f"not an answer of payload format 2.0: {error!r}") from error


_FAILURES: dict[type[FunctionError], tuple[int, str]] = {
    EventTooLargeError: (413, "Request Too Long"),
    TooManyRequestsError: (503, "Service Unavailable"),
}
_FAILURES_OF_URLS: dict[type[FunctionError], tuple[int, str]] = {
    EventTooLargeError: (413, "Request Too Long"),
    TooManyRequestsError: (429, "Too Many Requests"),
}


def answer_failure(error: FunctionError, *, direct: bool = False) -> Answer:
    """Returns the answer for a failed function, as an HTTP API or a function URL sends it."""
    if direct:
        status, message = _FAILURES_OF_URLS.get(type(error), (502, "Internal Server Error"))
    else:
        status, message = _FAILURES.get(type(error), (500, "Internal Server Error"))
    body = json.dumps({"message": message}).encode()
    return Answer(status=status, headers=[("content-type", "application/json")], body=body)


def _joined(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Joins values of one name by commas, as the API passes them on."""
    together: dict[str, str] = {}
    for name, value in pairs:
        together[name] = f"{together[name]},{value}" if name in together else value
    return together


def _body(body: bytes, content_type: str) -> tuple[str, bool]:
    """Returns the body as text and False, or in base64 and True if it is no text."""
    if not content_type or content_type.lower().startswith(_TEXT_TYPES):
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), True
