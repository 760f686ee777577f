"""The query parameters of each route; any other is refused, as unknown fields are."""

from __future__ import annotations

from collections.abc import Mapping

_PAGE = frozenset({"limit", "cursor"})
_LOG = frozenset({"limit", "after"})
_PUT = frozenset({"exact"})
KNOWN: Mapping[str, frozenset[str]] = {
    "PUT /queues/{queue}": _PUT,
    "PUT /queues/{queue}/receivers/{receiver}": _PUT,
    "PUT /topics/{topic}": _PUT,
    "PUT /topics/{topic}/subscriptions/{subscription}": _PUT,
    "GET /queues": _PAGE | {"prefix"},
    "GET /topics": _PAGE | {"prefix"},
    "GET /schedules": _PAGE | {"prefix"},
    "GET /keys": _PAGE | {"account"},
    "GET /grants": _PAGE,
    "GET /operations": _PAGE | {"state", "kind", "queue", "topic"},
    "GET /audit": _PAGE | {"from", "to", "key_id", "resource"},
    "GET /queues/{queue}/messages/{id}": frozenset({"receiver", "group", "body"}),
    "GET /queues/{queue}/messages/{id}/reply": frozenset({"reply_by", "wait_seconds"}),
    "DELETE /queues/{queue}/messages/{id}": frozenset({"receiver", "group"}),
    "PATCH /queues/{queue}/messages/{id}": frozenset({"receiver", "group"}),
    "GET /topics/{topic}/messages/{id}": frozenset({"body"}),
    "GET /queues/{queue}/grants": _PAGE,
    "GET /topics/{topic}/grants": _PAGE,
    "GET /queues/{queue}/receivers": _PAGE,
    "GET /queues/{queue}/consumers": _PAGE | {"receiver"},
    "GET /topics/{topic}/subscriptions": _PAGE,
    "GET /topics/{topic}/subscriptions/{subscription}/consumers": _PAGE,
    "GET /topics/{topic}/messages": _LOG,
    "GET /topics/{topic}/subscriptions/{subscription}/messages": _LOG,
    "GET /rates": frozenset({"queues", "receivers", "topics", "subscriptions", "hours"}),
    "GET /reports/billing": _PAGE | {"from", "to"},
    "GET /reports/backlog": frozenset({"at"}),
}
WITHOUT_KEY = frozenset(
    {
        "GET /health",
        "GET /openapi.json",
        "GET /docs/api",
        "GET /docs/api/{asset}",
        "POST /topics/{topic}/subscriptions/{subscription}/confirm",
    }
)
"""Routes that need no key."""
_NO_ROUTE = "$default"


def unknown(route_key: str, given: Mapping[str, str]) -> str | None:
    """Returns a parameter that the route does not know, or None."""
    if route_key == _NO_ROUTE:
        return None
    known = KNOWN.get(route_key, frozenset())
    return next((name for name in given if name not in known), None)
