"""The right that each route requires of an access key with a scope.

A key without a scope may make every call in its account. A route that is in none of these tables is
refused to keys with a scope, and a test fails until it is in one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cirrusmq.access.keys import Caller
from cirrusmq.access.scopes import RIGHTS, Kind, Listed, Right, Scope
from cirrusmq.base.errors import Forbidden

_QUEUE, _TOPIC = "/queues/{queue}", "/topics/{topic}"
_SUBSCRIPTION = f"{_TOPIC}/subscriptions/{{subscription}}"
MESSAGE_CALLS = ("receive", "peek", "delete", "visibility", "give-back", "dead-letter")
"""Names of calls, in the place of a message's id in a path."""
_WORK = ("confirm", "secret", "pause", "resume", "retry", "rewind", "redeliver")

SENDS = frozenset(
    {
        f"POST {_QUEUE}/messages",
        *(f"{method} {_QUEUE}/messages/{{id}}" for method in ("DELETE", "PATCH")),
        f"GET {_QUEUE}/messages/{{id}}/reply",
        f"POST {_TOPIC}/messages",
        *(f"POST {_TOPIC}/half/{call}" for call in ("commit", "rollback", "receive")),
    }
)
RECEIVES = frozenset(
    {
        *(
            f"POST {holder}/messages/{call}"
            for holder in (_QUEUE, _SUBSCRIPTION)
            for call in MESSAGE_CALLS
        ),
        f"GET {_QUEUE}/messages/{{id}}",
        f"POST {_QUEUE}/messages/{{id}}/reply",
        f"GET {_TOPIC}/messages",
        f"GET {_TOPIC}/messages/{{id}}",
        f"GET {_SUBSCRIPTION}/messages",
    }
)
SHOWS = frozenset(
    {
        f"GET {_QUEUE}",
        f"GET {_QUEUE}/receivers",
        f"GET {_QUEUE}/receivers/{{receiver}}",
        f"GET {_QUEUE}/consumers",
        f"GET {_TOPIC}",
        f"POST {_TOPIC}/match",
        f"GET {_TOPIC}/subscriptions",
        f"GET {_SUBSCRIPTION}",
        f"GET {_SUBSCRIPTION}/consumers",
    }
)
"""Any right on the queue or topic is enough."""
MANAGES = frozenset(
    {
        *(f"{method} {_QUEUE}" for method in ("PUT", "PATCH", "DELETE")),
        *(f"POST {_QUEUE}/{work}" for work in ("purge", "rewind", "redrive")),
        *(f"{method} {_QUEUE}/receivers/{{receiver}}" for method in ("PUT", "PATCH", "DELETE")),
        f"GET {_QUEUE}/grants",
        *(f"{method} {_QUEUE}/grants/{{account}}" for method in ("PUT", "GET", "DELETE")),
        f"GET {_TOPIC}/grants",
        *(f"{method} {_TOPIC}/grants/{{account}}" for method in ("PUT", "GET", "DELETE")),
        *(f"{method} {_TOPIC}" for method in ("PUT", "PATCH", "DELETE")),
        *(f"{method} {_SUBSCRIPTION}" for method in ("PUT", "PATCH", "DELETE")),
        *(f"POST {_SUBSCRIPTION}/{work}" for work in _WORK),
    }
)
CHANGES_SCHEDULES = frozenset(f"{method} /schedules/{{schedule}}" for method in ("PUT", "DELETE"))
OF_ACCOUNT = frozenset(
    {
        *("GET /queues", "GET /topics", "GET /grants", "GET /schedules"),
        *("GET /reports/billing", "GET /reports/backlog", "GET /audit"),
    }
)
"""They show everything in the account: `manage` on all is needed."""
CHECKED_LATER = CHANGES_SCHEDULES | {
    *("GET /operations/{id}", "GET /operations", "GET /rates"),
    "GET /schedules/{schedule}",
}
"""The route checks the right after it knows the queues and topics."""
OF_ANY_RIGHT = frozenset({"GET /endpoints"})
"""They show nothing of the account; any right is enough."""
OF_KEYS = frozenset({"POST /keys", "POST /keys/{id}/rotate", "DELETE /keys/{id}"})
LISTS_KEYS, SHOWS_AUDIT = "GET /keys", "GET /audit"


def check_route(caller: Caller, route_key: str, names: Mapping[str, str]) -> None:
    """Raises Forbidden, with the missing right, if a key's scope does not allow this call."""
    manages = route_key in OF_KEYS or (route_key == LISTS_KEYS and caller.scope is not None)
    if (manages or route_key == SHOWS_AUDIT) and not caller.may_manage_keys():
        raise Forbidden("the access key lacks manages_keys")
    if caller.scope is None or manages or route_key in CHECKED_LATER:
        return
    if route_key in OF_ANY_RIGHT:
        if caller.scope == Scope():
            raise Forbidden("the access key's scope has no right at all")
    elif route_key in OF_ACCOUNT:
        if caller.scope.manage != "all":
            raise Forbidden("the access key's scope lacks manage on all queues and topics")
    elif route_key in SENDS:
        _check(caller, ("send",), names)
    elif route_key in RECEIVES:
        _check(caller, ("receive",), names)
    elif route_key in SHOWS:
        _check(caller, RIGHTS, names)
    elif route_key in MANAGES:
        _check(caller, ("manage",), names)
    else:
        raise Forbidden("the access key's scope has no right for this call")


def check_named(caller: Caller, parameter: str, queue: object) -> None:
    """Raises Forbidden without `send` or `manage` on a queue that gets messages by a body."""
    if isinstance(queue, str):
        caller.require(("send", "manage"), "queues", queue, f" ({parameter})")


def managed(caller: Caller) -> Callable[[str, str], bool]:
    """Returns a check if the caller may manage a queue or a topic.

    Raises Forbidden if the caller's scope has no `manage` at all.
    """
    scope = caller.scope
    if scope is None:
        return lambda queue, topic: True
    if scope.manage == Listed():
        raise Forbidden("the access key's scope lacks manage on any queue or topic")

    def manages(queue: str, topic: str) -> bool:
        kind: Kind = "topics" if topic else "queues"
        return scope.allows("manage", kind, topic or queue, caller.account)

    return manages


def check_manages(caller: Caller, queue: str, topic: str = "") -> None:
    """Raises Forbidden without `manage` on a queue, or a topic, of the caller's account."""
    if topic:
        caller.require(("manage",), "topics", topic)
    else:
        caller.require(("manage",), "queues", queue)


def check_shows(caller: Caller, kind: Kind, ref: str) -> None:
    """Raises Forbidden without any right on a queue or topic that the query names."""
    caller.require(RIGHTS, kind, ref)


def _check(caller: Caller, rights: tuple[Right, ...], names: Mapping[str, str]) -> None:
    kind: Kind = "queues" if "queue" in names else "topics"
    caller.require(rights, kind, names["queue" if kind == "queues" else "topic"])
