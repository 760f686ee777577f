"""The HTTP API on one machine, and the functions' own URLs: an ASGI application that calls the
template's functions."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from email.utils import formatdate
from typing import Any, Protocol, TypeAlias

from cirrusmq.base.errors import CirrusMQError, MalformedRequest, RequestTooLarge, Unavailable
from cirrusmq_local.cloud.clock import ScaledClock
from cirrusmq_local.cloud.events import (
    Answer,
    Request,
    answer_failure,
    make_event,
    make_url_event,
    read_answer,
)
from cirrusmq_local.cloud.functions import Functions, StackStoppingError
from cirrusmq_local.cloud.invocation import FunctionError, TimedOutError
from cirrusmq_local.cloud.routing import Router

Message: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

# The API's own limits, in real time.
CALL_SECONDS = 30.0
BODY_SECONDS = 30.0
URLS = "/local/urls"
"""Below it is the URL of each function that has one: a cloud has a host for each."""
BODY_BYTES = 10 * 1_024 * 1_024
HEADER_BYTES = 10_240
"""Of the request line and the headers."""

# How much of a refused body is read before the answer, for a client that sends all of it first
# would not see an answer on a connection that was closed under it.
_DRAIN_SECONDS = 2.0
_DRAIN_BYTES = 64 * 1_024 * 1_024

_log = logging.getLogger(__name__)


class Problems(Protocol):
    """Makes the answer that tells an error."""

    def __call__(self, error: CirrusMQError, request_id: str, /) -> dict[str, Any]: ...


class _ClientGoneError(Exception):
    """The client closed the connection before its request was complete."""


class Gateway:
    """Routes requests to functions."""

    def __init__(
        self,
        router: Router,
        functions: Functions,
        clock: ScaledClock,
        problems: Problems,
        *,
        call_seconds: float = CALL_SECONDS,
        body_seconds: float = BODY_SECONDS,
        trouble: Callable[[], str | None] = lambda: None,
        urls: Mapping[str, str] | None = None,
        note_call: Callable[[str, int, float], None] = lambda function, status, seconds: None,
    ) -> None:
        """`trouble` answers the reason for which calls fail now; None where none is known.

        `urls`: the functions that have a URL of their own, by their names in it. `note_call` is
        told of each answer: the function's folder (empty: none was called), status and seconds.
        """
        self._note_call = note_call
        self._urls = {f"{URLS}/{name}": function for name, function in (urls or {}).items()}
        self._trouble = trouble
        self._router = router
        self._functions = functions
        self._clock = clock
        self._problems = problems
        self._call_seconds = call_seconds
        self._body_seconds = body_seconds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request_id = str(uuid.uuid4())
        closing = False
        began, role = time.monotonic(), ""
        try:
            request = _request(scope, await self._read_body(scope, receive))
            found = self._find(request, request_id)
            if found is None:
                answer = Answer(status=404, headers=[], body=b"")
            else:
                role = self._functions.find(found[0]).folder.name
                answer = await self._call(*found, request_id)
            reason = self._trouble() if answer.status >= 500 else None
            if reason is not None:
                answer = self._refuse(Unavailable(reason), request_id)
        except _ClientGoneError:
            return
        except CirrusMQError as error:
            # Part of the body may still be on its way, and is not the next request.
            closing = True
            answer = read_answer(self._problems(error, request_id))
        await self._send(answer, request_id, send, closing)
        self._note_call(role, answer.status, time.monotonic() - began)

    async def _call(
        self, name: str, event: dict[str, Any], direct: bool, request_id: str
    ) -> Answer:
        running = asyncio.wrap_future(self._functions.call(name, event))
        timeout_seconds = self._functions.find(name).timeout_seconds
        try:
            seconds = min(self._call_seconds, timeout_seconds)
            return read_answer(await asyncio.wait_for(running, seconds))
        except TimeoutError:
            if timeout_seconds <= self._call_seconds:
                return answer_failure(TimedOutError(name), direct=direct)
            return self._refuse(
                Unavailable(f"no answer within {self._call_seconds:g} s"), request_id
            )
        except FunctionError as error:
            _log.error("%s: %s", event["routeKey"], error)
            return answer_failure(error, direct=direct)
        except (StackStoppingError, asyncio.CancelledError):
            return self._refuse(Unavailable("the service is stopping"), request_id)
        except Exception:
            # An exception that a handler does not turn into a problem is a fault of ours.
            _log.exception("%s failed on %s", name, event["routeKey"])
            refused = self._refuse(Unavailable("the service failed"), request_id)
            return Answer(status=500, headers=refused.headers, body=refused.body)

    def _find(self, request: Request, request_id: str) -> tuple[str, dict[str, Any], bool] | None:
        """The function, its event, and whether it is called at its own URL."""
        now_ms = self._clock.now_ms()
        for url, function in self._urls.items():
            if request.raw_path.startswith(f"{url}/"):
                request = replace(request, raw_path=request.raw_path.removeprefix(url))
                return function, make_url_event(request, request_id, now_ms), True
        match = self._router.match(request.method, request.raw_path)
        if match is None:
            return None
        return match.route.function, make_event(request, match, request_id, now_ms), False

    def _refuse(self, error: CirrusMQError, request_id: str) -> Answer:
        return read_answer(self._problems(error, request_id))

    async def _read_body(self, scope: Message, receive: Receive) -> bytes:
        try:
            async with asyncio.timeout(self._body_seconds):
                _check_headers(scope)
                return await _read_body(receive, scope)
        except TimeoutError:
            raise MalformedRequest(
                f"the body did not arrive within {self._body_seconds:g} s"
            ) from None

    async def _send(self, answer: Answer, request_id: str, send: Send, closing: bool) -> None:
        headers = [
            (b"date", formatdate(self._clock.now_ms() / 1_000, usegmt=True).encode()),
            (b"apigw-requestid", request_id.encode()),
            (b"content-length", str(len(answer.body)).encode()),
        ]
        if closing:
            headers.append((b"connection", b"close"))
        headers += [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in answer.headers
            if name.lower() != "content-length"
        ]
        if answer.status == 204:
            headers = [held for held in headers if held[0] != b"content-length"]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})


def _request(scope: Message, body: bytes) -> Request:
    client = scope.get("client")
    return Request(
        method=scope["method"],
        raw_path=scope["raw_path"].decode("latin-1"),
        query=scope["query_string"].decode("latin-1"),
        headers=[
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ],
        body=body,
        source=client[0] if client else "",
        http_version=scope["http_version"],
    )


def _check_headers(scope: Message) -> None:
    size = len(scope["raw_path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) for name, value in scope["headers"])
    if size > HEADER_BYTES:
        raise MalformedRequest(f"path and headers are over {HEADER_BYTES:,} bytes")


async def _read_body(receive: Receive, scope: Message) -> bytes:
    headers = dict(scope["headers"])
    if int(headers.get(b"content-length", 0)) > BODY_BYTES:
        # A client that asked first whether to send it has not begun.
        if b"expect" not in headers:
            await _drain(receive)
        raise RequestTooLarge
    chunks: list[bytes] = []
    held = 0
    while True:
        chunk, more = await _read_chunk(receive)
        chunks.append(chunk)
        held += len(chunk)
        if held > BODY_BYTES:
            if more:
                await _drain(receive)
            raise RequestTooLarge
        if not more:
            return b"".join(chunks)


async def _read_chunk(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _ClientGoneError
    return message.get("body", b""), message.get("more_body", False)


async def _drain(receive: Receive) -> None:
    left = _DRAIN_BYTES
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while left > 0:
                chunk, more = await _read_chunk(receive)
                left -= len(chunk)
                if not more:
                    return
    except TimeoutError:
        return
