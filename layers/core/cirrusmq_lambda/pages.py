"""Files of a folder over HTTP: the console and the manual, for anybody.

    GET /                    index.html
    GET /console             redirect to console/index.html
    GET /console/a.js        console/a.js
    GET /llms.txt            redirect to docs/llms.txt, the manual's list for programs that read

A page has its script and style from this service alone, calls this service alone, and is in no
frame of another: the headers say so to the browser.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from cirrusmq.base.errors import NotFound
from cirrusmq_lambda.problems import problem
from cirrusmq_lambda.request_bodies import takes_gzip

MEDIA_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
"""Files with another ending are not served: the function's own code is in the folder too."""
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none';"
    " form-action 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # A file's name says nothing of its release: a browser asks, and is answered 304.
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}
_INDEX = "index.html"
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_MOST_PARTS = 8
_MANUAL = "docs"
_LISTING = "llms.txt"


def serve(folder: Path, event: dict[str, Any]) -> dict[str, Any]:
    """The answer of the HTTP API to an event (payload format 2.0); `folder`: resolved."""
    path = str(event["rawPath"]).removeprefix("/")
    if path == _LISTING:
        return _redirect(f"{_MANUAL}/{_LISTING}")
    found = find(folder, path)
    if found is None:
        return problem(NotFound(_missing(folder, path)), event["requestContext"]["requestId"])
    if found.is_dir():
        return _redirect(f"{found.name}/{_INDEX}")
    content, packed, tag = _read(found, found.stat().st_mtime_ns)
    headers = {**HEADERS, "ETag": tag}
    if tag in event.get("headers", {}).get("if-none-match", ""):
        return {"statusCode": 304, "headers": headers}
    headers["Content-Type"] = MEDIA_TYPES[found.suffix]
    if takes_gzip(event):
        content, headers["Content-Encoding"] = packed, "gzip"
    body = base64.b64encode(content).decode()
    return {"statusCode": 200, "headers": headers, "body": body, "isBase64Encoded": True}


def find(folder: Path, path: str) -> Path | None:
    """The file at a path below the folder, or a folder that has a page; None for all else.

    Each part of the path is a plain name, so that none leads out, and what is found is no link.
    """
    *above, last = path.split("/")
    if len(above) >= _MOST_PARTS:
        return None
    if not all(_PART.fullmatch(part) for part in (*above, last or _INDEX)):
        return None
    found = folder.joinpath(*above, last or _INDEX)
    if found.resolve() != found:
        return None
    if found.is_dir():
        return found if (found / _INDEX).is_file() else None
    return found if found.suffix in MEDIA_TYPES and found.is_file() else None


def _missing(folder: Path, path: str) -> str:
    if path.split("/")[0] == _MANUAL and not (folder / _MANUAL).is_dir():
        return "The manual is not built: run `make site`."
    return "There is no such page."


def _redirect(to: str) -> dict[str, Any]:
    """`to`: relative to the path that was asked for, whatever is before this service."""
    return {"statusCode": 308, "headers": {**HEADERS, "Location": to}}


@lru_cache(maxsize=256)
def _read(path: Path, modified_ns: int) -> tuple[bytes, bytes, str]:
    """A file's bytes, the same gzipped, and its ETag, the same for both."""
    content = path.read_bytes()
    tag = f'W/"{hashlib.sha256(content).hexdigest()[:16]}"'
    return content, gzip.compress(content, mtime=0), tag
