"""The part of a URL's answer to a failed post that may be kept: bounded, without secrets."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

BODY_BYTES = 1_024
HEADERS_BYTES = 1_024
"""Limit of names and values as they are kept: many short headers take more than their letters."""
_SECRET = ("auth", "cookie", "token", "secret", "key", "session", "password", "credential")
"""A header whose name has one of these is not kept."""


class AnswerSample(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of an answer."""

    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    """At most BODY_BYTES, as they came."""
    cut: bool = False
    """True if the body was longer."""


def sample_of(header_lines: Iterable[bytes], body: bytes) -> AnswerSample:
    """Returns the sample of an answer: its header lines as they came, and the begin of its body.

    A line that begins with a space goes on with the one before it, and is left out with it.
    """
    headers: list[tuple[str, str]] = []
    left = HEADERS_BYTES
    for line in header_lines:
        name, colon, value = line.decode("latin-1").strip("\r\n").partition(":")
        name, value = name.strip(), value.strip()
        if not colon or line[:1] in (b" ", b"\t") or any(each in name.lower() for each in _SECRET):
            continue
        left -= len(msgspec.json.encode((name, value)))
        if left < 0:
            break
        headers.append((name, value))
    return AnswerSample(headers=tuple(headers), body=body[:BODY_BYTES], cut=len(body) > BODY_BYTES)
