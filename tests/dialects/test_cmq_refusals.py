"""CMQ's calls that are refused: keys, signatures, rights, odd requests."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import time
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.dialects.conftest import URL, Key, MakeKey, call

from cirrusmq.access.scopes import Listed, Scope
from cirrusmq_dialects.cmq import calls
from cirrusmq_local.testing import Reply, World

PATH = "/v2/index.php"


def params_of(key: Key, action: str, **given: Any) -> dict[str, str]:
    """The parameters of a call, without its signature."""
    made = {
        "Action": action,
        "SecretId": key.id,
        "Timestamp": str(int(time.time())),
        "Nonce": "7",
        "SignatureMethod": "HmacSHA256",
        "Region": "gz",
    }
    return {**made, **{name: str(value) for name, value in given.items()}}


def sign(key: Key, params: dict[str, str], method: str = "POST") -> dict[str, str]:
    """The parameters with their signature: a client of these tests' own."""
    pairs = sorted(params.items())
    text = f"{method}127.0.0.1:8081{PATH}?" + "&".join(
        f"{name.replace('_', '.')}={value}" for name, value in pairs
    )
    kind = hashlib.sha256 if params.get("SignatureMethod") == "HmacSHA256" else hashlib.sha1
    made = hmac.new(key.secret.encode(), text.encode(), kind).digest()
    return {**params, "Signature": base64.b64encode(made).decode()}


def send(world: World, params: dict[str, str], method: str = "POST") -> dict[str, Any]:
    """What the service answers."""
    form = urlencode(params)
    query = f"?{form}" if method == "GET" else ""
    reply = call(world, method, URL + PATH + query, {}, b"" if query else form.encode())
    return told(reply)


def told(reply: Reply) -> dict[str, Any]:
    """Of any answer: JSON of status 200 with its three members."""
    assert reply.status == 200, reply.text
    found: dict[str, Any] = json.loads(reply.text)
    assert isinstance(found["code"], int)
    assert found["requestId"]
    if found["code"]:
        assert found["message"].startswith("(")
    return found


def act(world: World, key: Key, action: str, **given: Any) -> dict[str, Any]:
    return send(world, sign(key, params_of(key, action, **given)))


def refused(answer: dict[str, Any]) -> tuple[int, int]:
    """Code and module."""
    return answer["code"], int(answer["message"][1:].partition(")")[0])


def test_a_signed_call_is_answered(world: World, key: Key) -> None:
    assert act(world, key, "CreateQueue", queueName="orders")["code"] == 0
    get = sign(key, params_of(key, "ListQueue"), "GET")
    assert send(world, get, "GET")["totalCount"] == 1
    # As an SDK repeats it on a new connection: what the query had is the body.
    reply = call(world, "GET", URL + PATH, {}, urlencode(get).encode())
    assert told(reply)["totalCount"] == 1


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_no_forged_parameter_is_accepted(world: World, key: Key, method: str) -> None:
    good = sign(key, params_of(key, "ListQueue", searchWord="a"), method)
    assert send(world, good, method)["code"] == 0
    for name in good:
        altered = {**good, name: good[name][:-1] + ("1" if good[name][-1] != "1" else "2")}
        assert send(world, altered, method)["code"] == 4100, name
        without = {each: value for each, value in good.items() if each != name}
        assert send(world, without, method)["code"] in (4000, 4100), name
    assert send(world, {**good, "more": "1"}, method)["code"] == 4100
    other = "GET" if method == "POST" else "POST"
    assert send(world, good, other)["code"] == 4100
    form = urlencode(good)
    query = f"?{form}" if method == "GET" else ""
    headers = {"host": "127.0.0.1:9999"}
    reply = call(world, method, URL + PATH + query, headers, b"" if query else form.encode())
    assert refused(told(reply)) == (4100, 10030)


@pytest.mark.parametrize("key_id", ["ü", "a b", "x" * 200])
def test_an_odd_id_of_a_key_is_an_unknown_one(world: World, key: Key, key_id: str) -> None:
    key.id = key_id
    assert refused(act(world, key, "ListQueue")) == (4100, 10270)


