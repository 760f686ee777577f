"""The query protocol of SQS: forms as an older boto3 sends and signs them, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from tests.dialects.conftest import REGION

from cirrusmq_dialects.sqs import query
from cirrusmq_local.testing import Reply

FORM = "application/x-www-form-urlencoded; charset=utf-8"
NAMES = {"": query.NAMESPACE}
Post = Callable[[str, str], Reply]
"""Sends a form to a URL."""


def sign(key_id: str, secret: str, url: str, content: bytes) -> dict[str, str]:
    """The headers of a signed form."""
    request = AWSRequest("POST", url, {"Content-Type": FORM}, content)
    SigV4Auth(Credentials(key_id, secret), "sqs", REGION).add_auth(request)
    return {name.lower(): str(value) for name, value in request.headers.items()}


def tree(reply: Reply) -> ElementTree.Element:
    """The answer's XML."""
    assert reply.headers["Content-Type"] == "text/xml"
    return ElementTree.fromstring(reply.text)


def found(reply: Reply, path: str) -> list[str]:
    """The texts of elements."""
    return [each.text or "" for each in tree(reply).iterfind(path, NAMES)]


def error(reply: Reply) -> str:
    """The code of a refusal; its root alone if nothing was called."""
    if reply.status == 404 and not found(reply, "Error/Code"):
        return tree(reply).tag
    (code,) = found(reply, "Error/Code")
    assert found(reply, "Error/Type") == ["Sender"]
    return code


def play(calls: Sequence[dict[str, Any]], post: Post) -> dict[str, Reply]:
    """Recorded calls, one after the other; the answer to each.

    A place for a handle in them is `HANDLE-0`, for a task `TASK`.
    """
    made: dict[str, Reply] = {}
    handles: list[str] = []
    task = ""
    for recorded in calls:
        body = recorded["body"].replace("TASK", quote(task))
        for number, handle in enumerate(handles):
            body = body.replace(f"HANDLE-{number}", quote(handle))
        made[recorded["call"]] = reply = post(body, recorded["url"])
        if recorded["call"] == "receive_message":
            handles = found(reply, "ReceiveMessageResult/Message/ReceiptHandle")
        if recorded["call"] == "start_message_move_task":
            (task,) = found(reply, "StartMessageMoveTaskResult/TaskHandle")
    return made
