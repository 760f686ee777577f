"""The queue for Lambda's failed events on one machine: a file with a message in each line."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cirrusmq.runtime.core import GivenUp
from cirrusmq_local.cloud.cloudformation import ACCOUNT_ID
from cirrusmq_local.cloud.template import REGION, StreamSource

RECEIVED_AT_ONCE = 10


class UnprocessedQueue:
    """A queue like one of SQS, for one reader. `path`: its file; None keeps it in memory."""

    def __init__(self, now_ms: Callable[[], int], path: Path | None = None) -> None:
        self._now_ms = now_ms
        self._path = path
        self._lock = threading.Lock()
        self._hidden_until_ms: dict[str, int] = {}
        self._messages: list[dict[str, Any]] = []
        if path is not None and path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            self._messages = [json.loads(line) for line in lines]

    def give_up(self, source: StreamSource, records: Sequence[dict[str, Any]]) -> None:
        """Adds Lambda's record of a batch that a function did not process."""
        self.put(stream_failure(source, records, self._now_ms()))

    def put(self, body: dict[str, Any]) -> None:
        """Adds a message with this body."""
        with self._lock:
            self._messages.append({"id": str(uuid.uuid4()), "receives": 0, "body": body})
            self._write()

    def receive(self, hidden_seconds: int = 5) -> Sequence[GivenUp]:
        """Returns up to ten messages, and hides them from other calls for `hidden_seconds`."""
        now_ms = self._now_ms()
        with self._lock:
            visible = [
                each
                for each in self._messages
                if self._hidden_until_ms.get(each["id"], 0) <= now_ms
            ][:RECEIVED_AT_ONCE]
            for each in visible:
                self._hidden_until_ms[each["id"]] = now_ms + hidden_seconds * 1_000
                each["receives"] += 1
            if visible:
                self._write()
            return [
                GivenUp(each["id"], json.dumps(each["body"]), each["receives"] == 1)
                for each in visible
            ]

    def remove(self, handle: str) -> None:
        """Deletes a message."""
        with self._lock:
            self._messages = [each for each in self._messages if each["id"] != handle]
            self._hidden_until_ms.pop(handle, None)
            self._write()

    def bodies(self) -> list[dict[str, Any]]:
        """Returns the bodies of all messages, hidden or not."""
        with self._lock:
            return [each["body"] for each in self._messages]

    def _write(self) -> None:
        if self._path is None:
            return
        beside = self._path.with_name(self._path.name + ".new")
        lines = [json.dumps(each) + "\n" for each in self._messages]
        beside.touch(mode=0o600)
        beside.write_text("".join(lines), encoding="utf-8")
        beside.replace(self._path)


def stream_failure(
    source: StreamSource, records: Sequence[dict[str, Any]], now_ms: int
) -> dict[str, Any]:
    """Returns Lambda's record of a batch of a stream that was given up."""
    changes = [record["dynamodb"] for record in records]
    came = [float(change["ApproximateCreationDateTime"]) for change in changes]
    return {
        "version": "1.0",
        "timestamp": _time(now_ms / 1_000, "milliseconds"),
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "functionArn": f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{source.function}",
            "condition": "RetryAttemptsExhausted",
            "approximateInvokeCount": 1,
        },
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST"},
        "DDBStreamBatchInfo": {
            "shardId": "shardId-local",
            "startSequenceNumber": changes[0]["SequenceNumber"],
            "endSequenceNumber": changes[-1]["SequenceNumber"],
            "approximateArrivalOfFirstRecord": _time(came[0], "seconds"),
            "approximateArrivalOfLastRecord": _time(came[-1], "seconds"),
            "batchSize": len(records),
            "streamArn": f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{source.table}/stream/1",
        },
    }


def _time(seconds: float, precision: str) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")