@pytest.mark.parametrize(
    ("name", "value", "module"),
    [
        ("Timestamp", "", 10360),
        ("Timestamp", "x", 10360),
        ("Timestamp", "1e9", 10360),
        ("Nonce", "0", 10350),
        ("Nonce", "-1", 10350),
        ("Nonce", str(2**63), 10350),
        ("Nonce", "x", 10360),
        ("SecretId", "", 10390),
        ("Action", "", 10390),
        ("Action", "NoAction", 10430),
        ("Action", "sendMessage", 10430),
    ],
)
def test_invalid_common_parameters_are_refused(
    world: World, key: Key, name: str, value: str, module: int
) -> None:
    params = {**params_of(key, "ListQueue"), name: value}
    assert refused(send(world, sign(key, params))) == (4000, module)


def test_other_methods_and_too_large_requests_are_refused(world: World, key: Key) -> None:
    form = urlencode(sign(key, params_of(key, "ListQueue"))).encode()
    for method in ("PUT", "DELETE", "PATCH"):
        assert refused(told(call(world, method, URL + PATH, {}, form))) == (4000, 10410)
    large = form + b"&a=" + b"x" * 1_048_576
    assert refused(told(call(world, "POST", URL + PATH, {}, large))) == (4000, 10420)
    assert refused(told(call(world, "POST", URL + PATH, {}, form + b"&Action=x"))) == (4000, 10330)
    assert refused(told(call(world, "GET", URL + PATH, {}, b""))) == (4000, 10390)


_QUEUE = {"queueName": "orders"}
_TOPIC = {"topicName": "news", "subscriptionName": "readers"}
ASKED: dict[str, tuple[set[str], dict[str, Any]]] = {
    "BatchDeleteMessage": ({"receive"}, {**_QUEUE, "receiptHandle.1": "x"}),
    "BatchPublishMessage": ({"send"}, {**_TOPIC, "msgBody.1": "x"}),
    "BatchReceiveMessage": ({"receive"}, {**_QUEUE, "numOfMsg": 1}),
    "BatchSendMessage": ({"send"}, {**_QUEUE, "msgBody.1": "x"}),
    "ClearSubscriptionFilterTags": ({"manage"}, _TOPIC),
    "CreateQueue": ({"manage"}, _QUEUE),
    "CreateTopic": ({"manage"}, _TOPIC),
    "DeleteMessage": ({"receive"}, {**_QUEUE, "receiptHandle": "x"}),
    "DeleteQueue": ({"manage"}, _QUEUE),
    "DeleteTopic": ({"manage"}, _TOPIC),
    "GetQueueAttributes": ({"send", "receive", "manage"}, _QUEUE),
    "GetSubscriptionAttributes": ({"send", "receive", "manage"}, _TOPIC),
    "GetTopicAttributes": ({"send", "receive", "manage"}, _TOPIC),
    "ListQueue": (set(), {}),
    "ListSubscriptionByTopic": ({"send", "receive", "manage"}, _TOPIC),
    "ListTopic": (set(), {}),
    "PublishMessage": ({"send"}, {**_TOPIC, "msgBody": "x"}),
    "ReceiveMessage": ({"receive"}, _QUEUE),
    "RewindQueue": ({"manage"}, {**_QUEUE, "startConsumeTime": 1}),
    "SendMessage": ({"send"}, {**_QUEUE, "msgBody": "x"}),
    "SetQueueAttributes": ({"manage"}, {**_QUEUE, "visibilityTimeout": 1}),
    "SetSubscriptionAttributes": ({"manage"}, {**_TOPIC, "filterTag.1": "a"}),
    "SetTopicAttributes": ({"manage"}, {**_TOPIC, "maxMsgSize": 2_048}),
    "Subscribe": ({"manage"}, {**_TOPIC, "protocol": "https", "endpoint": "https://a.example/"}),
    "Unsubscribe": ({"manage"}, _TOPIC),
}
"""Each action with the rights of which one is needed, and parameters."""
MINE = Listed(queues=("orders",), topics=("news",))
RIGHTS = {
    "send": Scope(send=MINE),
    "receive": Scope(receive=MINE),
    "manage": Scope(manage=MINE),
}


def test_every_action_has_its_right() -> None:
    assert set(ASKED) == set(calls.ACTIONS)


