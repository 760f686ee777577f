"""Turns an event of the HTTP API or of a function's URL (payload format 2.0) into a call, and its
reply into an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from cirrusmq.access import keys, rate_limit
from cirrusmq.base.errors import (
    CirrusMQError,
    Forbidden,
    InvalidParameter,
    Unauthenticated,
    Unavailable,
)
from cirrusmq.base.limits import (
    PAGE_ENTRIES,
    PAGE_ENTRIES_DEFAULT,
    RECEIVE_WAIT_SECONDS,
    REQUEST_BYTES,
)
from cirrusmq.base.shapes import decode
from cirrusmq.runtime.core import Core
from cirrusmq.wiring import bootstrap
from cirrusmq_lambda import audit, direct, observability, queries, rights
from cirrusmq_lambda.problems import problem
from cirrusmq_lambda.replies import Reply
from cirrusmq_lambda.request_bodies import read_body, takes_gzip

T = TypeVar("T")
Event: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, Any]
"""A reply in API Gateway's form."""


INVOKED = "invoked"
"""The member of an event that is true if the caller invokes the function by IAM's right."""


class Context(Protocol):
    """An invocation, as Lambda describes it to the function."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends the invocation."""
        ...


class Request:
    """One HTTP call."""

    def __init__(self, event: Event, context: Context, core: Core) -> None:
        self.event, self.context, self.core = event, context, core
        self._verified: keys.Caller | None = None
        self._key: keys.Caller | None = None
        self.begun_ms = core.now_ms()
        self.owner: str | None = None
        """Account of the key that the call changes, which may differ for an admin, or None."""

    @property
    def id(self) -> str:
        """The call's id in logs and problems."""
        return str(self.event["requestContext"]["requestId"])

    @property
    def caller(self) -> keys.Caller:
        """The caller by its key. Raises Unauthenticated, Throttled, Forbidden. Counts as a call."""
        # Not a cached_property: in Python 3.11 that holds one lock for the calls of all threads.
        if self._verified is None:
            authorization = self.event.get("headers", {}).get("authorization")
            found = keys.verify(self.core, authorization, self.source)
            self._key = found
            if found.admin and self.core.settings.admin_by_invocation and not self.is_invoked:
                raise Forbidden("admin keys are taken by lambda:InvokeFunction alone (AdminCalls)")
            rate_limit.admit(self.core, found.account)
            names = self.event.get("pathParameters") or {}
            rights.check_route(found, self.event["routeKey"], names)
            self._verified = found
        return self._verified

    @property
    def is_invoked(self) -> bool:
        """True if the event was written by a caller who may invoke the function by IAM.

        The HTTP API and a function's URL write their events: a caller of these cannot add a
        member beside `headers` and `body`.
        """
        return self.event.get(INVOKED) is True

    def knows_key(self, refusal: CirrusMQError) -> bool:
        """Returns True if the call has a key of the deployment, also with a wrong secret."""
        if isinstance(refusal, Unauthenticated):
            return refusal.knows_key
        return self._key is not None

    @property
    def source(self) -> str | None:
        """The caller's address, as the API saw it, or None."""
        address: str | None = self.event["requestContext"].get("http", {}).get("sourceIp")
        return address

    def record(self, code: str, status: int, made: str) -> None:
        """Writes the call into the audit. `made`: name of the new resource, or ""."""
        headers, route_key = self.event.get("headers", {}), self.event["routeKey"]
        name = audit.name_of(self.event.get("pathParameters") or {}) or made
        account = self._key.account if self._key else None
        left_ms = self.context.get_remaining_time_in_millis()
        others = (self.owner, audit.owner_of(name))
        audit.record(
            self.core,
            request_id=self.id,
            route=route_key,
            name=name,
            code=code,
            account=account,
            key_id=self._key.key_id
            if self._key
            else audit.claimed_key_id(headers.get("authorization")),
            source=self.source,
            kept_by=audit.accounts(route_key, status, left_ms, account, others),
        )

    def told(self, error: Exception) -> CirrusMQError:
        """Returns the error for the caller; logs an unexpected one."""
        if isinstance(error, CirrusMQError):
            return error
        observability.logger.error("unexpected", exc_info=error, extra={"request_id": self.id})
        return Unavailable("Something went wrong; the call is in the log.")

    def path(self, name: str) -> str:
        """Returns a parameter of the route."""
        return str(self.event["pathParameters"][name])

    def body(self, shape: type[T], max_bytes: int = REQUEST_BYTES) -> T:
        """Returns the JSON body as `shape`."""
        return decode(read_body(self.event, max_bytes), shape, max_bytes)

    def body_with_messages(self, shape: type[T]) -> T:
        """Returns the JSON body of a call with messages, which may be large."""
        return self.body(shape, self.core.settings.messages_request_bytes)

    @property
    def trace(self) -> Mapping[str, str]:
        """The caller's trace context as attributes; empty if there is none, or an invalid one."""
        headers = self.event.get("headers", {})
        if "traceparent" not in headers:
            return {}
        # Few callers send one: the others' cold starts do without.
        from cirrusmq.model.trace_context import read_headers

        return read_headers(headers)

    @property
    def takes_gzip(self) -> bool:
        """True if the caller accepts a gzipped answer."""
        return takes_gzip(self.event)

    @property
    def query(self) -> dict[str, str]:
        """The query's parameters, all of them known to the route."""
        given: dict[str, str] = self.event.get("queryStringParameters") or {}
        return given

    def page(self) -> tuple[int, str | None]:
        """Returns a listing's `limit` and `cursor`."""
        return read_limit(self.query), self.query.get("cursor")


