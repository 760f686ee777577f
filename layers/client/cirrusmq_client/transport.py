"""HTTP calls with one pool of connections, repeated only if a repetition is safe.

A call that certainly had no effect (no connection, 429) is always repeated. A call that may have
had one (the answer was lost, 5xx) is repeated only if it is idempotent by its caller, which learns
from `uncertain` that an earlier try may have taken effect.

Both transports use the same steps; they differ in their HTTP client and in their waits.

Some calls are made in this process, if its user wishes and the service allows it (`in_process`).

Some calls go to direct URLs (`direct`). If a direct URL does not answer, or its function does not
exist any more, the call had no effect, and is made at the service's URL; but not after an answer of
429 or 5xx, or a lost answer.

A large request is gzipped; an answer may be.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import httpx

from cirrusmq_client.backoff import Backoff
from cirrusmq_client.clocks import ServerClock
from cirrusmq_client.connection import Connection
from cirrusmq_client.direct import DirectUrls
from cirrusmq_client.errors import (
    CirrusMQError,
    InvalidParameter,
    NoAnswer,
    NotConfigured,
    NotReachable,
    Throttled,
    error_of,
)
from cirrusmq_client.forking import renew_in_children
from cirrusmq_client.gzipping import GZIPPED_FROM, HEADERS, gzipped
from cirrusmq_client.in_process import InProcess, OwnCalls
from cirrusmq_client.steps import Blocking, Step, Steps, driven
from cirrusmq_client.tls import not_reached, proxy_of, trusted

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 15.0
CONNECTIONS = 128
KEEP_ALIVE_SECONDS = 50.0
"""Less than the service's keep-alive time, so that no call uses a connection that just closed."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `uncertain`: an earlier try of the call may have taken effect."""

    status: int
    json: Any
    uncertain: bool


class Content(NamedTuple):
    """The body of a request in bytes, and the headers for it."""

    data: bytes | None = None
    headers: Mapping[str, str] | None = None


class Request(NamedTuple):
    """A call, without the body of its tries."""

    method: str
    path: str
    query: Mapping[str, Any] | None
    wait_seconds: float