@pytest.mark.parametrize("action", sorted(ASKED))
def test_a_key_makes_the_calls_of_its_scope(world: World, make_key: MakeKey, action: str) -> None:
    needed, given = ASKED[action]
    owner = make_key("shop")
    act(world, owner, "CreateQueue", queueName="orders")
    act(world, owner, "CreateTopic", topicName="news")
    for right, scope in RIGHTS.items():
        answer = act(world, make_key("shop", scope=scope), action, **given)
        without = answer["code"] == 4100 and refused(answer) == (4100, 10030)
        assert without == (right not in needed), (right, answer)


def test_a_named_queue_needs_a_right_of_its_own(world: World, make_key: MakeKey) -> None:
    owner, other = make_key("shop"), make_key("shop", scope=RIGHTS["manage"])
    act(world, owner, "CreateQueue", queueName="dead")
    act(world, owner, "CreateTopic", topicName="news")
    policy = json.dumps({"deadLetterQueue": "dead", "policy": 0, "maxReceiveCount": 1})
    given: dict[str, Any] = {"queueName": "orders", "deadLetterPolicy": policy}
    assert refused(act(world, other, "CreateQueue", **given)) == (4100, 10030)
    reader = {**_TOPIC, "protocol": "queue", "endpoint": "dead"}
    assert refused(act(world, other, "Subscribe", **reader)) == (4100, 10030)
    assert act(world, owner, "CreateQueue", **given)["code"] == 0
    assert act(world, owner, "Subscribe", **reader)["code"] == 0


NONE = {"queueName": "none"}
REFUSED: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("CreateQueue", {"queueName": ""}, (4000, 10390)),
    ("CreateQueue", {"queueName": "1st"}, (4000, 10020)),
    ("CreateQueue", {"queueName": "x" * 65}, (4000, 10020)),
    ("CreateQueue", {"queueName": "a:b"}, (4000, 10020)),
    ("CreateQueue", {**NONE, "visibilityTimeout": "x"}, (4000, 10360)),
    ("CreateQueue", {**NONE, "visibilityTimeout": ""}, (4000, 10360)),
    ("CreateQueue", {**NONE, "visibilityTimeout": 0}, (4000, 10350)),
    ("CreateQueue", {**NONE, "visibilityTimeout": 43_201}, (4000, 10350)),
    ("CreateQueue", {**NONE, "pollingWaitSeconds": 31}, (4000, 10350)),
    ("CreateQueue", {**NONE, "pollingWaitSeconds": 0.5}, (4000, 10360)),
    ("CreateQueue", {**NONE, "maxMsgSize": 1_023}, (4000, 10350)),
    ("CreateQueue", {**NONE, "maxMsgSize": 262_145}, (4000, 10350)),
    ("CreateQueue", {**NONE, "maxMsgHeapNum": 999_999}, (4000, 10350)),
    ("CreateQueue", {**NONE, "msgRetentionSeconds": 59}, (4000, 10350)),
    ("CreateQueue", {**NONE, "rewindSeconds": 1_296_001}, (4000, 10350)),
    ("CreateQueue", {**NONE, "msgRetentionSeconds": 100, "rewindSeconds": 101}, (4000, 10700)),
    ("CreateTopic", {"topicName": "x-y", "maxMsgSize": 1_023}, (4000, 10350)),
    ("CreateTopic", {"topicName": "x-y", "maxMsgSize": 262_145}, (4000, 10350)),
    ("CreateTopic", {"topicName": "x-y", "filterType": 3}, (4000, 10350)),
    ("ListQueue", {"limit": 0}, (4000, 10350)),
    ("ListQueue", {"limit": 101}, (4000, 10350)),
    ("ListQueue", {"limit": "x"}, (4000, 10360)),
    ("ListQueue", {"offset": -1}, (4000, 10350)),
    ("ListQueue", {"offset": ""}, (4000, 10360)),
    ("SendMessage", {**_QUEUE, "msgBody": "x", "delaySeconds": -1}, (4000, 10350)),
    ("SendMessage", {**_QUEUE, "msgBody": "x", "delaySeconds": 345_600}, (4000, 10350)),
    ("SendMessage", {**_QUEUE, "msgBody": "x", "delaySeconds": "soon"}, (4000, 10360)),
    ("SendMessage", _QUEUE, (4000, 10120)),
    ("SendMessage", {**NONE, "msgBody": "x"}, (4440, 10100)),
    ("BatchSendMessage", _QUEUE, (4000, 10390)),
    ("BatchSendMessage", {**_QUEUE, **{f"msgBody.{n}": "x" for n in range(17)}}, (4000, 10370)),
    ("BatchSendMessage", {**_QUEUE, "msgBody.1": "x", "msgBody.3": "x"}, (4000, 10380)),
    ("BatchSendMessage", {**NONE, "msgBody.0": "x"}, (4440, 10100)),
    ("ReceiveMessage", {**_QUEUE, "pollingWaitSeconds": 31}, (4000, 10350)),
    ("ReceiveMessage", NONE, (4440, 10100)),
    ("BatchReceiveMessage", _QUEUE, (4000, 10390)),
    ("BatchReceiveMessage", {**_QUEUE, "numOfMsg": 0}, (4000, 10350)),
    ("BatchReceiveMessage", {**_QUEUE, "numOfMsg": 17}, (4000, 10350)),
    ("BatchReceiveMessage", {**NONE, "numOfMsg": 1}, (4440, 10100)),
    ("DeleteMessage", _QUEUE, (4000, 10390)),
    ("DeleteMessage", {**NONE, "receiptHandle": "x"}, (4440, 10100)),
    ("BatchDeleteMessage", {**_QUEUE, "receiptHandle": "x"}, (4000, 10390)),
    *(
        (action, {**_TOPIC, body: "x", **given}, expected)
        for given, expected in (
            ({"msgBody": "", "msgBody.1": ""}, (4000, 10120)),
            ({"msgBody": "x" * 65_537, "msgBody.1": "x" * 65_537}, (4400, 10230)),
            ({f"msgTag.{n}": "x" for n in range(11)}, (4000, 10720)),
            ({"msgTag.1": "x" * 17}, (4000, 10350)),
            ({"msgTag.2": "x"}, (4000, 10380)),
        )
        for action, body in (("PublishMessage", "msgBody"), ("BatchPublishMessage", "msgBody.1"))
    ),
]


