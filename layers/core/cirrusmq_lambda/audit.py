"""The audit: one line in the log for each call that changes something, and for each refused key.

Changes are of keys, queues, topics, subscriptions, receivers, grants and operations, whatever their
outcome. Sending, receiving and deleting messages is not among them, since a line costs more than
the call; but every call is that is answered with 401 or 403. A line has no body, no secret and no
more of a header than the id of the key, and is written at every `LogLevel`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from cirrusmq.base.timestamps import format_time
from cirrusmq_lambda import rights

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

SERVICE = "audit"
"""The value of `service` by which the lines are found."""
CHANGES = frozenset(
    route for route in rights.MANAGES | rights.OF_KEYS if not route.startswith("GET ")
)
REFUSALS = (401, 403)
_KEY_ID = re.compile(r"CK[0-9a-z]{18}|AKID[0-9a-z]{32}", re.ASCII)
_MOST_CHARACTERS = 200


def concerns(route_key: str, status: int) -> bool:
    """Whether a call is in the audit."""
    return route_key in CHANGES or status in REFUSALS


def record(
    *,
    now_ms: int,
    request_id: str,
    route: str,
    name: str,
    code: str,
    account: str | None = None,
    key_id: str | None = None,
    source: str | None = None,
) -> None:
    """Write a line. `code` is that of the refusal, or `Ok`."""
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


def name_of(names: Mapping[str, str]) -> str:
    """The queue, topic, subscription … in a call's path: `news/web`."""
    return "/".join(names.values())


@cache
def _logger() -> Logger:
    """Powertools, imported by the first line, as in `observability`."""
    from aws_lambda_powertools import Logger

    return Logger(service=SERVICE, level="INFO")


def claimed_key_id(authorization: str | None) -> str | None:
    """The id that a refused key claims; None where the text is not an id, but maybe a secret."""
    credentials = (authorization or "").rpartition(" ")[2]
    key_id = credentials.partition(":")[0]
    return key_id if _KEY_ID.fullmatch(key_id) else None