class BaseTransport:
    """Calls of the service with one access key.

    A subclass has a driver of steps as `_run`.
    """

    _run: Callable[..., Any]
    _aside: Callable[..., Any]
    """A step for longer computations, beside other tasks."""
    _waiting: Callable[..., Any]
    """A step that blocks a thread, perhaps for long."""
    _http: Any
    """The pool: an `httpx.Client`, or an `httpx.AsyncClient` of the running loop."""

    def __init__(
        self,
        connection: Connection,
        make_http: Callable[..., httpx.Client | httpx.AsyncClient],
        sleep: Callable[[float], Any],
        *,
        retry: Backoff,
        connections: int = CONNECTIONS,
        direct: bool = True,
        in_process: bool | InProcess = False,
    ) -> None:
        self.url = connection.url.rstrip("/")
        self.clock = ServerClock()
        self._retry = retry
        self.sleep = sleep
        self._timeouts: dict[float, httpx.Timeout] = {}
        self._direct = DirectUrls(self.url, self._ask_for_urls, self._run) if direct else None
        self._own: OwnCalls | None = None
        if in_process:
            options = InProcess() if in_process is True else in_process
            key_id = connection.access_key_id
            self._own = OwnCalls(options, key_id, self._ask_for_urls, self._run)
        self._make_http: Callable[..., Any] = partial(
            make_http,
            base_url=self.url,
            headers={
                "authorization": connection.authorization,
                "content-type": "application/json",
                "accept-encoding": "gzip",
            },
            limits=httpx.Limits(
                max_connections=connections,
                max_keepalive_connections=connections,
                keepalive_expiry=KEEP_ALIVE_SECONDS,
            ),
            trust_env=False,
            verify=trusted(connection),
            proxy=proxy_of(connection),
        )
        try:
            self._http = self._make_http()
        except (httpx.InvalidURL, UnicodeError) as error:
            raise _wrong_url(self.url) from error
        renew_in_children(self)

    def renew(self) -> None:
        """Makes a new pool in a forked child.

        The parent's pool is neither used nor closed: nothing is sent on its connections.
        """
        self._http = self._make_http()

    @driven
    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        safe: bool = True,
        repeated_body: Mapping[str, Any] | None = None,
        wait_seconds: float = 0.0,
    ) -> Steps[Reply]:
        """Makes one call with JSON. Returns the answer.

        Raises the error of the answer's code, NotReachable or NoAnswer.

        `safe`: the call may be repeated if its answer was lost. `repeated_body`: body of a
        repetition; None for the same one. `wait_seconds`: additional time that it may take.
        """
        request = Request(method, path, query, wait_seconds)
        own: Any = None
        if self._own is not None and body is not None:
            own = yield partial(self._own.begin, method, path)
        content = None if own is not None else (yield from self._content(body))
        began = time.monotonic()
        tried, uncertain = 0, False
        while True:
            tried += 1
            try:
                if own is not None:
                    status, held = yield from self._try_here(own, request, body or {})
                else:
                    status, held = yield from self._try(request, content or Content())
                return Reply(status, held, uncertain)
            except CirrusMQError as error:
                not_made = isinstance(error, NotReachable | Throttled)
                lost = not not_made and (isinstance(error, NoAnswer) or (error.status or 0) >= 500)
                uncertain = error.uncertain = uncertain or lost
                pause = None
                if not_made or (lost and safe):
                    elapsed = time.monotonic() - began
                    pause = self._retry.pause(tried, elapsed, error.retry_after_seconds or 0.0)
                if pause is None:
                    raise
            yield partial(self.sleep, pause)
            if uncertain and repeated_body is not None:
                body = repeated_body
                content = None if own is not None else (yield from self._content(body))

    def _try_here(
        self, own: Any, request: Request, body: Mapping[str, Any]
    ) -> Steps[tuple[int, Any]]:
        """One try of a call that this process may make itself, or a part of it."""
        while True:
            done: tuple[int, Any] | None = yield partial(self._waiting, own.answer, body)
            if done is not None:
                status, held = done
                if status >= 400:
                    raise error_of(held, status)
                return status, held
            content = yield from self._content(own.by_url(body))
            status, told = yield from self._try(request, content)
            if (held := own.accepted(told)) is not None:
                return status, held

    def _content(self, body: Mapping[str, Any] | None) -> Steps[Content]:
        """Returns a body in bytes, with its headers."""
        plain = None if body is None else _to_bytes(body)
        if plain is None or len(plain) < GZIPPED_FROM:
            return Content(plain, None)
        return Content((yield partial(self._aside, gzipped, plain)), HEADERS)

    @driven
    def _ask_for_urls(self) -> Steps[Any]:
        return (yield from self._answer(self.url, "GET", "/endpoints", Content(), None, 0.0))[1]

    def _try(self, request: Request, content: Content) -> Steps[tuple[int, Any]]:
        method, path, query, wait_seconds = request
        url: str | None = None
        if self._direct:
            url = yield partial(self._direct.url, method, path)
        if self._direct and url is not None:
            try:
                return (yield from self._answer(url, method, path, content, query, wait_seconds))
            except CirrusMQError as error:
                if not _is_gone(error):
                    raise
                self._direct.rest()
        return (yield from self._answer(self.url, method, path, content, query, wait_seconds))

    def _answer(
        self,
        url: str,
        method: str,
        path: str,
        content: Content,
        query: Mapping[str, Any] | None,
        wait_seconds: float,
    ) -> Steps[tuple[int, Any]]:
        sent = time.monotonic()
        request: Step = partial(
            self._http.request,
            *(method, url + path),
            content=content.data,
            headers=content.headers,
            params=query,
            timeout=self._timeout(wait_seconds),
        )
        try:
            answer: httpx.Response = yield request
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise not_reached(url, error) from error
        except httpx.ProxyError as error:
            raise NotReachable(f"the proxy does not connect to {url}: {error}") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise _wrong_url(url) from error
        except UnicodeEncodeError as error:
            raise InvalidParameter(f"the query cannot be sent: {error}") from error
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise NoAnswer(f"no answer from {url}: {reason}") from error
        self.clock.see(answer.headers.get("date"), sent, time.monotonic())
        try:
            held = json.loads(answer.content) if answer.content else None
        except ValueError as error:
            if answer.is_success:
                raise NoAnswer(f"{url} is not a CirrusMQ service") from error
            held = None
        if answer.is_success:
            return answer.status_code, held
        raise error_of(held, answer.status_code, _seconds(answer.headers.get("retry-after")))

    def _timeout(self, wait_seconds: float) -> httpx.Timeout:
        found = self._timeouts.get(wait_seconds)
        if found is None:
            found = httpx.Timeout(
                ANSWER_SECONDS, connect=CONNECT_SECONDS, read=ANSWER_SECONDS + wait_seconds
            )
            if len(self._timeouts) < 64:
                self._timeouts[wait_seconds] = found
        return found


class Transport(Blocking, BaseTransport):
    """A transport for several threads."""

    _http: httpx.Client

    @staticmethod
    def _aside(compute: Callable[..., Any], *arguments: Any) -> Any:
        return compute(*arguments)

    _waiting = _aside

    def __init__(self, connection: Connection, **options: Any) -> None:
        super().__init__(connection, httpx.Client, time.sleep, **options)

    def close(self) -> None:
        """Closes every connection."""
        if self._own is not None:
            self._own.close()
        self._http.close()


def _is_gone(error: CirrusMQError) -> bool:
    """Returns True if a direct URL has no function, so that none was called."""
    if isinstance(error, NotReachable):
        # Not if our own connections are all in use.
        return not isinstance(error.__cause__, httpx.PoolTimeout)
    # AWS's answer if the URL or its permission was removed: the service's answers have a code.
    return type(error) is CirrusMQError and error.status in (403, 404)


def _to_bytes(body: Mapping[str, Any]) -> bytes:
    try:
        return _encode(body).encode()
    except (TypeError, ValueError) as error:
        raise CirrusMQError(f"this cannot be sent as JSON: {error}") from error


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None


def _wrong_url(url: str) -> NotConfigured:
    return NotConfigured(f"{url} is not a URL: it looks like http://127.0.0.1:8080")
