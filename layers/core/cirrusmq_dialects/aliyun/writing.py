"""Answers: XML, each value one escaped text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cirrusmq_dialects.aliyun.errors import HandleErrors, MqError, text_of
from cirrusmq_dialects.calling import Answer

VERSION = "2015-06-06"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
_SPACE = ' xmlns="http://mq.aliyuncs.com/doc/v1/"'
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"}
_ESCAPE = re.compile('[&<>"\r]')
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot carry."""


def published(fields: Mapping[str, str], request_id: str) -> Answer:
    """Returns the answer of a publish."""
    return _answer(201, f"<Message{_SPACE}>{_elements(fields)}</Message>", request_id)


def consumed(messages: Iterable[Mapping[str, str]], request_id: str) -> Answer:
    """Returns the answer of a consume that found messages."""
    inner = "".join(f"<Message>{_elements(fields)}</Message>" for fields in messages)
    return _answer(200, f"<Messages{_SPACE}>{inner}</Messages>", request_id)


def done(request_id: str) -> Answer:
    """Returns the answer of an acknowledgement, which is empty."""
    return Answer(204, _headers(request_id), b"")


def handle_errors(error: HandleErrors, request_id: str) -> Answer:
    """Returns the answer for handles that ended nothing."""
    inner = "".join(
        "<Error>"
        + _elements({"ErrorCode": code, "ErrorMessage": text_of(code), "ReceiptHandle": handle})
        + "</Error>"
        for handle, code in error.codes.items()
    )
    return _answer(404, f"<Errors{_SPACE}>{inner}</Errors>", request_id)


def write_error(error: MqError, host: str, request_id: str) -> Answer:
    """Returns the answer of a refused call."""
    fields = {
        "Code": error.code,
        "Message": error.message,
        "RequestId": request_id,
        "HostId": f"http://{host}",
    }
    return _answer(error.status, f"<Error{_SPACE}>{_elements(fields)}</Error>", request_id)


def _elements(fields: Mapping[str, str]) -> str:
    return "".join(f"<{name}>{_escaped(text)}</{name}>" for name, text in fields.items())


def _escaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPED[found[0]], NO_XML.sub("\ufffd", text))


def _answer(status: int, document: str, request_id: str) -> Answer:
    # Node reads a body of no other type; Python looks for the id in lower case.
    headers = {**_headers(request_id), "Content-Type": "text/xml;charset=utf-8"}
    return Answer(status, headers, f"{_HEAD}{document}".encode("utf-8", "replace"))


def _headers(request_id: str) -> dict[str, str]:
    return {"x-mq-request-id": request_id, "x-mq-version": VERSION}
