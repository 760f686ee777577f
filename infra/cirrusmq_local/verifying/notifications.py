"""A topic of SNS without raw delivery: its copies are notifications wherever they go, others not.

SNS publish ──> queue ── received twice ──> dead letters ── redriven ──> queue     a JSON object
            ──> a queue that keeps a log                                           a JSON object
SQS send ─────> queue ── received twice ──> dead letters ── redriven ──> queue     the text itself

All is done by boto3, as a program for SNS and SQS does it, without the run's proxy.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from random import Random
from typing import Any, ClassVar

from cirrusmq_local.judging.history import Call, Violation
from cirrusmq_local.verifying.played import Judged
from cirrusmq_local.verifying.remote import LOST, Remote, Service

PROMISE, ARRIVES = "dialects", "every-subscription"
REGION = "us-east-1"
DONE_SECONDS = 90
_QUEUES = ("orders", "dead", "logged")
_DELETED = 0.4
"""The share of messages that are deleted when they are received; the others come again."""
_SEND_SECONDS = 0.4


class Notifications:
    """A topic, three queues, a publisher, a sender and receivers, by the SDK."""

    name: ClassVar[str] = "notifications"
    needs: ClassVar[str] = "SNS and SQS are not asked"

    def __init__(self, service: Service, prefix: str, seed: int) -> None:
        self._service = service
        self.remote = Remote(service, f"{prefix}-{self.name}-", seed)
        self.posted = Judged()
        self.disturbed = False
        self._random = Random(f"{seed} {self.name}")
        self._lock = threading.Lock()
        self._admin: Service | None = None
        self._key_id = ""
        self._sns: Any = None
        self._sqs: Any = None
        self._arn = ""
        self._urls: dict[str, str] = {}
        self._published: set[str] = set()
        self._sent: set[str] = set()
        self._came: dict[str, set[str]] = {"orders": set(), "logged": set()}
        """Labels that came to a queue, or to its dead letters."""
        self._wrong: list[Violation] = []

    def make_by(self, maker: Service, admin: Service) -> None:
        """Make a key that signs, and all by it. Raises ValueError if the service refuses it."""
        if admin.dialect_url is None:
            raise ValueError("the URL of their endpoint is not known")
        self._admin, account = admin, self.remote.prefix.partition(f"-{self.name}")[0]
        made = maker.ask("POST", "/keys", {"account": account, "signing": True})
        self._key_id = str(made["access_key_id"])
        self._sns, self._sqs = _clients(admin.dialect_url, self._key_id, str(made["secret"]))
        names = {each: f"{self.remote.prefix}{each}" for each in _QUEUES}
        self._service.ask("PUT", f"/queues/{names['dead']}", {"partitions": 1})
        letters = {"queue": names["dead"], "max_receives": 2}
        held = {"partitions": 1, "visibility_timeout_seconds": 1}
        self._service.ask("PUT", f"/queues/{names['orders']}", {**held, "dead_letter": letters})
        self._service.ask("PUT", f"/queues/{names['logged']}", {**held, "rewind_seconds": 600})
        self._subscribe(names)

    def play(self, seconds: float) -> None:
        """Publish, send and receive for a while."""
        ends = time.monotonic() + seconds
        threads = [
            threading.Thread(target=body, args=(ends,), daemon=True)
            for body in (self._publish, self._send)
        ]
        threads += [
            threading.Thread(target=self._receive, args=(name, ends), daemon=True)
            for name in _QUEUES
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def drain(self) -> None:
        """Receive and delete until all came."""
        ends = time.monotonic() + DONE_SECONDS
        while time.monotonic() < ends and [*self._missing()]:
            for name in _QUEUES:
                self._take(name, 1.0)

    def judge(self) -> None:
        """All came, and each as it has to look."""
        sound = sum(not call.faults for call in self.remote.history.calls)
        self.posted.note(ARRIVES, sound, self._missing())
        self.posted.note(PROMISE, sound, self._wrong)

    def remove(self) -> None:
        """Remove the topic, the queues and the key."""
        if not self._key_id:
            return
        self._service.ask("DELETE", f"/topics/{self.remote.prefix}news")
        for name in ("orders", "logged", "dead"):
            self._service.ask("DELETE", f"/queues/{self.remote.prefix}{name}")
        assert self._admin is not None
        self._admin.ask("DELETE", f"/keys/{self._key_id}")

    def _subscribe(self, names: dict[str, str]) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._arn = self._sns.create_topic(Name=f"{self.remote.prefix}news")["TopicArn"]
            for name, queue in names.items():
                url = self._urls[name] = self._sqs.get_queue_url(QueueName=queue)["QueueUrl"]
                told = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
                arn = told["Attributes"]["QueueArn"]
                if name != "dead":
                    self._sns.subscribe(TopicArn=self._arn, Protocol="sqs", Endpoint=arn)
        except (BotoCoreError, ClientError) as error:
            raise ValueError(str(error)) from error

    def _publish(self, ends: float) -> None:
        for number in _until(ends, _SEND_SECONDS):
            label = f"published.{number}"
            given = {"TopicArn": self._arn, "Message": label}
            if self._call("publisher", "sns publish", "news", self._sns.publish, given).known:
                with self._lock:
                    self._published.add(label)

    def _send(self, ends: float) -> None:
        for number in _until(ends, _SEND_SECONDS):
            label = f"sent.{number}"
            given = {"QueueUrl": self._urls["orders"], "MessageBody": label}
            if self._call("sender", "sqs send", "orders", self._sqs.send_message, given).known:
                with self._lock:
                    self._sent.add(label)

    def _receive(self, name: str, ends: float) -> None:
        for number in _until(ends, 0.2):
            self._take(name, _DELETED)
            if name == "dead" and number % 10 == 9:
                path = f"/queues/{self.remote.prefix}dead/redrive"
                self._service.ask("POST", path, {})

    def _take(self, name: str, deleted: float) -> None:
        """Receive once from a queue, look at each message, and delete a share of them."""
        given = {
            "QueueUrl": self._urls[name],
            "MaxNumberOfMessages": 10,
            "WaitTimeSeconds": 1,
            "VisibilityTimeout": 1,
        }
        call = self._call("receiver", "sqs receive", name, self._sqs.receive_message, given)
        for message in (call.answer or {}).get("Messages", []) if call.known else ():
            self._look(name, str(message["Body"]), call)
            with self._lock:
                ends = self._random.random() < deleted
            if ends:
                told = {"QueueUrl": self._urls[name], "ReceiptHandle": message["ReceiptHandle"]}
                self._call("receiver", "sqs delete", name, self._sqs.delete_message, told)

    def _look(self, name: str, body: str, call: Call) -> None:
        """Note that a message came, and if it does not look as it has to."""
        try:
            told = json.loads(body)
        except ValueError:
            told = None
        label = str(told.get("Message")) if isinstance(told, dict) else body
        wanted = label.startswith("published.")
        sound = told is None
        if isinstance(told, dict):
            sound = told.get("Type") == "Notification" and told.get("TopicArn") == self._arn
        with self._lock:
            self._came["logged" if name == "logged" else "orders"].add(label)
            if wanted != isinstance(told, dict) or not sound:
                what = "is not shown" if wanted else "is shown"
                self._wrong.append(
                    Violation(f"{label} of {name} {what} as a notification", (call,))
                )

    def _missing(self) -> Iterator[Violation]:
        with self._lock:
            wanted = {"orders": self._published | self._sent, "logged": {*self._published}}
            gone = [(q, each) for q in wanted for each in sorted(wanted[q] - self._came[q])]
        for queue, label in gone:
            yield Violation(f"lost: {label} never came to {queue}")

    def _call(self, actor: str, kind: str, place: str, body: Any, given: dict[str, Any]) -> Call:
        """Make a call of the SDK and note it; one that is not answered may have done anything."""
        from botocore.exceptions import BotoCoreError, ClientError

        stage, history = self.remote.stage, self.remote.history
        call = history.begin(actor, kind, place, given, stage.now_ms())
        try:
            answer = body(**given)
        except (BotoCoreError, ClientError) as error:
            call.faults.append(LOST)
            history.end(call, "failed", str(error), stage.now_ms())
        else:
            answer.pop("ResponseMetadata", None)
            history.end(call, "answered", answer, stage.now_ms())
        return call


def _clients(url: str, key_id: str, secret: str) -> tuple[Any, Any]:
    """SNS's and SQS's, which repeat nothing: a repeated send would be another message."""
    import boto3
    from botocore.config import Config

    config = Config(retries={"max_attempts": 0}, read_timeout=40, proxies={})
    session = boto3.Session(key_id, secret, region_name=REGION)
    sns, sqs = (session.client(n, endpoint_url=url, config=config) for n in ("sns", "sqs"))
    return sns, sqs


def _until(ends: float, seconds: float) -> Iterator[int]:
    """Numbers until a time of the monotonic clock, one every some seconds."""
    number = 0
    while time.monotonic() < ends:
        yield number
        number += 1
        time.sleep(seconds)
