"""From an event of the API (payload format 2.0) to a call as it was sent, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Protocol

import msgspec

from cirrusmq.base.shapes import convert
from cirrusmq.runtime.core import Core
from cirrusmq_lambda.replies import envelope
from cirrusmq_lambda.request_bodies import takes_gzip


class Context(Protocol):
    """An invocation, as Lambda describes it to the function."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends the invocation."""
        ...


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call of an SDK, as far as the API lets it through unchanged."""

    core: Core
    id: str
    """The request id, in logs and answers."""
    method: str
    path: str
    """Decoded."""
    query: str
    """As it was sent."""
    headers: Mapping[str, str]
    """Names in lower case; values of one name together, separated by commas."""
    body: bytes
    source: str | None
    """The address that it came from."""
    left_seconds: Callable[[], float]
    """Until Lambda ends the invocation."""
    takes_gzip: bool = False

    @property
    def base_url(self) -> str:
        """The URL that its program calls, by the Host that it sent."""
        scheme = self.headers.get("x-forwarded-proto", "http")
        return f"{scheme}://{self.headers.get('host', '')}"


class Answer(msgspec.Struct, frozen=True):
    """A status, headers and a body of UTF-8 text."""

    status: int
    headers: dict[str, str]
    body: bytes


def read_call(event: dict[str, Any], context: Context, core: Core) -> Call:
    """The call in an event of an HTTP API."""
    told = event["requestContext"]
    return Call(
        core=core,
        id=str(told["requestId"]),
        method=told["http"]["method"],
        path=event["rawPath"],
        query=event.get("rawQueryString", ""),
        headers=event.get("headers", {}),
        body=_body(event),
        source=told["http"].get("sourceIp"),
        left_seconds=lambda: context.get_remaining_time_in_millis() / 1000,
        takes_gzip=takes_gzip(event),
    )


def give(call: Call, answer: Answer) -> dict[str, Any]:
    """Returns the answer as the API takes it. Raises MessageTooLarge if Lambda cannot return it."""
    return envelope(answer.status, answer.headers, answer.body, gzip=call.takes_gzip)


@cache
def function_of(dialect: str, place: str) -> Any:
    """Returns a function of a dialect by `module.name`; its module is loaded when it is called."""
    module, _, name = place.partition(".")
    return getattr(import_module(f"cirrusmq_dialects.{dialect}.{module}"), name)


def _body(event: Mapping[str, Any]) -> bytes:
    text = str(event.get("body") or "")
    if not event.get("isBase64Encoded"):
        return text.encode("utf-8", "surrogatepass")
    try:
        return convert(text, bytes)  # decodes base64 in a sixth of base64's time
    except msgspec.ValidationError:
        return b""  # which no signature fits
