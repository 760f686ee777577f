"""A request's body: inflated within its limit, and never more values than a batch may have."""

from __future__ import annotations

import base64
import gzip
import json
import random
import tracemalloc
from typing import Any

import msgspec
import pytest

from cirrusmq.base.errors import (
    BatchTooLarge,
    CirrusMQError,
    InvalidParameter,
    MalformedRequest,
    RequestTooLarge,
    UnsupportedMediaType,
)
from cirrusmq.base.limits import MESSAGES_REQUEST_BYTES, REQUEST_BYTES
from cirrusmq.base.shapes import decode
from cirrusmq.publishing.publish import PublishRequest
from cirrusmq.sending.send_request import SendRequest
from cirrusmq_lambda.request_bodies import BINARY, read_body, takes_gzip


def event(body: bytes | str, **headers: str) -> dict[str, Any]:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, str):
        return {"body": body, "isBase64Encoded": False, "headers": told}
    return {
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
        "headers": told,
    }


def gzipped(body: bytes, content_type: str = BINARY) -> dict[str, Any]:
    return event(gzip.compress(body, 1), content_encoding="gzip", content_type=content_type)


@pytest.mark.parametrize("content_type", [BINARY, "application/json", "application/json; x=y"])
def test_a_gzipped_body_is_inflated(content_type: str) -> None:
    assert read_body(gzipped(b'{"a": 1}', content_type), 100) == b'{"a": 1}'


def test_an_empty_body_may_say_anything() -> None:
    assert read_body({"headers": {}}, 10) == b""
    assert read_body(event("", content_type="text/plain"), 10) == b""
    assert read_body(event("", content_encoding="gzip"), 10) == b""


@pytest.mark.parametrize("size", [1_000, REQUEST_BYTES])
def test_a_body_has_at_most_its_limit_in_either_form(size: int) -> None:
    plain = b"x" * size
    json_type = "application/json"
    for given in (gzipped(plain), event(plain.decode(), content_type=json_type)):
        assert read_body(given, size) == plain
        with pytest.raises(RequestTooLarge, match=f"{size - 1:,} bytes"):
            read_body(given, size - 1)


def test_no_more_is_inflated_than_the_limit() -> None:
    bomb = gzipped(b" " * 200_000_000)
    tracemalloc.start()
    with pytest.raises(RequestTooLarge):
        read_body(bomb, REQUEST_BYTES)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * REQUEST_BYTES


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (event(b"{}", content_encoding="gzip", content_type=BINARY), MalformedRequest),
        (event(gzip.compress(b"{}")[:-4], content_encoding="gzip"), MalformedRequest),
        (event(gzip.compress(b"{}") + b"x", content_encoding="gzip"), MalformedRequest),
        (event("{}", content_encoding="gzip", content_type=BINARY), UnsupportedMediaType),
        (event(b"{}", content_encoding="br"), UnsupportedMediaType),
        (event(b"{}", content_type=BINARY), UnsupportedMediaType),
        (gzipped(b"{}", "text/plain"), UnsupportedMediaType),
        ({"body": "a", "isBase64Encoded": True, "headers": {}}, MalformedRequest),
    ],
)
def test_a_body_against_its_headers_is_refused(
    given: dict[str, Any], error: type[CirrusMQError]
) -> None:
    with pytest.raises(error):
        read_body(given, 100)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("gzip, deflate, br", True),
        ("gzip", True),
        ("GZIP;q=0.5", True),
        ("deflate, gzip;q=1.0", True),
        ("*", True),
        ("br;q=1.0, *;q=0.1", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*;q=0", False),
        ("identity", False),
        ("", False),
    ],
)
def test_an_answer_is_gzipped_for_accepting_callers(text: str, taken: bool) -> None:
    assert takes_gzip({"headers": {"accept-encoding": text}}) is taken


def test_without_headers_it_is_not() -> None:
    assert not takes_gzip({})


class TestLargeBodies:
    """Above 1 MiB a body must not become more values than a batch may have."""

    PAD = b" " * REQUEST_BYTES

    def decode(self, body: bytes) -> SendRequest:
        return decode(self.PAD + body, SendRequest, MESSAGES_REQUEST_BYTES)

    def test_the_largest_batch_is_read(self) -> None:
        chance = random.Random(4)
        attributes = {f"name{n}": '\\"' * 200 for n in range(10)}
        message = {
            "attributes": attributes | {"name0": {"base64": "eA=="}},
            "tags": ["t" * 16] * 10,
            "group": "g",
            "deduplication_id": "d",
            "delay_seconds": 1,
            "visibility_timeout_seconds": 1,
        }
        bodies = ["".join(chance.choices('"\\\n\x01{}[],:', k=100_000)) for _ in range(16)]
        sent = {"messages": [message | {"body": body} for body in bodies], "atomic": True}
        read = self.decode(json.dumps(sent).encode())
        assert [each.body for each in read.messages] == bodies

    def test_a_seventeenth_message_is_not_made(self) -> None:
        with pytest.raises(BatchTooLarge, match="1 to 16"):
            self.decode(b'{"messages": [' + b"{}," * 16 + b"{}]}")
        assert len(self.decode(b'{"messages": [' + b"{}," * 15 + b"{}]}").messages) == 16

    @pytest.mark.parametrize(
        "body",
        [
            b'{"messages": [' + b"{}," * 400_000 + b"{}]}",
            b'{"messages": [{"tags": [' + b'"",' * 400_000 + b'""]}]}',
            b'{"messages": [{"tags": [' + b'"\\\\",' * 400_000 + b'""]}]}',
            b'{"messages": [{"attributes": {"a": {"base64": ' + b"[" * 1400_000 + b"}]}",
            b'{"messages": [{"tags": [' + b"1," * 600_000 + b"1]}]}",
            b'{"messages": [{"tags": [' + b"{}," * 400_000 + b"{}]}]}",
            b'{"a": [' + b"{}," * 400_000 + b"{}]}",
        ],
        ids=["messages", "texts", "escapes", "depth", "numbers", "objects", "elsewhere"],
    )
    @pytest.mark.parametrize("shape", [SendRequest, PublishRequest])
    def test_millions_of_values_are_refused_before_they_are_made(
        self, body: bytes, shape: type[msgspec.Struct]
    ) -> None:
        tracemalloc.start()
        with pytest.raises((BatchTooLarge, RequestTooLarge, InvalidParameter, MalformedRequest)):
            decode(body, shape, MESSAGES_REQUEST_BYTES)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 300_000
