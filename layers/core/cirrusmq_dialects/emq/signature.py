"""The signature of a call: an HMAC of its headers and its path; of the body by its MD5 alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from cirrusmq_dialects.calling import Call
from cirrusmq_dialects.emq.errors import PERMISSION_DENIED, EmqError
from cirrusmq_dialects.signing import same, sign

_AUTHORIZATION = re.compile(r"Galaxy-V2 ([A-Za-z0-9]{1,128}):([A-Za-z0-9+/=]{1,64})", re.ASCII)
_TIME = "x-xiaomi-timestamp"
_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)
_SIGNED = "x-xiaomi-"


def read(headers: Mapping[str, str]) -> tuple[str, str, int]:
    """Returns the key id, the signature and its time in seconds. Raises EmqError without them."""
    found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    at = headers.get(_TIME, "").strip()
    if found is None or not _SECONDS.fullmatch(at):
        text = "a call needs authorization (Galaxy-V2 key:signature) and x-xiaomi-timestamp"
        raise EmqError(PERMISSION_DENIED, text)
    return found[1], found[2], int(at)


def is_signed_with(call: Call, signature: str, secret: str) -> bool:
    """Returns True if the signature was made with the secret, of this call and this body."""
    headers = call.headers
    digest = hashlib.md5(call.body, usedforsecurity=False).hexdigest()
    told = headers.get("content-md5", "")
    named = sorted(name for name in headers if name.startswith(_SIGNED))
    lines = [
        *(call.method, told, headers.get("content-type", ""), ""),
        *(f"{name}:{headers[name].strip()}" for name in named),
        call.path,
    ]
    # Both are compared: the time reveals nothing.
    fits = [same(signature, sign(secret, "\n".join(lines), "sha1")), same(told, digest)]
    return all(fits)
