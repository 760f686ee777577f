"""The audit: one line in the log for each call that changes something, and for each refused key.

Changes are of keys, queues, topics, subscriptions, receivers, grants and operations, whatever their
outcome. Sending, receiving and deleting messages is not among them, since a line costs more than
the call; but every call is that is answered with 401 or 403. A line has no body, no secret and no
more of a header than the id of the key, and is written at every `LogLevel`.

Beside the line of a change that was made, or may have been, an item is written, which the account
can read by `GET /audit`. The line is the complete one:

    changed ── line ── item ── answered
                  └── stopped, or the store refuses: the line alone

A refused call changed nothing, and writes no item, so that nobody fills the table with refusals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from cirrusmq.base.timestamps import format_time
from cirrusmq_lambda import rights

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

    from cirrusmq.runtime.core import Core

SERVICE = "audit"
"""The value of `service` by which the lines are found."""
CHANGES = frozenset(
    route for route in rights.MANAGES | rights.OF_KEYS if not route.startswith("GET ")
)
REFUSALS = (401, 403)
_KEY_ID = re.compile(r"CK[0-9a-z]{18}|AKID[0-9a-z]{32}", re.ASCII)
_MOST_CHARACTERS = 200
ITEM_MS = 15_000
"""Two attempts of a write take so long at most. Without it left the item could cost the answer."""


def concerns(route_key: str, status: int) -> bool:
    """Whether a call is in the audit."""
    return route_key in CHANGES or status in REFUSALS


def accounts(
    route_key: str, status: int, left_ms: int, own: str | None, others: Iterable[str | None]
) -> set[str]:
    """The accounts that keep a call as a change: the key's own; the owners of what was changed.

    None of a refused call. One that failed may have changed something in the key's own account; of
    others' it is not known whether the key may do anything there.
    """
    if route_key not in CHANGES or 400 <= status < 500 or left_ms < ITEM_MS:
        return set()
    return {*filter(None, (own, *(others if status < 400 else ())))}


def record(
    core: Core,
    *,
    request_id: str,
    route: str,
    name: str,
    code: str,
    account: str | None = None,
    key_id: str | None = None,
    source: str | None = None,
    kept_by: Iterable[str] = (),
) -> None:
    """Write a line, and an item for each account of `kept_by`; `code` is Ok, or the refusal's."""
    now_ms = core.now_ms()
    fields = {
        "at": format_time(now_ms),
        "request_id": request_id,
        "account": account,
        "key_id": key_id,
        "route": route,
        "resource": name[:_MOST_CHARACTERS],
        "code": code,
        "source": source,
    }
    _logger().info("audit", extra=fields)
    for each in sorted(kept_by):
        _keep(core, each, now_ms, fields)


def _keep(core: Core, kept_by: str, now_ms: int, fields: Mapping[str, str | None]) -> None:
    """Put a change into an account's audit; the call has its answer whatever becomes of it."""
    # Calls on messages have no part in it: their cold starts do without.
    from cirrusmq.access.audit import AuditEntry, keep
    from cirrusmq_lambda.observability import logger

    names = ("request_id", "route", "resource", "code", "account", "key_id")
    told = {name: fields[name] or "" for name in names}
    try:
        keep(core, kept_by, AuditEntry(at_ms=now_ms, **told))
    except Exception as error:
        extra = {"request_id": told["request_id"]}
        logger.error("a change is in the log alone", exc_info=error, extra=extra)


def owner_of(name: str) -> str | None:
    """The account in a resource's name; None where it is the caller's own."""
    owner, colon, _ = name.partition("/")[0].rpartition(":")
    return owner if colon else None


def name_of(names: Mapping[str, str]) -> str:
    """The queue, topic, subscription … in a call's path: `news/web`."""
    return "/".join(names.values())


def note_refusal(request_id: str, route: str, code: str) -> None:
    """Write a line of a refused call with a known key; the alarm of a new release counts these."""
    from cirrusmq_lambda.observability import RELEASE

    fields = {"request_id": request_id, "route": route, "code": code, "release": RELEASE}
    _logger("refusals").info("refused", extra=fields)


@cache
def _logger(service: str = SERVICE) -> Logger:
    """Powertools, imported by the first line, as in `observability`."""
    from aws_lambda_powertools import Logger

    return Logger(service=service, level="INFO")


def claimed_key_id(authorization: str | None) -> str | None:
    """The id that a refused key claims; None where the text is not an id, but maybe a secret."""
    credentials = (authorization or "").rpartition(" ")[2]
    key_id = credentials.partition(":")[0]
    return key_id if _KEY_ID.fullmatch(key_id) else None
