"""AWS Signature Version 4, in a header or in the query: reading it, and computing it again."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote

import msgspec

from cirrusmq_dialects.calling import Call
from cirrusmq_dialects.signing import same

ALGORITHM = "AWS4-HMAC-SHA256"
IN_QUERY = "X-Amz-Signature="
_END = "aws4_request"
_EXPIRES = re.compile(r"[0-9]{1,6}", re.ASCII)
_LONGEST_SECONDS = 604_800
_NAME = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", re.ASCII)
_REGION = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
_SIGNATURE = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Signed(msgspec.Struct, frozen=True, kw_only=True):
    """The statement of a caller: the key, the scope, and what it signed."""

    key_id: str
    date: str
    region: str
    service: str
    """The service that it was made for: `sqs`, `sns`."""
    time: str
    headers: tuple[str, ...]
    signature: str
    seconds: int
    """The time of the signature, since the epoch."""
    good_seconds: int | None = None
    """Seconds for which a signature in the query is good. None if it is in the header."""


def read(headers: Mapping[str, str], query: str = "") -> Signed | None:
    """Returns the signature of a call, or None if it is of another kind or not complete.

    A signature in the query states for how long it is good.
    """
    if "authorization" not in headers and IN_QUERY in query:
        given = dict(parse_qsl(query))
        expires = given.get("X-Amz-Expires", "")
        if given.get("X-Amz-Algorithm") != ALGORITHM or not _EXPIRES.fullmatch(expires):
            return None
        names = ("Credential", "SignedHeaders", "Signature", "Date")
        parts = {name: given.get(f"X-Amz-{name}", "") for name in names}
        good_seconds = int(expires)
        is_good = 1 <= good_seconds <= _LONGEST_SECONDS
        return _read(parts, headers, {"host"}, good_seconds) if is_good else None
    algorithm, _, rest = headers.get("authorization", "").partition(" ")
    if algorithm != ALGORITHM:
        return None
    parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    parts["Date"] = headers.get("x-amz-date", "")
    return _read(parts, headers, {"host", "x-amz-date"}, None)


def _read(
    parts: Mapping[str, str],
    headers: Mapping[str, str],
    needed: AbstractSet[str],
    good_seconds: int | None,
) -> Signed | None:
    """The signature in its parts; `needed`: the headers that it must be of."""
    scope = parts.get("Credential", "").split("/")
    if len(scope) != 5:
        return None
    key_id, date, region, service, end = scope
    names = parts.get("SignedHeaders", "").split(";")
    at, given = parts["Date"], parts.get("Signature", "")
    seconds = _seconds(at)
    complete = (
        end == _END
        and _NAME.fullmatch(service)
        and _REGION.fullmatch(region)
        and seconds is not None
        and at.startswith(f"{date}T")
        and needed <= set(names)
        and len(set(names)) == len(names)
        and all(name in headers for name in names)
        and _SIGNATURE.fullmatch(given)
    )
    if not complete or seconds is None:
        return None
    return Signed(
        key_id=key_id,
        date=date,
        region=region,
        service=service,
        time=at,
        headers=tuple(names),
        signature=given,
        seconds=seconds,
        good_seconds=good_seconds,
    )


def _seconds(text: str) -> int | None:
    """Returns the time in `20261121T194227Z`, since the epoch, or None if it is not a time."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.groups())
    try:
        return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp())
    except ValueError:
        return None


def text_to_sign(
    signed: Signed, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
) -> str:
    """The text of a call of which its signature is made. `path` is decoded."""
    canonical = "\n".join(
        [
            method,
            quote(path, safe="/-_.~"),
            _canonical_query(query),
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed.headers),
            "",
            ";".join(signed.headers),
            hashlib.sha256(body).hexdigest(),
        ]
    )
    scope = f"{signed.date}/{signed.region}/{signed.service}/{_END}"
    digest = hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()
    return "\n".join([ALGORITHM, signed.time, scope, digest])


def _canonical_query(query: str) -> str:
    """The query by its names and values, without the signature itself."""
    pairs = sorted(each.partition("=")[::2] for each in query.split("&") if each)
    return "&".join(f"{name}={value}" for name, value in pairs if f"{name}=" != IN_QUERY)


def check_of(signed: Signed, call: Call) -> Callable[[str], bool]:
    """Makes the check of a call's signature: whether it is made with a secret."""
    text = text_to_sign(signed, call.method, call.path, call.query, call.headers, call.body)
    return lambda secret: same(signed.signature, sign(secret, signed, text))


def sign(secret: str, signed: Signed, text: str) -> str:
    """The signature of a text with a secret, in hexadecimal digits."""
    key = f"AWS4{secret}".encode()
    for part in (signed.date, signed.region, signed.service, _END):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()
