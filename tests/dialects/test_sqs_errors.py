"""Errors as each protocol names them, and calls that are in the query: the wire's facts."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from msgspec.structs import replace
from tests.dialects.conftest import REGION, URL, Key, call
from tests.dialects.query import error, found
from tests.dialects.test_sqs_refusals import act, code

from cirrusmq_local.testing import Reply, World

ORDERS = f"{URL}/shop/orders"
FIFO = {"FifoQueue": "true"}


@pytest.fixture(autouse=True)
def queues(sqs: Any) -> None:
    """A queue and a FIFO queue."""
    sqs.create_queue(QueueName="orders")
    sqs.create_queue(QueueName="orders.fifo", Attributes=FIFO)


CORAL, OWN = "com.amazon.coral.service#", "com.amazonaws.sqs#"
MISSING = (400, f"{CORAL}MissingRequiredParameterException", "MissingParameter")
VALUE = (400, f"{CORAL}InvalidParameterValueException", "InvalidParameterValue")
MALFORMED = (400, f"{CORAL}SerializationException", "MalformedInput")
CONTENTS = (400, f"{OWN}InvalidMessageContents", "InvalidMessageContents")
NO_QUEUE = (400, f"{OWN}QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue")
NO_HANDLE = (404, f"{OWN}ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid")
NO_ADDRESS = (404, f"{OWN}InvalidAddress", "InvalidAddress")
NO_ACTION = (400, f"{CORAL}UnknownOperationException", "InvalidAction")
SENT: dict[str, Any] = {"QueueUrl": ORDERS, "MessageBody": "x"}
CASES: list[tuple[str, dict[str, Any], tuple[int, str, str]]] = [
    ("SendMessage", {"QueueUrl": ORDERS}, MISSING),
    ("SendMessage", {"MessageBody": "x"}, MISSING),
    ("SendMessage", {**SENT, "MessageBody": ""}, MISSING),
    ("SendMessage", {**SENT, "DelaySeconds": 901}, VALUE),
    ("SendMessage", {**SENT, "DelaySeconds": "soon"}, MALFORMED),
    ("SendMessage", {**SENT, "MessageBody": "\x01"}, CONTENTS),
    ("SendMessage", {**SENT, "QueueUrl": f"{ORDERS}.fifo", "MessageDeduplicationId": "1"}, MISSING),
    ("SendMessage", {**SENT, "QueueUrl": f"{ORDERS}x"}, NO_QUEUE),
    ("SendMessage", {**SENT, "QueueUrl": "/"}, NO_ADDRESS),
    ("DeleteMessage", {"QueueUrl": ORDERS, "ReceiptHandle": "x"}, NO_HANDLE),
    ("ReceiveMessage", {"QueueUrl": ORDERS, "MaxNumberOfMessages": 0}, VALUE),
    ("ReceiveMessage", {"QueueUrl": ORDERS, "MaxNumberOfMessages": 11}, VALUE),
    ("ReceiveMessage", {"QueueUrl": ORDERS, "WaitTimeSeconds": 21}, VALUE),
    ("Nothing", {}, NO_ACTION),
]


@pytest.mark.parametrize(("action", "members", "expected"), CASES)
def test_errors_have_their_names_in_both_protocols(
    world: World, key: Key, action: str, members: dict[str, Any], expected: tuple[int, str, str]
) -> None:
    status, kind, query_code = expected

    reply = act(world, key, action, members)
    form = signed(world, key, "POST", {"Action": action, **members})

    assert (reply.status, json.loads(reply.text)["__type"], code(reply)) == expected
    if members.get("MessageBody") != "\x01":
        assert (form.status, error(form)) == (status, query_code)
    if kind.endswith("QueueDoesNotExist"):
        (text,) = found(form, "Error/Message")
        assert text == "The specified queue does not exist for this wsdl version."


def test_errors_of_keys_have_their_names(world: World, key: Key) -> None:
    unknown, wrong = Key(world, "shop"), Key(world, "shop")
    unknown.id, wrong.secret = "AKIDunknown", "wrong"
    for signer, name in ((unknown, "UnrecognizedClient"), (wrong, "InvalidSignature")):
        reply = act(world, signer, "ListQueues", {})
        assert (reply.status, json.loads(reply.text)["__type"]) == (403, f"{CORAL}{name}Exception")


def signed(
    world: World,
    key: Key,
    method: str,
    fields: dict[str, Any],
    path: str = "/",
    service: str = "sqs",
) -> Reply:
    """A call of the query protocol: its fields in the query of a GET, or the form of a POST."""
    text = urlencode(fields)
    url = URL + path + (f"?{text}" if method == "GET" else "")
    body = b"" if method == "GET" else text.encode()
    headers = {} if method == "GET" else {"Content-Type": "application/x-www-form-urlencoded"}
    request = AWSRequest(method, url, headers, body)
    SigV4Auth(Credentials(key.id, key.secret), service, REGION).add_auth(request)
    sent = {name.lower(): str(value) for name, value in request.headers.items()}
    return call(world, method, url, sent, body)


def presigned(key: Key, fields: dict[str, Any], path: str = "/", seconds: int = 3_600) -> str:
    """A URL that is signed, for so many seconds."""
    request = AWSRequest("GET", f"{URL}{path}?{urlencode(fields)}")
    signer = SigV4QueryAuth(Credentials(key.id, key.secret, "a token"), "sqs", REGION, seconds)
    signer.add_auth(request)
    url: str = request.url
    return url


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_signed_call_is_taken_at_the_path_of_its_queue(
    world: World, key: Key, method: str
) -> None:
    body = "a & b = ü+"

    sent = signed(
        world, key, method, {"Action": "SendMessage", "MessageBody": body}, "/shop/orders"
    )
    named = {"Action": "ReceiveMessage", "QueueUrl": ORDERS, "AttributeName.1": "All"}
    received = signed(world, key, method, named)

    assert sent.status == received.status == 200, sent.text
    assert found(received, "ReceiveMessageResult/Message/Body") == [body]
    for action, at in (("GetQueueUrl", 200), ("ListQueues", 400), ("CreateQueue", 400)):
        fields = {"Action": action, "QueueName": "orders"}
        reply = signed(world, key, method, fields, "/shop/orders")
        assert reply.status == at, action
        assert at == 200 or error(reply) == "InvalidAction"
    nothing = signed(world, key, "GET", {}, "/shop/orders")
    assert (nothing.status, nothing.text) == (404, "<UnknownOperationException/>")


def test_a_presigned_url_is_good_for_its_time_and_its_own_call(world: World, key: Key) -> None:
    fields = {"Action": "SendMessage", "MessageBody": "hello", "Version": "2012-11-05"}
    url = presigned(key, fields, "/shop/orders")
    begun = time.time()

    for seconds, status in ((0, 200), (3_500, 200), (3_700, 403), (-850, 200), (-1_000, 403)):
        world.core = replace(world.core, real_seconds=lambda at=begun + seconds: int(at))
        assert call(world, "GET", url, {}, b"").status == status, seconds
    world.core = replace(world.core, real_seconds=lambda: int(begun))
    for forged in (
        url.replace("hello", "hallo"),
        url.replace("SendMessage", "PurgeQueue"),
        url.replace("/shop/orders", "/shop/parts"),
        url.replace("Expires=3600", "Expires=7200"),
        f"{url}&DelaySeconds=1",
    ):
        reply = call(world, "GET", forged, {}, b"")
        assert (reply.status, error(reply)) == (403, "SignatureDoesNotMatch"), forged
    for broken in (
        url.replace("Expires=3600", "Expires=604801"),
        url.replace("Expires=3600", "Expires=0"),
        url.replace("X-Amz-SignedHeaders=host", "X-Amz-SignedHeaders="),
    ):
        reply = call(world, "GET", broken, {}, b"")
        assert (reply.status, error(reply)) == (400, "IncompleteSignature"), broken
    assert urlsplit(url).path == "/shop/orders"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_calls_of_other_services_are_refused_by_name(world: World, key: Key, method: str) -> None:
    reply = signed(world, key, method, {"Action": "GetCallerIdentity"}, service="sts")
    assert (reply.status, error(reply)) == (400, "InvalidAction")
    assert found(reply, "Error/Message") == ["this endpoint has no sts: it has sqs"]
