"""The header `X-Amzn-Trace-Id` of a call, which is an attribute of the messages that it sends."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TRACE = re.compile(r"[!-~]{1,512}", re.ASCII)


def read_trace(headers: Mapping[str, str]) -> str | None:
    """Returns the trace that a call is a part of, or None if its program traces nothing.

    An account's API gives each call a new `Root`, and puts `Self` before a program's: a
    program that traces has a `Parent` or `Sampled` beside it.
    """
    parts = [part.strip() for part in headers.get("x-amzn-trace-id", "").split(";")]
    given = ";".join(part for part in parts if part and not part.startswith("Self="))
    is_traced = any(part.startswith(("Parent=", "Sampled=")) for part in parts)
    return given if is_traced and _TRACE.fullmatch(given) else None
