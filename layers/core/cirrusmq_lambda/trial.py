"""Tries new versions: they send, receive and delete a message before they get real calls.

    send ── receive: the same body ── delete ── the lease ends ── receive: nothing

The versions are invoked with the events of HTTP calls. Each trial has its own queue, so that trials
can run in parallel, and a key for only that queue. Both are deleted at the end. If a trial is
stopped before, a later trial deletes its queue, which disturbs no other trial:

    trial  queue ── key ── ended here ..... the key expires ..... a later trial deletes the queue
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from cirrusmq.access.passing_keys import create_passing_key, delete_passing_key
from cirrusmq.access.scopes import Listed, Scope
from cirrusmq.base.errors import QueueNotFound
from cirrusmq.base.names import new_id
from cirrusmq.base.shapes import decode_json
from cirrusmq.model.queue import Queue, QueueInput
from cirrusmq.queues.queues import create_queue
from cirrusmq.queues.receiver_management import delete_queue
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory
from cirrusmq.storage.directory import queue_key
from cirrusmq_lambda import observability

ACCOUNT = "cirrusmq.rollout"
"""The trials' account; no caller's account can have a dot in its name."""
CALL_SECONDS = 30
"""Timeout of a call, longer than a version may run."""
KEY_SECONDS = 600
"""Life of the key, longer than a trial may take."""
LEFT_BEHIND_MS = 3_600_000
"""Age of a queue whose trial cannot still run."""
_KEPT_MS = 300_000
"""Reserved part of the function's 600 s: a call, cleanup with a slow store, the report."""
_LEASE_SECONDS, _WAIT_SECONDS = 15, 20
"""A receive whose answer was lost is repeated: it waits until the lease has expired."""
_PAST_LEASE_SECONDS, _LAST_WAIT_SECONDS = 18, 5
"""Clocks differ by 2 s. The trial itself waits, since an account may forbid waiting receives."""
_PAUSES_SECONDS = (1, 2, 4, 8, 16, 16)
"""Pauses between tries: IAM may take half a minute until the hook may call new versions."""
_NOT_NOW = (429, 503)


class TrialFailed(Exception):
    """A new version failed; the text has the step and its result."""


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """ARNs of the versions to try."""

    send: str
    receive: str
    delete: str


def try_versions(core: Core, versions: Versions, left_ms: Callable[[], int]) -> None:
    """Tries the versions. Raises TrialFailed. `left_ms`: returns the caller's remaining time."""
    with _own_queue(core) as (queue, authorization):
        calls = _Calls(core, queue, authorization, left_ms)
        # The body has more than ASCII, which a version must keep.
        body = f"試 {queue}"
        calls.make("send", versions.send, "", {"messages": [{"body": body}]}, 201)
        hold = {
            "max": 16,
            "wait_seconds": _WAIT_SECONDS,
            "visibility_timeout_seconds": _LEASE_SECONDS,
        }
        received = calls.make("receive", versions.receive, "/receive", hold).get("messages") or []
        # A repeated send may have stored the message twice.
        if {message.get("body") for message in received} != {body}:
            raise TrialFailed(f"receive: {_bodies(received)} came, not the message that was sent")
        receipts = [message.get("receipt") for message in received]
        done = calls.make("delete", versions.delete, "/delete", {"receipts": receipts})
        if done != {"deleted": receipts, "failed": []}:
            raise TrialFailed(f"delete: {done} was answered, not that all are deleted")
        core.clock.sleep(_PAST_LEASE_SECONDS)
        look = {"max": 16, "wait_seconds": _LAST_WAIT_SECONDS}
        left = calls.make("receive", versions.receive, "/receive", look).get("messages")
        if left != []:
            raise TrialFailed(f"delete: {_bodies(left or [])} came after it was deleted")


class _Calls:
    """Calls on one queue, each repeated while it is answered with 429 or 503."""

    def __init__(
        self, core: Core, queue: str, authorization: str, left_ms: Callable[[], int]
    ) -> None:
        self._core, self._queue, self._left_ms = core, queue, left_ms
        self._authorization = authorization

    def make(
        self, step: str, version: str, path: str, body: object, status: int = 200
    ) -> dict[str, Any]:
        """Makes a call. Returns its body. Raises TrialFailed for an error or another status."""
        event = msgspec.json.encode(self._event(f"/messages{path}", body))
        ended = ""
        for pause_seconds in (*_PAUSES_SECONDS, None):
            if self._left_ms() < _KEPT_MS:
                raise TrialFailed(f"{step}: the time is over{ended}")
            called = self._core.call(version, event, CALL_SECONDS)
            answer = called.answer if isinstance(called.answer, dict) else {}
            answered, text = answer.get("statusCode"), str(answer.get("body"))
            if called.error is None and answered == status:
                with contextlib.suppress(msgspec.DecodeError):
                    return decode_json(text.encode(), dict[str, Any])
            told = called.error or f"status {answered}: {text}"
            ended = f"; it ended with {told}"
            if pause_seconds is None or not (called.refused or answered in _NOT_NOW):
                break
            self._core.clock.sleep(pause_seconds)
        raise TrialFailed(f"{step}: it ended with {told}")

    def _event(self, path: str, body: object) -> dict[str, Any]:
        """Returns an event of an HTTP API, payload format 2.0."""
        route_key, raw_path = f"POST /queues/{{queue}}{path}", f"/queues/{self._queue}{path}"
        http = {
            "method": "POST",
            "path": raw_path,
            "protocol": "HTTP/1.1",
            "sourceIp": "127.0.0.1",
            "userAgent": ACCOUNT,
        }
        return {
            "version": "2.0",
            "routeKey": route_key,
            "rawPath": raw_path,
            "rawQueryString": "",
            "headers": {"authorization": self._authorization, "content-type": "application/json"},
            "requestContext": {
                "http": http,
                "requestId": self._queue,
                "routeKey": route_key,
                "stage": "$default",
                "timeEpoch": self._core.now_ms(),
            },
            "pathParameters": {"queue": self._queue},
            "body": msgspec.json.encode(body).decode(),
            "isBase64Encoded": False,
        }


@contextlib.contextmanager
def _own_queue(core: Core) -> Iterator[tuple[str, str]]:
    """Yields a queue, and the header of a key that may send to it and receive from it."""
    with _tidying():
        _delete_queues(core, core.now_ms() - LEFT_BEHIND_MS)
    name = f"trial-{new_id(core.random)}"
    create_queue(core, ACCOUNT, name, QueueInput(partitions=1, message_retention_seconds=3_600))
    alone = Listed(queues=(name,))
    scope = Scope(send=alone, receive=alone)
    key_id, secret = create_passing_key(core, ACCOUNT, scope, KEY_SECONDS)
    try:
        yield name, f"Bearer {key_id}:{secret}"
    finally:
        with _tidying():
            delete_passing_key(core, key_id)
        with _tidying():
            delete_queue(core, ACCOUNT, name)


def _delete_queues(core: Core, before_ms: int) -> None:
    for queue in list(directory.read_list(core, *queue_key(ACCOUNT, ""), Queue)):
        if queue.created_ms < before_ms:
            with contextlib.suppress(QueueNotFound):  # a parallel trial has deleted it
                delete_queue(core, ACCOUNT, queue.name)


@contextlib.contextmanager
def _tidying() -> Iterator[None]:
    """Logs errors of the cleanup: they are no fault of the versions; a later trial repeats it."""
    try:
        yield
    except Exception:
        observability.logger.warning("a trial left something behind", exc_info=True)


def _bodies(messages: Sequence[dict[str, Any]]) -> str:
    return str([message.get("body") for message in messages])
