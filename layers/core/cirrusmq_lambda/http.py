"""From an event of the HTTP API or of a function's URL (payload format 2.0) to a call, and from its
reply to an answer."""

from __future__ import annotations

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
from cirrusmq.base.limits import PAGE_ENTRIES, PAGE_ENTRIES_DEFAULT, REQUEST_BYTES
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
"""A reply in the form that API Gateway takes."""


INVOKED = "invoked"
"""The member of an event that is true where the function is invoked by IAM's right alone."""


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
        """The account of the key that the call is about: an admin's calls are about others'."""

    @property
    def id(self) -> str:
        """The id by which logs and problems name this call."""
        return str(self.event["requestContext"]["requestId"])

    @property
    def caller(self) -> keys.Caller:
        """The caller by its key; counts as a call. Unauthenticated, Throttled, Forbidden."""
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
        """Whether somebody whom IAM lets invoke the function wrote the event.

        The HTTP API and a function's URL write theirs by themselves: no caller of those puts a
        member beside `headers` and `body`.
        """
        return self.event.get(INVOKED) is True

    def knows_key(self, refusal: CirrusMQError) -> bool:
        """Whether the call has a key of the deployment, even if with a wrong secret."""
        if isinstance(refusal, Unauthenticated):
            return refusal.knows_key
        return self._key is not None

    @property
    def source(self) -> str | None:
        """The address that the call came from, as the API saw it."""
        address: str | None = self.event["requestContext"].get("http", {}).get("sourceIp")
        return address

    def record(self, code: str, status: int, made: str) -> None:
        """Write the call into the audit; `made`: the name of what it made, if that has one."""
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
        """The error as the caller is told of it; an unexpected one is logged."""
        if isinstance(error, CirrusMQError):
            return error
        observability.logger.error("unexpected", exc_info=error, extra={"request_id": self.id})
        return Unavailable("Something went wrong; the call is in the log.")

    def path(self, name: str) -> str:
        """A parameter of the route."""
        return str(self.event["pathParameters"][name])

    def body(self, shape: type[T], most_bytes: int = REQUEST_BYTES) -> T:
        """The JSON body as `shape`."""
        return decode(read_body(self.event, most_bytes), shape, most_bytes)

    def body_with_messages(self, shape: type[T]) -> T:
        """The JSON body of a call that brings messages, which may be large."""
        return self.body(shape, self.core.settings.messages_request_bytes)

    @property
    def takes_gzip(self) -> bool:
        """Whether the answer may be gzipped."""
        return takes_gzip(self.event)

    @property
    def query(self) -> dict[str, str]:
        """The query's parameters, all of them known to the route."""
        given: dict[str, str] = self.event.get("queryStringParameters") or {}
        return given

    def page(self) -> tuple[int, str | None]:
        """A listing's `limit` and `cursor`."""
        return read_limit(self.query), self.query.get("cursor")


class NoFields(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a call that takes none: empty, or `{}`."""


Route: TypeAlias = Callable[[Request], Reply]


def read_limit(
    query: Mapping[str, str],
    bounds: tuple[int, int] = PAGE_ENTRIES,
    default: int = PAGE_ENTRIES_DEFAULT,
) -> int:
    """The `limit` of a listing."""
    number = read_integer(query, "limit", bounds)
    return default if number is None else number


def read_integer(query: Mapping[str, str], name: str, bounds: tuple[int, int]) -> int | None:
    """An integer of a query; None where it has none of the name."""
    text = query.get(name)
    if text is None:
        return None
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
    if not bounds[0] <= number <= bounds[1]:
        raise InvalidParameter(name, f"must be an integer from {bounds[0]} to {bounds[1]:,}")
    return number


def read_flag(query: Mapping[str, str], name: str) -> bool:
    """A parameter that is `true` or `false`; false where it is not given."""
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise InvalidParameter(name, "must be true or false")
    return text == "true"


def following(cursor: str | None) -> str | UnsetType:
    """A page's `cursor`: absent where nothing follows."""
    return cursor or UNSET


def serve(routes: Mapping[str, Route], event: Event, context: Context) -> Answer:
    """Answer an event by its route key; every error becomes a problem."""
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
    """Before anything is changed; a call without a key is told that first."""
    route_key = request.event["routeKey"]
    name = queries.unknown(route_key, request.query)
    if name is None:
        return
    if route_key not in queries.WITHOUT_KEY:
        _ = request.caller
    raise InvalidParameter(name, "this parameter is not known")
