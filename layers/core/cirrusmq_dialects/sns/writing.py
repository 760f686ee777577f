"""Writes answers of the query protocol, in XML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cirrusmq_dialects.calling import Answer
from cirrusmq_dialects.sns.errors import SnsError

NAMESPACE = "http://sns.amazonaws.com/doc/2010-03-31/"
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#xD;"}
_ESCAPE = re.compile('[&<>"\r]')
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLAIN = re.compile("[ !#-%'-;=?-~]*")


def write(action: str, result: Mapping[str, Any] | None, request_id: str) -> Answer:
    """Returns the answer of a call.

    result: the members of the result, or None for an action without a result.
    """
    inner = "" if result is None else _element(f"{action}Result", _written(result))
    told = _element("ResponseMetadata", _element("RequestId", request_id))
    text = f'<{action}Response xmlns="{NAMESPACE}">{inner}{told}</{action}Response>'
    return Answer(200, _headers(request_id), text.encode())


def write_error(error: SnsError, request_id: str) -> Answer:
    """Returns the answer of a refused call."""
    told = {
        "Type": "Sender" if error.is_senders else "Receiver",
        "Code": error.code,
        "Message": error.message,
    }
    inner = _element("Error", _written(told)) + _element("RequestId", request_id)
    text = f'<ErrorResponse xmlns="{NAMESPACE}">{inner}</ErrorResponse>'
    return Answer(error.status, _headers(request_id), text.encode())


def _written(members: Mapping[str, Any]) -> str:
    return "".join([_member(name, held) for name, held in members.items()])


def _member(name: str, held: Any) -> str:
    if isinstance(held, str):
        return f"<{name}>{_text(held)}</{name}>"
    if isinstance(held, list):
        members = [f"<member>{_written(each)}</member>" for each in held]
        return f"<{name}>{''.join(members)}</{name}>"
    match held:
        case dict() if name == "Attributes":
            entries = [
                f"<entry><key>{_text(key)}</key><value>{_text(value)}</value></entry>"
                for key, value in held.items()
            ]
            return _element(name, "".join(entries))
        case bool():
            return _element(name, str(held).lower())
        case _:
            return _element(name, _text(str(held)))


def _element(name: str, inner: str) -> str:
    return f"<{name}>{inner}</{name}>"


def _text(value: str) -> str:
    """A text in XML; a character that XML cannot carry, of a native caller, is U+FFFD."""
    if _PLAIN.fullmatch(value):
        return value
    return _ESCAPE.sub(lambda found: _ESCAPED[found[0]], _NO_XML.sub("\ufffd", value))


def _headers(request_id: str) -> dict[str, str]:
    return {"Content-Type": "text/xml", "x-amzn-RequestId": request_id}
