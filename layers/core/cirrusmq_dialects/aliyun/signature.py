"""The signature of a call: an HMAC-SHA1 of its method, some headers, path and query as sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from cirrusmq_dialects.aliyun.errors import MqError
from cirrusmq_dialects.calling import Call
from cirrusmq_dialects.signing import same, sign

_AUTHORIZATION = re.compile(r"MQ ([^:\s]{1,128}):([A-Za-z0-9+/=]{1,64})", re.ASCII)
_DATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) ([A-Z][a-z][a-z]) (\d{4}) (\d\d):(\d\d):(\d\d) GMT",
    re.ASCII,
)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_OWN = "x-mq-"


def read(headers: Mapping[str, str]) -> tuple[str, str]:
    """The key's id and the signature that a call brings."""
    given = headers.get("authorization")
    if not given:
        raise MqError("MissingAuthorizationHeader")
    found = _AUTHORIZATION.fullmatch(given.strip())
    if found is None:
        raise MqError("InvalidAuthorizationHeader")
    return found[1], found[2]


def read_date(headers: Mapping[str, str]) -> int:
    """The time of a call, in seconds since the epoch."""
    given = headers.get("date")
    if not given:
        raise MqError("MissingDateHeader")
    found = _DATE.fullmatch(given.strip())
    if found is None or found[2] not in _MONTHS:
        raise MqError("InvalidDateHeader")
    day, month, year, hour, minute, second = found.groups()
    month_number = _MONTHS.index(month) + 1
    try:
        at = datetime(
            int(year), month_number, int(day), int(hour), int(minute), int(second), tzinfo=UTC
        )
    except ValueError as error:
        raise MqError("InvalidDateHeader") from error
    return int(at.timestamp())


def is_signed_with(secret: str, given: str, call: Call) -> bool:
    """Returns True if the signature is the call's with this secret."""
    # All forms are compared: the time reveals nothing.
    fits = [same(given, sign(secret, text, "sha1")) for text in _texts(call)]
    return any(fits)


def _texts(call: Call) -> Iterator[str]:
    """The text that was signed; an API may have added a Content-Type to a call without a body."""
    content_type = call.headers.get("content-type", "")
    yield text_to_sign(call.method, call.path, call.query, call.headers, content_type)
    if content_type and not call.body:
        yield text_to_sign(call.method, call.path, call.query, call.headers, "")


def text_to_sign(
    method: str, path: str, query: str, headers: Mapping[str, str], content_type: str
) -> str:
    """The text of a call of which its signature is made."""
    own = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers) if name.startswith(_OWN))
    resource = f"{path}?{query}" if query else path
    md5, date = headers.get("content-md5", ""), headers.get("date", "")
    return f"{method}\n{md5}\n{content_type}\n{date}\n{own}{resource}"
