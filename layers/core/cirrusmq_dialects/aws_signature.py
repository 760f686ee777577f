"""AWS Signature Version 4, in a header or in the query: reading it, and computing it again."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, quote

import msgspec

from cirrusmq.access.key_cache import OPENED_MS
from cirrusmq_dialects.calling import Call
from cirrusmq_dialects.signing import mac, same

ALGORITHM = "AWS4-HMAC-SHA256"
IN_QUERY = "X-Amz-Signature="
_END = "aws4_request"
_EXPIRES = re.compile(r"[0-9]{1,6}", re.ASCII)
_LONGEST_SECONDS = 604_800
_REMEMBERED = 128
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
        return _read(parts, headers, "host", good_seconds) if is_good else None
    algorithm, _, rest = headers.get("authorization", "").partition(" ")
    if algorithm != ALGORITHM:
        return None
    # Most programs put it at the end: the text before it is the same in many calls.
    before, name, signature = rest.rpartition("Signature=")
    is_last = name and "," not in signature
    written = {**_parts(before), "Signature": signature} if is_last else _parts(rest)
    at = headers.get("x-amz-date", "")
    return _read({**written, "Date": at}, headers, "host;x-amz-date", None)


@lru_cache(_REMEMBERED)
def _parts(text: str) -> Mapping[str, str]:
    """The parts of an Authorization header, by their names."""
    return dict(part.strip().partition("=")[::2] for part in text.split(","))


def _read(
    parts: Mapping[str, str], headers: Mapping[str, str], needed: str, good_seconds: int | None
) -> Signed | None:
    """The signature in its parts; `needed`: the headers that it must be of, separated by `;`."""
    scope = _scope(parts.get("Credential", ""))
    names = _header_names(parts.get("SignedHeaders", ""), needed)
    at, given = parts["Date"], parts.get("Signature", "")
    seconds = _seconds(at)
    if scope is None or names is None or seconds is None or not _SIGNATURE.fullmatch(given):
        return None
    if not at.startswith(f"{scope.date}T") or not all(name in headers for name in names):
        return None
    return Signed(
        key_id=scope.key_id,
        date=scope.date,
        region=scope.region,
        service=scope.service,
        time=at,
        headers=names,
        signature=given,
        seconds=seconds,
        good_seconds=good_seconds,
    )


class _Scope(NamedTuple):
    """The parts of a credential."""

    key_id: str
    date: str
    region: str
    service: str


# A program sends the same of these three in many calls.
@lru_cache(_REMEMBERED)
def _scope(credential: str) -> _Scope | None:
    """Returns the parts of a credential, or None if it is none."""
    parts = credential.split("/")
    if len(parts) != 5:
        return None
    *_, region, service, end = parts
    complete = end == _END and _NAME.fullmatch(service) and _REGION.fullmatch(region)
    return _Scope(*parts[:-1]) if complete else None


@lru_cache(_REMEMBERED)
def _header_names(text: str, needed: str) -> tuple[str, ...] | None:
    """Returns the names of signed headers, or None if one is twice or a needed one is missing."""
    names = tuple(text.split(";"))
    distinct = set(names)
    fits = len(distinct) == len(names) and distinct.issuperset(needed.split(";"))
    return names if fits else None


@lru_cache(_REMEMBERED)
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
            "/" if path == "/" else quote(path, safe="/-_.~"),
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
    if not query:
        return ""
    pairs = sorted(each.partition("=")[::2] for each in query.split("&") if each)
    return "&".join(f"{name}={value}" for name, value in pairs if f"{name}=" != IN_QUERY)


class _SigningKeys:
    """An environment's memory of the keys of signatures, which are good for a day.

    Each is made of a secret, and is remembered no longer than an unsealed secret.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[str, str, str, str], tuple[bytes, int]] = {}

    def key(self, secret: str, signed: Signed, now_ms: int) -> bytes:
        """Returns the key of a secret, for the date, region and service of a signature."""
        scope = secret, signed.date, signed.region, signed.service
        key, until_ms = self._held.get(scope, (b"", 0))
        if now_ms >= until_ms:
            key = signing_key(secret, signed)
            if len(self._held) >= _REMEMBERED:
                self._held.clear()
            self._held[scope] = key, now_ms + OPENED_MS
        return key


def check_of(signed: Signed, call: Call) -> Callable[[str], bool]:
    """Makes the check of a call's signature: whether it is made with a secret."""
    text = text_to_sign(
        signed, call.method, call.path, call.query, call.headers, call.body
    ).encode()
    keys, now_ms = call.core.memory(_SigningKeys), call.core.now_ms()

    def is_signed_with(secret: str) -> bool:
        key = keys.key(secret, signed, now_ms)
        return same(signed.signature, mac(key, text, "sha256").hexdigest())

    return is_signed_with


def signing_key(secret: str, signed: Signed) -> bytes:
    """The key of signatures with a secret, for a date, a region and a service."""
    key = f"AWS4{secret}".encode()
    for part in (signed.date, signed.region, signed.service, _END):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def sign(secret: str, signed: Signed, text: str) -> str:
    """The signature of a text with a secret, in hexadecimal digits."""
    return hmac.digest(signing_key(secret, signed), text.encode(), "sha256").hex()
