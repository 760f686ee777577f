"""Forged calls of SQS, keys of every scope, odd requests: refused in SQS's shape, never a 5xx."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ClientError
from msgspec.structs import replace
from tests.dialects.conftest import URL, Key, MakeKey, call, change_settings, client_of, deliver
from tests.dialects.query import error

from cirrusmq.access.scopes import Listed, Scope
from cirrusmq_dialects.sqs import calls
from cirrusmq_local.testing import Reply, World

JSON = "application/x-amz-json-1.0"


def recorded(world: World, key: Key, act: Callable[[Any], object]) -> AWSPreparedRequest:
    """The request that boto3 sends for a call."""
    sent: list[AWSPreparedRequest] = []
    client = client_of(world, key)

    def note(request: AWSPreparedRequest, **_: Any) -> Any:
        sent.append(request)
        return deliver(world, request)

    client.meta.events.register_first("before-send.sqs", note)
    act(client)
    return sent[-1]


def headers_of(request: AWSPreparedRequest) -> dict[str, str]:
    return {
        name.lower(): held.decode() if isinstance(held, bytes) else held
        for name, held in request.headers.items()
    }


@pytest.fixture
def request_of_send(world: World, key: Key, sqs: Any) -> AWSPreparedRequest:
    """A good call that sends, recorded."""
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    return recorded(
        world, key, lambda client: client.send_message(QueueUrl=url, MessageBody="hello")
    )


def code(reply: Reply) -> str:
    """The code of a refusal, by which SDKs of Python compare."""
    assert json.loads(reply.text)["__type"].startswith("com.amazon")
    told, _, fault = reply.headers["x-amzn-query-error"].partition(";")
    assert fault == "Sender"
    return told


def test_a_recorded_call_is_good_until_its_time_is_over(
    world: World, request_of_send: AWSPreparedRequest
) -> None:
    headers, body = headers_of(request_of_send), request_of_send.body
    assert call(world, "POST", URL, headers, body).status == 200
    signed = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%S%z").timestamp()
    for seconds, status in ((900, 200), (901, 403), (-900, 200), (-901, 403)):
        world.core = replace(world.core, real_seconds=lambda at=signed + seconds: at)
        reply = call(world, "POST", URL, headers, body)
        assert reply.status == status, seconds
        if status == 403:
            assert code(reply) == "SignatureDoesNotMatch"
            assert "expired" in reply.text


def test_no_call_with_a_changed_part_is_accepted(
    world: World, request_of_send: AWSPreparedRequest
) -> None:
    headers, body = headers_of(request_of_send), request_of_send.body
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"content-type", "host", "x-amz-date", "x-amz-target"} <= {*signed, "host"}
    given = {"host": "127.0.0.1:8081", **headers}
    forged: list[tuple[dict[str, str], bytes, str]] = []
    for name in signed:
        changed = given[name][:-1] + ("0" if given[name][-1] != "0" else "1")
        forged.append(({**given, name: changed}, body, "/"))
        if name != "host":  # which no call is without
            forged.append(({k: v for k, v in given.items() if k != name}, body, "/"))
    text = given["authorization"]
    for place in range(0, len(text), 3):
        other = "a" if text[place] != "a" else "b"
        forged.append(
            ({**given, "authorization": text[:place] + other + text[place + 1 :]}, body, "/")
        )
    forged += [
        (given, body + b" ", "/"),
        (given, body.replace(b"hello", b"hallo"), "/"),
        (given, b"", "/"),
        (given, body, "/other"),
        (given, body, "/?a=b"),
        ({**given, "x-amz-target": "AmazonSQS.PurgeQueue"}, body, "/"),
    ]
    stored = len(world.items("messages"))
    for headers, content, path in forged:
        reply = call(world, "POST", URL + path, headers, content)
        assert reply.status in (400, 403, 404), (reply.status, reply.text, headers)
    assert len(world.items("messages")) == stored


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (None, "AccessDenied"),
        ("", "IncompleteSignature"),
        ("Bearer CKx:y", "IncompleteSignature"),
        ("AWS4-HMAC-SHA256", "IncompleteSignature"),
        ("AWS4-HMAC-SHA256 " + "x" * 5_000, "IncompleteSignature"),
        (
            "AWS4-HMAC-SHA256 Credential=a/b/c, SignedHeaders=host, Signature=00",
            "IncompleteSignature",
        ),
    ],
)
def test_a_bad_or_missing_signature_is_told(
    world: World, authorization: str | None, expected: str
) -> None:
    headers = {"x-amz-target": "AmazonSQS.ListQueues", "content-type": JSON}
    if authorization is not None:
        headers["authorization"] = authorization
    reply = call(world, "POST", URL, headers, b"{}")
    status = 403 if expected == "AccessDenied" else 400
    assert (reply.status, code(reply)) == (status, expected)


def test_a_token_is_taken_without_effect(world: World, key: Key, sqs: Any) -> None:
    import boto3

    client = boto3.client(
        "sqs",
        endpoint_url=URL,
        region_name="ap-southeast-1",
        aws_access_key_id=key.id,
        aws_secret_access_key=key.secret,
        aws_session_token="a token",
    )
    client.meta.events.register("before-send.sqs", lambda request, **_: deliver(world, request))
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    shown = client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    assert shown["Attributes"]["QueueArn"] == "arn:aws:sqs:ap-southeast-1:shop:orders"


def listed(name: str) -> Listed:
    return Listed(queues=(name,))


RIGHTS = {
    "send": Scope(send=listed("orders")),
    "receive": Scope(receive=listed("orders")),
    "manage": Scope(manage=listed("orders")),
    "elsewhere": Scope(send=listed("x"), receive=listed("x"), manage=listed("x")),
}
ENTRY = [{"Id": "1", "MessageBody": "x", "ReceiptHandle": "x", "VisibilityTimeout": 1}]
ASKED: dict[str, tuple[set[str], dict[str, Any]]] = {
    "AddPermission": ({"manage"}, {}),
    "CancelMessageMoveTask": ({"manage"}, {}),
    "ChangeMessageVisibility": ({"receive"}, {"ReceiptHandle": "x", "VisibilityTimeout": 1}),
    "ChangeMessageVisibilityBatch": ({"receive"}, {"Entries": ENTRY}),
    "CreateQueue": ({"manage"}, {"QueueName": "orders"}),
    "DeleteMessage": ({"receive"}, {"ReceiptHandle": "x"}),
    "DeleteMessageBatch": ({"receive"}, {"Entries": ENTRY}),
    "DeleteQueue": ({"manage"}, {}),
    "GetQueueAttributes": ({"send", "receive", "manage"}, {"AttributeNames": ["All"]}),
    "GetQueueUrl": ({"send", "receive", "manage"}, {"QueueName": "orders"}),
    "ListDeadLetterSourceQueues": ({"send", "receive", "manage"}, {}),
    "ListMessageMoveTasks": ({"send", "receive", "manage"}, {}),
    "ListQueueTags": ({"send", "receive", "manage"}, {}),
    "ListQueues": (set(), {}),
    "PurgeQueue": ({"manage"}, {}),
    "ReceiveMessage": ({"receive"}, {}),
    "RemovePermission": ({"manage"}, {}),
    "SendMessage": ({"send"}, {"MessageBody": "x"}),
    "SendMessageBatch": ({"send"}, {"Entries": ENTRY}),
    "SetQueueAttributes": ({"manage"}, {"Attributes": {"DelaySeconds": "1"}}),
    "StartMessageMoveTask": ({"manage"}, {}),
    "TagQueue": ({"manage"}, {"Tags": {"a": "b"}}),
    "UntagQueue": ({"manage"}, {"TagKeys": ["a"]}),
}


def test_every_action_has_its_right() -> None:
    assert set(ASKED) == set(calls.ACTIONS)


def act(world: World, key: Key, action: str, members: Any, sign_as: Key | None = None) -> Reply:
    """An action with any members, signed as boto3 signs."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    body = members if isinstance(members, bytes) else json.dumps(members).encode()
    headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": JSON}
    request = AWSRequest("POST", URL + "/", headers, body)
    signer = sign_as or key
    SigV4Auth(Credentials(signer.id, signer.secret), "sqs", "eu-central-1").add_auth(request)
    return call(world, "POST", URL + "/", headers_of(request.prepare()), body)


