"""Encodes answers as bytes of HTTP/1.1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from cirrusmq_local.cloud.events import Answer

GO_AHEAD = b"HTTP/1.1 100 Continue\r\n\r\n"
_BARE = frozenset({204, 304})
"""Statuses whose answers have neither a body nor its length."""
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def encode_answer(
    answer: Answer, request_id: str, now_ms: int, *, closing: bool = False, head_only: bool = False
) -> bytes:
    """Returns the bytes of an answer. `closing`: the connection ends after it.

    `head_only`: the request asks for no body. Raises ValueError if a header is not valid.
    """
    bare = answer.status in _BARE
    lines = [_first_lines(answer.status, now_ms // 1_000), request_id]
    if not bare:
        lines.append(f"\r\ncontent-length: {len(answer.body)}")
    if closing:
        lines.append("\r\nconnection: close")
    lines.append(_header_lines(answer.headers))
    lines.append("\r\n\r\n")
    head = "".join(lines).encode("latin-1", "replace")
    return head if bare or head_only else head + answer.body


def encode_fault(text: str) -> bytes:
    """Returns the answer to bytes that are no request; the connection ends after it."""
    return (
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
        f"connection: close\r\ncontent-length: {len(text)}\r\n\r\n{text}"
    ).encode()


@lru_cache(maxsize=32)
def _first_lines(status: int, now_seconds: int) -> str:
    """Returns the lines up to the value of the request's id."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    date = formatdate(now_seconds, usegmt=True)
    return f"HTTP/1.1 {status} {phrase}\r\ndate: {date}\r\napigw-requestid: "


def _header_lines(headers: Sequence[tuple[str, str]]) -> str:
    return "".join([_header_line(*header) for header in headers])


@lru_cache(maxsize=256)
def _header_line(name: str, value: str) -> str:
    if name.lower() in ("content-length", "connection"):
        return ""
    if not _TOKEN.fullmatch(name) or _CONTROL.search(value):
        raise ValueError(f"not a header of HTTP: {name!r}")
    return f"\r\n{name.lower()}: {value}"
