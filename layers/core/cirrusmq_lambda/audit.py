"""The audit: a line in the log for each call that changes a resource, and for each refused key.

The audit has changes of keys, queues, topics, subscriptions, receivers, grants and operations,
whatever their outcome, and each call that is answered with 401 or 403. It does not have sends,
receives and deletes of messages, since a line costs more than the call. A line has no body, no
secret and no header except the id of the key, and is written at every `LogLevel`.

For a change that was made, or may have been made, an item is written, too, which the account can
read by `GET /audit`. Only the log is complete:

    changed ── line ── item ── answered
                  └── stopped, or the store refuses: the line alone

A refused call writes no item, so that nobody can fill the table with refusals.
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
"""The value of `service` that marks the audit's lines."""
CHANGES = frozenset(
    route
    for route in rights.MANAGES | rights.OF_KEYS | rights.CHANGES_SCHEDULES
    if not route.startswith("GET ")
)
REFUSALS = (401, 403)
_KEY_ID = re.compile(r"CK[0-9a-z]{18}|AKID[0-9a-z]{32}", re.ASCII)
_MAX_CHARACTERS = 200
ITEM_MS = 15_000
"""Maximum time of two attempts of a write. With less time left the call's answer could be lost."""


def concerns(route_key: str, status: int) -> bool:
    """Returns True if a call is in the audit."""
    return route_key in CHANGES or status in REFUSALS


def accounts(
    route_key: str, status: int, left_ms: int, own: str | None, others: Iterable[str | None]
) -> set[str]:
    """Returns the accounts whose audit gets a change: the key's own, and the resources' owners.

    Returns none for a refused call. A failed call may have changed something in the key's own
    account; other accounts are left out, as it is not known if the key has rights there.
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
    """Writes a line, and an item for each account of `kept_by`. `code`: Ok, or the error's."""
    now_ms = core.now_ms()
    fields = {
        "at": format_time(now_ms),
        "request_id": request_id,
        "account": account,
        "key_id": key_id,
        "route": route,
        "resource": name[:_MAX_CHARACTERS],
        "code": code,
        "source": source,
    }
    _logger().info("audit", extra=fields)
    for each in sorted(kept_by):
        _keep(core, each, now_ms, fields)


def _keep(core: Core, kept_by: str, now_ms: int, fields: Mapping[str, str | None]) -> None:
    """Puts a change into an account's audit; a failure does not change the call's answer."""
    # Imported here: calls on messages write no item, and their cold starts do not load this.
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
    """Returns the account in a resource's name, or None for the caller's own."""
    owner, colon, _ = name.partition("/")[0].rpartition(":")
    return owner if colon else None


def name_of(names: Mapping[str, str]) -> str:
    """Returns the names in a call's path: `news/web`."""
    return "/".join(names.values())


def note_refusal(request_id: str, route: str, code: str) -> None:
    """Writes a line for a refused call with a known key; a new release's alarm counts these."""
    from cirrusmq_lambda.observability import RELEASE

    fields = {"request_id": request_id, "route": route, "code": code, "release": RELEASE}
    _logger("refusals").info("refused", extra=fields)


@cache
def _logger(service: str = SERVICE) -> Logger:
    """Returns Powertools' logger, imported at the first line, as in `observability`."""
    from aws_lambda_powertools import Logger

    return Logger(service=service, level="INFO")


def claimed_key_id(authorization: str | None) -> str | None:
    """Returns the id that a refused key claims, or None if the text may be a secret."""
    credentials = (authorization or "").rpartition(" ")[2]
    key_id = credentials.partition(":")[0]
    return key_id if _KEY_ID.fullmatch(key_id) else None