@pytest.mark.few(22)
@pytest.mark.parametrize("action", sorted(ASKED))
def test_a_key_makes_the_calls_of_its_scope(world: World, make_key: MakeKey, action: str) -> None:
    needed, members = ASKED[action]
    owner = make_key("shop")
    client_of(world, owner).create_queue(QueueName="orders")
    named = {"QueueUrl": f"{URL}/shop/orders", "SourceArn": "arn:aws:sqs:x:shop:orders"}
    if action == "CancelMessageMoveTask":
        reply = world.client("shop").post("/queues/orders/redrive", {})
        named["TaskHandle"] = reply.json["operation"]
    for right, scope in RIGHTS.items():
        reply = act(world, make_key("shop", scope=scope), action, {**named, **members})
        refused = reply.status == 403 and code(reply) == "AccessDenied"
        assert refused == (right not in needed), (right, reply.text)


def test_a_dead_letter_queue_needs_a_right_of_its_own(world: World, make_key: MakeKey) -> None:
    client_of(world, make_key("shop")).create_queue(QueueName="dead")
    policy = {"deadLetterTargetArn": "arn:aws:sqs:x:shop:dead", "maxReceiveCount": 1}
    attributes = {"RedrivePolicy": json.dumps(policy)}
    client = client_of(world, make_key("shop", scope=Scope(manage=listed("orders"))))
    with pytest.raises(ClientError, match="AccessDenied"):
        client.create_queue(QueueName="orders", Attributes=attributes)
    both = Scope(manage=Listed(queues=("orders", "dead")))
    client_of(world, make_key("shop", scope=both)).create_queue(
        QueueName="orders", Attributes=attributes
    )


