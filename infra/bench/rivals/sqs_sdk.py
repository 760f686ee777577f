"""Services that answer the SDK of SQS: the same boto3 program on ours and on emulators of AWS."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3

from . import NotInstalled, Service
from .servers import free_port, run_server, wait_for_answer

PACKAGES = Path(__file__).resolve().parents[3] / ".peers"
"""Folder of `make peers`: ministack needs another botocore."""


class SdkQueue:
    """A queue over one client of boto3."""

    def __init__(self, url: str, name: str) -> None:
        key = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        self._sqs: Any = boto3.client("sqs", endpoint_url=url, region_name="us-east-1", **key)
        self._name = name
        self._found: str | None = None

    def create(self) -> None:
        """Makes the queue."""
        self._sqs.create_queue(QueueName=self._name)

    def send(self, bodies: Sequence[str]) -> None:
        """Makes one call, of a batch if there are several."""
        if len(bodies) == 1:
            self._sqs.send_message(QueueUrl=self._url, MessageBody=bodies[0])
            return
        entries = [{"Id": str(index), "MessageBody": body} for index, body in enumerate(bodies)]
        answer = self._sqs.send_message_batch(QueueUrl=self._url, Entries=entries)
        if len(answer["Successful"]) < len(bodies):
            raise RuntimeError(f"not sent: {answer}")

    def take(self, limit: int) -> int:
        """Makes one receive, and one delete, of a batch if there are several."""
        held = self._receive(limit, 0)
        if len(held) == 1:
            self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=held[0]["ReceiptHandle"])
        elif held:
            entries = [
                {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
                for index, message in enumerate(held)
            ]
            self._sqs.delete_message_batch(QueueUrl=self._url, Entries=entries)
        return len(held)

    def consume(self, count: int, handle: Callable[[str], None]) -> None:
        """Receives by long polls."""
        while count:
            for message in self._receive(1, 10):
                handle(message["Body"])
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
                count -= 1

    def close(self) -> None:
        """Ends the connections."""
        self._sqs.close()

    @property
    def _url(self) -> str:
        if self._found is None:
            self._found = str(self._sqs.get_queue_url(QueueName=self._name)["QueueUrl"])
        return self._found

    def _receive(self, limit: int, wait_seconds: int) -> list[Any]:
        asked = {"MaxNumberOfMessages": limit, "WaitTimeSeconds": wait_seconds}
        found: list[Any] = self._sqs.receive_message(QueueUrl=self._url, **asked).get(
            "Messages", []
        )
        return found


@contextlib.contextmanager
def _ours() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as data:
        port, own = free_port(), free_port()
        cirrusmq = str(Path(sys.executable).with_name("cirrusmq"))
        command = [cirrusmq, "up", "--data", data, "--port", str(own)]
        command += ["--stand-in", "--dialect-port", str(port)]
        url = f"http://127.0.0.1:{port}"
        with run_server(command, lambda: wait_for_answer(f"{url}/health")):
            yield url


@contextlib.contextmanager
def _moto() -> Iterator[str]:
    port = free_port()
    begin = "import sys; from moto.server import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", begin, "-H", "127.0.0.1", "-p", str(port)]
    url = f"http://127.0.0.1:{port}"
    with run_server(command, lambda: wait_for_answer(f"{url}/moto-api/")):
        yield url


@contextlib.contextmanager
def _ministack() -> Iterator[str]:
    if not (PACKAGES / "ministack").exists():
        raise NotInstalled("ministack (make peers)")
    port = free_port()
    begin = "from ministack.app import main; main()"
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as home:
        surroundings = {"PYTHONPATH": str(PACKAGES), "GATEWAY_PORT": str(port), "HOME": home}
        command = ["/usr/bin/env", *(f"{name}={value}" for name, value in surroundings.items())]
        command += [sys.executable, "-c", begin]
        with run_server(command, lambda: wait_for_answer(f"{url}/_ministack/health", 60)):
            yield url


def _service(name: str, running: Any, *, durable: bool) -> Service:
    return Service(
        name=name,
        send_batch=10,
        take_batch=10,
        running=running,
        queue=SdkQueue,
        durable=durable,
    )


SERVICES = (
    _service("ours", _ours, durable=True),
    _service("moto's server", _moto, durable=False),
    _service("ministack", _ministack, durable=False),
)
