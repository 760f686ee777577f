"""Clients that have gone hold no message: a receive ends with them, or what it took goes back."""

from __future__ import annotations

import base64
import gzip
import json
import random
import select
import socket
import struct
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from msgspec.structs import replace
from tests.local.test_connections import wait_until
from tests.stack import Stack, Start

from cirrusmq_dialects.sqs import query_json
from cirrusmq_local.cloud.events import Answer, Request
from cirrusmq_local.stack.unread import receipts_of, receives

COUNT = 6
SIZE = 570_000
"""Bytes of a message of which an answer has so many: it is as large as an answer may be."""


class Receives:
    """Receives of a queue's messages by sockets whose clients go, at a moment of their choice."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.client = stack, stack.client()
        self.client.put("/queues/dead").raise_for_status()
        dead_letter = {"queue": "dead", "max_receives": 1}
        attributes = {"dead_letter": dead_letter, "partitions": 1, "max_message_bytes": 1_048_576}
        self.client.put("/queues/orders", json=attributes).raise_for_status()
        held = stack.connection()
        self.dialect_url = held["dialect_url"]
        self.sqs = boto3.client(
            "sqs",
            region_name="eu-central-1",
            endpoint_url=self.dialect_url,
            aws_access_key_id=held["signing_key"]["access_key_id"],
            aws_secret_access_key=held["signing_key"]["secret"],
            config=Config(retries={"total_max_attempts": 1}),
        )

    def send(self, body: bytes = b"a") -> None:
        message = {"body_base64": base64.b64encode(body).decode()}
        sent = self.client.post("/queues/orders/messages", json={"messages": [message]})
        sent.raise_for_status()

    def ask(self, kind: str, wait_seconds: int) -> socket.socket:
        """Send a request for a message; the socket, on which its answer would come."""
        if kind == "sqs":
            return self._ask_as_sqs(wait_seconds)
        body = json.dumps({"max": 10, "wait_seconds": wait_seconds}).encode()
        zipped = "accept-encoding: gzip\r\n" if kind == "gzip" else ""
        head = (
            "POST /queues/orders/messages/receive HTTP/1.1\r\nhost: x\r\n"
            f"authorization: {self.client.headers['authorization']}\r\n{zipped}"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return self._open(self.stack.url, head.encode() + body)

    def _ask_as_sqs(self, wait_seconds: int) -> socket.socket:
        """What boto3 would send, signature and all."""
        asked: list[Any] = []

        def take(request: Any, **_: Any) -> Any:
            asked.append(request)
            raise ConnectionError

        self.sqs.meta.events.register_first("before-send.sqs.ReceiveMessage", take)
        try:
            with pytest.raises(ConnectionError):
                self.sqs.receive_message(
                    QueueUrl=self.sqs.get_queue_url(QueueName="orders")["QueueUrl"],
                    MaxNumberOfMessages=10,
                    WaitTimeSeconds=wait_seconds,
                )
        finally:
            self.sqs.meta.events.unregister("before-send.sqs.ReceiveMessage", take)
        (request,) = asked
        headers = {name: _text(value) for name, value in request.headers.items()}
        headers |= {"Host": urlsplit(self.dialect_url).netloc}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        body = request.body if isinstance(request.body, bytes) else request.body.encode()
        path = urlsplit(request.url).path
        return self._open(self.dialect_url, f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)

    def _open(self, url: str, data: bytes) -> socket.socket:
        place = urlsplit(url)
        opened = socket.socket()
        # As little of an answer as may be is taken in by the machine for a client that reads none.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        opened.connect((place.hostname, place.port))
        opened.sendall(data)
        return opened

    def go(self, opened: socket.socket, *, resets: bool) -> None:
        if resets:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        opened.close()

    def is_answered(self, opened: socket.socket) -> bool:
        return bool(select.select([opened], [], [], 0)[0])

    def begin_again(self) -> None:
        """Another message in the place of one that a client may have."""
        self.client.post("/queues/orders/purge").raise_for_status()
        self.send()

    def check(self, count: int = 1) -> None:
        """Receives get the messages, which nobody has had; nothing is dead."""
        counts: list[int] = []
        while len(counts) < count:
            answer = self.client.post("/queues/orders/messages/receive", json={"wait_seconds": 5})
            messages = answer.json()["messages"]
            assert messages, "they are held, or gone"
            counts += [each["receive_count"] for each in messages]
        assert counts == [1] * count
        assert self.counts("dead")["active"] == 0

    def counts(self, queue: str) -> dict[str, int]:
        counts: dict[str, int] = self.client.get(f"/queues/{queue}").json()["counts"]
        return counts


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@pytest.mark.few(1)
@pytest.mark.parametrize("resets", [False, True], ids=["closes", "resets"])
@pytest.mark.parametrize("kind", ["plain", "sqs"])
def test_a_receive_of_a_gone_client_takes_no_message(
    start: Start, kind: str, *, resets: bool
) -> None:
    receives = Receives(start())
    for _ in range(8):
        receives.go(receives.ask(kind, 20), resets=resets)
    # Until the first looks of all are over, in which they do not sleep yet.
    path = "/queues/dead/messages/receive"
    assert receives.client.post(path, json={"wait_seconds": 1}).is_success

    receives.send()

    receives.check()


@pytest.mark.few(2)
@pytest.mark.parametrize("resets", [False, True], ids=["closes", "resets"])
@pytest.mark.parametrize("kind", ["plain", "gzip", "sqs"])
def test_a_client_gone_at_once_holds_nothing_of_the_first_look(
    start: Start, kind: str, *, resets: bool
) -> None:
    """It is there when the first look is made, or no more when its answer is written."""
    receives = Receives(start())
    receives.send()
    for _ in range(8):
        opened = receives.ask(kind, 0)
        if receives.is_answered(opened):
            receives.begin_again()  # on a busy machine: that client has the message
        receives.go(opened, resets=resets)

    receives.check()


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["plain", "sqs"])
def test_messages_of_an_untaken_answer_go_back_at_once(start: Start, kind: str) -> None:
    """The answer is larger than what the machine takes in for a client that reads nothing."""
    receives = Receives(start())
    chance = random.Random(7)
    for _ in range(COUNT):
        receives.send(chance.randbytes(SIZE))
    opened = receives.ask(kind, 0)
    wait_until(lambda: receives.counts("orders")["inactive"] == COUNT)

    receives.go(opened, resets=False)

    receives.check(COUNT)


ANSWERS: dict[str, tuple[bytes, list[str]]] = {
    "two": (b'{"messages": [{"receipt": "r1"}, {"receipt": "r2", "body": "x"}]}', ["r1", "r2"]),
    "a text that looks so": (
        b'{"messages": [{"receipt": "r1", "body": "\\"receipt\\": \\"r2\\"",'
        b' "attributes": {"receipt": "r3"}}]}',
        ["r1"],
    ),
    "none": (b'{"messages": []}', []),
    "SQS": (b'{"Messages": [{"ReceiptHandle": "r1", "Body": "x"}]}', ["r1"]),
    "SQS without any": (b"{}", []),
    "SQS's query protocol in JSON": (
        query_json.write("ReceiveMessage", {"Messages": [{"ReceiptHandle": "r1"}]}, "id").body,
        ["r1"],
    ),
    "SQS's query protocol in JSON, none": (query_json.write("ReceiveMessage", {}, "id").body, []),
    "SQS in XML": (
        b"<?xml version='1.0'?><R><Message><Body>&lt;ReceiptHandle&gt;r2</Body>"
        b"<ReceiptHandle>r1</ReceiptHandle></Message></R>",
        ["r1"],
    ),
    "CMQ": (b'{"code": 0, "msgBody": "x", "receiptHandle": "r1"}', ["r1"]),
    "CMQ, several": (b'{"code": 0, "msgInfoList": [{"receiptHandle": "r1"}]}', ["r1"]),
    "another answer": (b'{"time": "2026-11-25T08:00:00Z"}', []),
    "no JSON": (b"hello", []),
    "a list": (b"[1]", []),
}


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_the_receipts_of_an_answer_are_found(answer: str, *, zipped: bool) -> None:
    body, expected = ANSWERS[answer]
    headers = [("Content-Encoding", "gzip")] if zipped else []
    given = Answer(status=200, headers=headers, body=gzip.compress(body) if zipped else body)
    assert receipts_of(given) == expected
    assert receipts_of(replace(given, status=400)) == []


REQUESTS: list[tuple[str, str, str, str, bytes, dict[str, str], bool]] = [
    ("receive", "POST", "/queues/a/messages/receive", "", b"{}", {}, True),
    ("send", "POST", "/queues/a/messages", "", b"Action=ReceiveMessage", {}, False),
    ("dialects", "POST", "/", "", b"{}", {"x-amz-target": "AmazonSQS.ReceiveMessage"}, True),
    ("dialects", "POST", "/", "", b"{}", {"x-amz-target": "AmazonSQS.SendMessage"}, False),
    (
        *("dialects", "POST", "/", "", b'{"MessageBody": "&Action=ReceiveMessage&"}'),
        *({"x-amz-target": "AmazonSQS.SendMessage"}, False),
    ),
    ("dialects", "POST", "/", "", b"Version=2012-11-05&Action=ReceiveMessage", {}, True),
    ("dialects", "POST", "/", "", b"Action=SendMessage&MessageBody=ReceiveMessage", {}, False),
    ("dialects", "GET", "/v2/index.php", "Action=BatchReceiveMessage&Nonce=1", b"", {}, True),
    ("dialects", "GET", "/topics/t/messages", "consumer=g", b"", {}, True),
    ("dialects", "POST", "/topics/t/messages", "", b"<Message/>", {}, False),
]


@pytest.mark.parametrize("request_of", REQUESTS, ids=str)
def test_only_receives_end_with_their_client(
    request_of: tuple[str, str, str, str, bytes, dict[str, str], bool],
) -> None:
    role, method, path, query, body, headers, expected = request_of
    asked = Request(
        method=method,
        raw_path=path,
        query=query,
        headers=list(headers.items()),
        body=body,
        source="127.0.0.1",
        http_version="1.1",
    )
    assert receives(asked, role) is expected
