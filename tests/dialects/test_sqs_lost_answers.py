"""Connections that break in the middle of calls of SQS, and an SDK that repeats them."""

from __future__ import annotations

import re
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from tests.dialects.conftest import REGION


def _read_message(connection: socket.socket) -> bytes:
    """One request, or answer, with its body; nothing at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        some = connection.recv(65_536)
        if not some:
            return b""
        data += some
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    while length and len(body) < int(length[1]):
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


class Cutter:
    """A way to the service that cuts connections: after the request, or in the midst of it."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        assert place.hostname is not None
        self._target = place.hostname, place.port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.loses = 0
        """So many answers are lost."""
        self.passes: int | None = None
        """Of the next request so many bytes pass; None: all."""
        self.requests = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as service, suppress(OSError):
            while data := _read_message(client):
                self.requests += 1
                if self.passes is not None:
                    service.sendall(data[: self.passes])
                    self.passes = None
                    return
                service.sendall(data)
                answer = _read_message(service)
                if self.loses:
                    self.loses -= 1
                    return
                client.sendall(answer)


@pytest.fixture
def cutter(running: dict[str, Any]) -> Iterator[Cutter]:
    made = Cutter(running["dialect_url"])
    yield made
    made.stop()


@pytest.fixture
def cut_sqs(running: dict[str, Any], cutter: Cutter) -> Any:
    """boto3 behind it, with the repeats that it makes by default."""
    return boto3.client(
        "sqs",
        endpoint_url=cutter.url,
        region_name=REGION,
        aws_access_key_id=running["signing_key"]["access_key_id"],
        aws_secret_access_key=running["signing_key"]["secret"],
        config=Config(retries={"mode": "standard"}),
    )


def drain(sqs: Any, url: str) -> list[str]:
    found: list[str] = []
    while some := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get(
        "Messages"
    ):
        found += [each["Body"] for each in some]
    return found


@pytest.mark.parametrize("passes", [0, 20, 300])
def test_a_request_that_breaks_off_stores_nothing_and_is_repeated(
    cutter: Cutter, cut_sqs: Any, running_sqs: Any, passes: int
) -> None:
    url = running_sqs.create_queue(QueueName=f"q-{uuid.uuid4().hex}")["QueueUrl"]
    cutter.passes = passes
    cut_sqs.send_message(QueueUrl=url, MessageBody="once")
    assert cutter.requests >= 2
    assert drain(running_sqs, url) == ["once"]


def test_a_send_whose_answer_is_lost_is_repeated_and_stored_again_as_in_sqs(
    cutter: Cutter, cut_sqs: Any, running_sqs: Any
) -> None:
    url = running_sqs.create_queue(QueueName=f"q-{uuid.uuid4().hex}")["QueueUrl"]
    cutter.loses = 1
    cut_sqs.send_message(QueueUrl=url, MessageBody="twice")
    assert drain(running_sqs, url) == ["twice", "twice"]


def test_with_a_deduplication_id_it_is_stored_once(
    cutter: Cutter, cut_sqs: Any, running_sqs: Any
) -> None:
    url = running_sqs.create_queue(
        QueueName=f"q-{uuid.uuid4().hex}.fifo", Attributes={"FifoQueue": "true"}
    )["QueueUrl"]
    cutter.loses = 1
    cut_sqs.send_message(
        QueueUrl=url, MessageBody="once", MessageGroupId="a", MessageDeduplicationId="1"
    )
    assert drain(running_sqs, url) == ["once"]