@pytest.mark.parametrize(
    ("action", "given", "expected"), REFUSED, ids=lambda each: str(each).replace("'", "")[:60]
)
def test_invalid_parameters_are_refused_and_nothing_is_made(
    world: World, key: Key, action: str, given: dict[str, Any], expected: tuple[int, int]
) -> None:
    act(world, key, "CreateQueue", queueName="orders")
    act(world, key, "CreateTopic", topicName="news")
    reader = {"protocol": "queue", "endpoint": "orders", "notifyContentFormat": "SIMPLIFIED"}
    assert act(world, key, "Subscribe", **_TOPIC, **reader)["code"] == 0

    assert refused(act(world, key, action, **given)) == expected
    assert act(world, key, "ListQueue")["totalCount"] == 1
    assert act(world, key, "ListTopic")["totalCount"] == 1


ODD: list[Any] = [
    *("", "x", "ü\0", "-1", "0", "1", "2147483648", "1.5", "1e308", "None", "[]", "{}", "@", " "),
    *("x" * 10_000, "orders", "news", "\ud7ff", "a:b", "../../x", "http://h/", "queue", "%", "&="),
]
NAMES = [
    *sorted({name for _, given in ASKED.values() for name in given}),
    *(
        "msgBody.0",
        "msgBody.2",
        "msgTag.1",
        "msgTag.x",
        "filterTag.",
        "bindingKey.1",
        "delaySeconds",
    ),
    *("pollingWaitSeconds", "deadLetterPolicy", "rewindSeconds", "searchWord", "offset", "limit"),
    *(
        "notifyStrategy",
        "notifyContentFormat",
        "routingKey",
        "filterType",
        "maxMsgHeapNum",
        "Token",
    ),
    *("clientRequestId", "UserpollingWaitSeconds", "Region"),
]


@pytest.mark.few(15)
@pytest.mark.parametrize("action", sorted(ASKED))
def test_odd_parameters_are_refused_or_taken_but_never_a_failure_of_ours(
    world: World, key: Key, action: str
) -> None:
    chance = random.Random(action)
    act(world, key, "CreateQueue", queueName="orders")
    act(world, key, "CreateTopic", topicName="news")
    for _ in range(40):
        given = dict(ASKED[action][1])
        for name in chance.sample(NAMES, chance.randrange(1, 4)):
            given[name] = chance.choice(ODD)
        given["pollingWaitSeconds"] = given.get("pollingWaitSeconds", 0)
        answer = act(world, key, action, **given)
        assert answer["code"] != 6000, (given, answer)
