"""AWS Signature Version 4, of calls with a header: reading it, and computing it anew."""

from __future__ import annotations

import calendar
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from urllib.parse import quote

import msgspec

ALGORITHM = "AWS4-HMAC-SHA256"
_SERVICE, _END = "sqs", "aws4_request"
_TIME = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
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

    @property
    def seconds(self) -> int:
        """The time of the signature, since the epoch."""
        return calendar.timegm(time.strptime(self.time, "%Y%m%dT%H%M%SZ"))


def read(headers: Mapping[str, str]) -> Signed | None:
    """The signature of a call; None where the header is not one of these, or not complete."""
    algorithm, _, rest = headers.get("authorization", "").partition(" ")
    parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    scope = parts.get("Credential", "").split("/")
    if algorithm != ALGORITHM or len(scope) != 5:
        return None
    key_id, date, region, service, end = scope
    signed = Signed(
        key_id=key_id,
        date=date,
        region=region,
        time=headers.get("x-amz-date", ""),
        headers=tuple(parts.get("SignedHeaders", "").split(";")),
        signature=parts.get("Signature", ""),
    )
    complete = (
        (service, end) == (_SERVICE, _END)
        and _REGION.fullmatch(region)
        and _TIME.fullmatch(signed.time)
        and signed.time.startswith(f"{date}T")
        and set(signed.headers) >= _NEEDED
        and len(set(signed.headers)) == len(signed.headers)
        and all(name in headers for name in signed.headers)
        and _SIGNATURE.fullmatch(signed.signature)
    )
    try:
        _ = signed.seconds if complete else 0
    except ValueError:
        return None
    return signed if complete else None


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
