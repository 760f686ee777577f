"""Requests: the parameters of a query, and the elements of an XML document."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl
from xml.parsers import expat

from cirrusmq.base.limits import BATCH_MESSAGES
from cirrusmq_dialects.aliyun.errors import MqError, invalid
from cirrusmq_dialects.calling import Call

_BODY_BYTES = 1_048_576
_LEVELS = 64
_FIELDS = 20
_INTEGER = re.compile(r"[0-9]{1,9}", re.ASCII)


def read_query(query: str) -> dict[str, str]:
    """The parameters of a query, none of them twice."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except ValueError as error:
        raise MqError("InvalidQueryString") from error
    found = dict(pairs)
    if len(found) < len(pairs):
        raise MqError("InvalidQueryString")
    return found


def integer(params: Mapping[str, str], name: str, bounds: tuple[int, int]) -> int | None:
    """Returns a number within bounds, or None if it is not given."""
    value = params.get(name)
    if value is None:
        return None
    if not _INTEGER.fullmatch(value) or not bounds[0] <= int(value) <= bounds[1]:
        raise invalid(f"{name} must be an integer from {bounds[0]} to {bounds[1]}.")
    return int(value)


def check_digest(call: Call) -> None:
    """Raises MqError if the body does not match `Content-MD5`.

    One SDK sends the base64 of the digest's hexadecimal digits, all others of its bytes.
    """
    given = call.headers.get("content-md5")
    if not given:
        return
    digest = hashlib.md5(call.body, usedforsecurity=False)
    forms = (digest.digest(), digest.hexdigest().encode())
    if given not in [base64.b64encode(form).decode() for form in forms]:
        raise MqError("InvalidDigest")


def read_message(body: bytes) -> dict[str, str]:
    """The texts of the elements in `Message`; of one that comes twice the last."""
    return dict(_elements(body, "Message"))


def read_handles(body: bytes) -> list[str]:
    """The texts of the elements in `ReceiptHandles`, 1 to 16."""
    if not body:
        raise MqError("MissingReceiptHandle")
    found = [text for name, text in _elements(body, "ReceiptHandles") if name == "ReceiptHandle"]
    if not found or not all(found):
        raise MqError("MissingReceiptHandle")
    if len(found) > BATCH_MESSAGES:
        raise invalid(f"A request has at most {BATCH_MESSAGES} receipt handles.")
    return list(dict.fromkeys(found))


def _elements(body: bytes, root: str) -> list[tuple[str, str]]:
    """Names and texts of the elements in the root, which has this name."""
    if len(body) > _BODY_BYTES:
        raise MqError("MalformedXML")
    # Whatever the document says of its encoding. A name in a namespace: what follows the blank.
    parser = expat.ParserCreate("utf-8", " ")
    reader = _Reader(root)
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.add
    parser.StartDoctypeDeclHandler = reader.refuse
    parser.buffer_text = True
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, UnicodeError) as error:
        raise MqError("MalformedXML") from error
    return reader.found


class _Reader:
    """Collects the elements that a parser finds."""

    def __init__(self, root: str) -> None:
        self.found: list[tuple[str, str]] = []
        self._root, self._level = root, 0
        self._text: list[str] = []

    def start(self, name: str, attributes: Any) -> None:
        self._level += 1
        wrong_root = self._level == 1 and name.rpartition(" ")[2] != self._root
        if wrong_root or self._level > _LEVELS:
            raise MqError("MalformedXML")
        if self._level == 2:
            self._text = []

    def end(self, name: str) -> None:
        if self._level == 2:
            self.found.append((name.rpartition(" ")[2], "".join(self._text)))
        self._level -= 1

    def add(self, text: str) -> None:
        if self._level == 2:
            self._text.append(text)

    def refuse(self, *declared: Any) -> None:
        raise MqError("MalformedXML")