class NoFields(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a call that takes none: empty, or `{}`."""


Route: TypeAlias = Callable[[Request], Reply]


def read_limit(
    query: Mapping[str, str],
    bounds: tuple[int, int] = PAGE_ENTRIES,
    default: int = PAGE_ENTRIES_DEFAULT,
) -> int:
    """Returns the `limit` of a listing."""
    number = read_integer(query, "limit", bounds)
    return default if number is None else number


def read_integer(query: Mapping[str, str], name: str, bounds: tuple[int, int]) -> int | None:
    """Returns an integer of a query, or None if the query does not have it."""
    text = query.get(name)
    if text is None:
        return None
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
    if not bounds[0] <= number <= bounds[1]:
        raise InvalidParameter(name, f"must be an integer from {bounds[0]} to {bounds[1]:,}")
    return number


def read_seconds(query: Mapping[str, str], name: str) -> float:
    """Returns a wait of 0 to 30 seconds; 0 if it is missing."""
    text, (least, limit) = query.get(name, "0"), RECEIVE_WAIT_SECONDS
    seconds = float(text) if re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,3})?", text) else -1.0
    if not least <= seconds <= limit:
        raise InvalidParameter(name, f"must be a number from {least} to {limit} seconds")
    return seconds


def read_flag(query: Mapping[str, str], name: str) -> bool:
    """Returns a parameter that is `true` or `false`; False if it is missing."""
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise InvalidParameter(name, "must be true or false")
    return text == "true"


def following(cursor: str | None) -> str | UnsetType:
    """Returns a page's `cursor`, absent if no page follows."""
    return cursor or UNSET


def serve(routes: Mapping[str, Route], event: Event, context: Context) -> Answer:
    """Handles an event by its route key. Returns the answer; every error becomes a problem."""
    if event["routeKey"] == direct.DEFAULT:
        event = direct.routed(routes, event)
    request = Request(event, context, bootstrap.service())
    route = routes.get(event["routeKey"]) or partial(_refuse, routes)
    code, made = "Ok", ""
    try:
        _refuse_unknown_parameters(request)
        reply = route(request)
        answer = reply.envelope(gzip=request.takes_gzip)
        made = getattr(getattr(reply, "body", None), "access_key_id", "")
    except Exception as error:
        told = request.told(error)
        code, answer = told.code, problem(told, request.id)
        if 400 <= answer["statusCode"] < 500 and code != "Throttled" and request.knows_key(told):
            audit.note_refusal(request.id, event["routeKey"], code)
    if audit.concerns(event["routeKey"], answer["statusCode"]):
        request.record(code, answer["statusCode"], made)
    return answer


def _refuse(routes: Mapping[str, Route], request: Request) -> NoReturn:
    direct.refuse(routes, request.event)


def _refuse_unknown_parameters(request: Request) -> None:
    """Refuses unknown parameters before any change; a missing key is refused first."""
    route_key = request.event["routeKey"]
    name = queries.unknown(route_key, request.query)
    if name is None:
        return
    if route_key not in queries.WITHOUT_KEY:
        _ = request.caller
    raise InvalidParameter(name, "this parameter is not known")
