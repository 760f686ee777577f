"""AWS Signature Version 4, of calls with a header: reading it, and computing it anew."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote

import msgspec

ALGORITHM = "AWS4-HMAC-SHA256"
_SERVICE, _END = "sqs", "aws4_request"
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", re.ASCII)
_REGION = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
_SIGNATURE = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NEEDED = frozenset({"host", "x-amz-date"})


class Signed(msgspec.Struct, frozen=True, kw_only=True):
    """The statement of a caller: the key, the scope, and what it signed."""

    key_id: str
    date: str
    region: str
    time: str
    headers: tuple[str, ...]
    signature: str
    seconds: int
    """The time of the signature, since the epoch."""


def read(headers: Mapping[str, str]) -> Signed | None:
    """The signature of a call; None where the header is not one of these, or not complete."""
    algorithm, _, rest = headers.get("authorization", "").partition(" ")
    parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    scope = parts.get("Credential", "").split("/")
    if algorithm != ALGORITHM or len(scope) != 5:
        return None
    key_id, date, region, service, end = scope
    names = parts.get("SignedHeaders", "").split(";")
    at, given = headers.get("x-amz-date", ""), parts.get("Signature", "")
    seconds = _seconds(at)
    complete = (
        (service, end) == (_SERVICE, _END)
        and _REGION.fullmatch(region)
        and seconds is not None
        and at.startswith(f"{date}T")
        and _NEEDED.issubset(names)
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
        time=at,
        headers=tuple(names),
        signature=given,
        seconds=seconds,
    )


def _seconds(text: str) -> int | None:
    """The time in `20261121T194227Z`, since the epoch; None where it is none."""
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
            "&".join(sorted(query.split("&"))) if query else "",
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed.headers),
            "",
            ";".join(signed.headers),
            hashlib.sha256(body).hexdigest(),
        ]
    )
    scope = f"{signed.date}/{signed.region}/{_SERVICE}/{_END}"
    digest = hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()
    return "\n".join([ALGORITHM, signed.time, scope, digest])


def sign(secret: str, signed: Signed, text: str) -> str:
    """The signature of a text with a secret, in hexadecimal digits."""
    key = f"AWS4{secret}".encode()
    for part in (signed.date, signed.region, _SERVICE, _END):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()
