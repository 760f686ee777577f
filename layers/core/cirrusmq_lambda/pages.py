"""Serves files of a folder over HTTP to everyone: the console and the manual.

    GET /                    index.html
    GET /console             redirect to console/index.html
    GET /console/a.js        console/a.js
    GET /llms.txt            redirect to docs/llms.txt, the manual's list for programs that read

By its headers, a page loads scripts and styles only from this service, calls only this service, and
is in no frame of another page.
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
"""Files with another ending are not served: the function's code is in the folder, too."""
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
_MAX_PARTS = 8
_MANUAL = "docs"
_LISTING = "llms.txt"


def serve(folder: Path, event: dict[str, Any]) -> dict[str, Any]:
    """Returns the answer for an event (payload format 2.0). `folder`: a resolved path."""
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
    """Returns the file at a path below the folder, or a folder with a page, else None.

    Each part of the path must be a plain name, so that none leads out; links are not followed.
    """
    *above, last = path.split("/")
    if len(above) >= _MAX_PARTS:
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
    """Returns a redirect. `to`: relative to the request's path, so that any prefix stays."""
    return {"statusCode": 308, "headers": {**HEADERS, "Location": to}}


@lru_cache(maxsize=256)
def _read(path: Path, modified_ns: int) -> tuple[bytes, bytes, str]:
    """Returns a file's bytes, the gzipped bytes, and the ETag for both."""
    content = path.read_bytes()
    tag = f'W/"{hashlib.sha256(content).hexdigest()[:16]}"'
    return content, gzip.compress(content, mtime=0), tag