ODD: list[Any] = [
    *(None, True, 0, -1, 1.5, 1e308, 10**30, "", "x", "ü\0", [], [None], [[]], {}, {"a": None}),
    *("x" * 10_000, ["x"] * 300, {"": ""}, "http://h/shop/orders", "arn:aws:sqs:x:shop:orders"),
    *([{"Id": "1"}], [{"Id": 1}], {"a": {"DataType": "String"}}, {"a": {"DataType": 5}}),
    *(f"{URL}/shop/orders", "2026", "-0", "0x10", " 1", {"All": "All"}, ["All"], "\ud7ff"),
]
MEMBERS = [
    *sorted({name for _, members in ASKED.values() for name in members}),
    *("QueueUrl", "SourceArn", "TaskHandle", "DestinationArn", "MaxResults", "NextToken"),
    *("MaxNumberOfMessages", "WaitTimeSeconds", "MessageAttributeNames", "tags", "DelaySeconds"),
    *("MessageAttributes", "MessageSystemAttributes", "MessageGroupId", "MessageDeduplicationId"),
    *("MessageSystemAttributeNames", "QueueOwnerAWSAccountId", "QueueNamePrefix"),
    *("ReceiveRequestAttemptId", "MaxNumberOfMessagesPerSecond"),
]


@pytest.mark.few(5)
@pytest.mark.parametrize("action", sorted(ASKED))
def test_odd_members_are_refused_or_taken_but_never_a_failure_of_ours(
    world: World, key: Key, action: str
) -> None:
    chance = random.Random(action)
    client_of(world, key).create_queue(QueueName="orders")
    base = {"QueueUrl": f"{URL}/shop/orders", "SourceArn": "arn:aws:sqs:x:shop:orders"}
    for _ in range(60):
        members = {**base, **ASKED[action][1]}
        for name in chance.sample(MEMBERS, chance.randrange(1, 4)):
            members[name] = chance.choice(ODD)
        reply = act(world, key, action, members)
        assert reply.status < 500, (members, reply.text)
        if reply.status == 400:
            assert code(reply)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"5",
        b'"x"',
        b"{",
        b"\xff",
        b'{"QueueUrl": "\xff"}',
        b"[" * 100_000,
        b'{"QueueUrl": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"QueueUrl": "\\ud800"}',
        b'{"a": 1, "a": 2}',
    ],
)
def test_invalid_bodies_are_refused(world: World, key: Key, body: bytes) -> None:
    for action in ("SendMessage", "ListQueues", "Nothing", ""):
        reply = act(world, key, action, body)
        assert reply.status in (200, 400), reply.text
        if action in ("Nothing", ""):
            assert reply.status == 400


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/", (404, "UnknownOperationException")),
        ("POST", "/", (404, "UnknownOperationException")),
        ("GET", "/shop/orders", (404, "UnknownOperationException")),
        ("GET", "/favicon.ico", (404, "UnknownOperationException")),
        ("PUT", "/queues/a?Action=ListQueues", (404, "UnknownOperationException")),
        ("DELETE", "/topics/t/messages/1", (404, "UnknownOperationException")),
        ("GET", "/?Action=ListQueues", (403, "AccessDenied")),
        ("GET", "/shop/orders?Action=ReceiveMessage", (403, "AccessDenied")),
    ],
)
def test_every_path_is_answered_in_the_shape_of_sqs(
    world: World, method: str, path: str, expected: tuple[int, str]
) -> None:
    reply = call(world, method, URL + path, {}, b"")
    assert (reply.status, error(reply)) == expected


def test_json_of_nobody_is_answered_in_json(world: World) -> None:
    for target in ("AmazonSQS.Nothing", "DynamoDB_20120810.ListTables"):
        headers = {"x-amz-target": target, "content-type": JSON}
        reply = call(world, "POST", URL, headers, b"{}")
        assert (reply.status, code(reply)) == (
            (403, "AccessDenied")
            if target.startswith("AmazonSQS")
            else (404, "UnknownOperationException")
        )


def test_too_many_wrong_signatures_of_an_address_are_put_off(world: World, key: Key) -> None:
    change_settings(world, account_requests_per_second=1_000)
    assert act(world, key, "ListQueues", {}).status == 200
    wrong, other = Key(world, "shop"), Key(world, "shop")
    wrong.secret = "wrong"
    codes = [code(act(world, wrong, "ListQueues", {})) for _ in range(40)]
    assert codes[0] == "SignatureDoesNotMatch"
    assert codes[-1] == "RequestThrottled"
    assert act(world, key, "ListQueues", {}).status == 200  # known to be good here
    assert code(act(world, other, "ListQueues", {})) == "RequestThrottled"
    world.clock.pass_seconds(61)
    assert act(world, other, "ListQueues", {}).status == 200
