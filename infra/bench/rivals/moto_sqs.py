"""A queue of moto's SQS server, by Amazon's JSON protocol over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from ..servers import motos_sqs
from . import Service

WAIT_SECONDS = 10
_AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/sqs/aws4_request"
"""moto reads the region and the service from it, and checks nothing."""


class MotosQueue:
    """The calls without boto3, which would cost more than ours do."""

    def __init__(self, url: str, name: str) -> None:
        headers = {"Content-Type": "application/x-amz-json-1.0", "Authorization": _AUTHORIZATION}
        self._http = httpx.Client(base_url=url, timeout=60, headers=headers)
        self._name, self._url = name, f"{url}/123456789012/{name}"

    def create(self) -> None:
        """Make the queue."""
        self._call("CreateQueue", {"QueueName": self._name})

    def send(self, bodies: Sequence[str]) -> None:
        """One SendMessage, or one SendMessageBatch."""
        if len(bodies) == 1:
            self._call("SendMessage", {"QueueUrl": self._url, "MessageBody": bodies[0]})
            return
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
        self._call("SendMessageBatch", {"QueueUrl": self._url, "Entries": entries})

    def take(self, most: int) -> int:
        """One ReceiveMessage, and one DeleteMessage or DeleteMessageBatch."""
        held = self._receive(most, 0)
        self._delete([message["ReceiptHandle"] for message in held])
        return len(held)

    def consume(self, count: int, handle: Callable[[str], None]) -> None:
        """Long polling."""
        while count:
            for message in self._receive(1, WAIT_SECONDS):
                handle(message["Body"])
                self._delete([message["ReceiptHandle"]])
                count -= 1

    def close(self) -> None:
        """End the connection."""
        self._http.close()

    def _receive(self, most: int, wait_seconds: int) -> list[dict[str, Any]]:
        asked = {"MaxNumberOfMessages": most, "WaitTimeSeconds": wait_seconds}
        answer = self._call("ReceiveMessage", {"QueueUrl": self._url} | asked)
        held: list[dict[str, Any]] = answer.get("Messages", [])
        return held

    def _delete(self, receipts: list[str]) -> None:
        if len(receipts) == 1:
            self._call("DeleteMessage", {"QueueUrl": self._url, "ReceiptHandle": receipts[0]})
        elif receipts:
            entries = [
                {"Id": str(number), "ReceiptHandle": receipt}
                for number, receipt in enumerate(receipts)
            ]
            self._call("DeleteMessageBatch", {"QueueUrl": self._url, "Entries": entries})

    def _call(self, action: str, body: object) -> Any:
        headers = {"X-Amz-Target": f"AmazonSQS.{action}"}
        answer = self._http.post("/", content=json.dumps(body), headers=headers)
        answer.raise_for_status()
        return answer.json() if answer.content else {}


SERVICE = Service(
    name="moto's SQS",
    kept="in memory",
    protocol="HTTP",
    send_batch=10,
    take_batch=10,
    running=motos_sqs,
    queue=MotosQueue,
)
