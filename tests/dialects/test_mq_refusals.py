"""Calls of RocketMQ's HTTP protocol that are refused: keys, signatures, rights, odd requests."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
import re
import time

import pytest
from tests.dialects.conftest import URL, Key, MakeKey, call

from cirrusmq.access.scopes import Listed, Scope
from cirrusmq_local.testing import Client, Reply, World

NEWS = "/topics/news/messages"
CONSUME = "consumer=GID_shop&numOfMessages=1&ns=I"
MESSAGE = b"<Message><MessageBody>a secret word</MessageBody></Message>"
ACK = b"<ReceiptHandles><ReceiptHandle>x</ReceiptHandle></ReceiptHandles>"
CALLS = [("POST", "ns=I", MESSAGE), ("GET", CONSUME, b""), ("DELETE", "consumer=GID_shop", ACK)]


@pytest.fixture(autouse=True)
def topic(shop: Client) -> None:
    assert shop.put("/topics/news", {}).status == 201


def headers_of(
    key: Key, method: str, query: str, body: bytes = b"", path: str = NEWS, at: float | None = None
) -> dict[str, str]:
    """The headers of a signed call: a client of these tests' own."""
    moment = time.gmtime(time.time() if at is None else at)
    given = {"date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", moment)}
    given["x-mq-version"] = "2015-06-06"
    if body:
        given["content-type"] = "text/xml;charset=utf-8"
        digest = hashlib.md5(body).hexdigest().encode()
        given["content-md5"] = base64.b64encode(digest).decode()
    resource = f"{path}?{query}" if query else path
    text = "\n".join(
        [
            method,
            given.get("content-md5", ""),
            given.get("content-type", ""),
            given["date"],
            f"x-mq-version:2015-06-06\n{resource}",
        ]
    )
    made = hmac.new(key.secret.encode(), text.encode(), hashlib.sha1).digest()
    return {**given, "authorization": f"MQ {key.id}:{base64.b64encode(made).decode()}"}


def send(
    world: World,
    headers: dict[str, str],
    method: str,
    query: str,
    body: bytes = b"",
    path: str = NEWS,
) -> Reply:
    """What the service answers."""
    url = f"{URL}{path}?{query}" if query else URL + path
    return call(world, method, url, headers, body)


def act(
    world: World, key: Key, method: str, query: str, body: bytes = b"", path: str = NEWS
) -> Reply:
    signed = headers_of(key, method, query, body, path)
    return send(world, signed, method, query, body, path)


def code(reply: Reply) -> str:
    """The code of an error; all have their four elements, and the headers that SDKs look for."""
    headers = {name.lower(): value for name, value in reply.headers.items()}
    assert headers["x-mq-request-id"]
    if reply.status == 204:
        return ""
    assert headers["content-type"] == "text/xml;charset=utf-8"
    if "<Errors" in reply.text or reply.status < 300:
        return ""
    for name in ("Message", "RequestId", "HostId"):
        assert re.search(f"<{name}>[^<]+</{name}>", reply.text), reply.text
    found = re.search("<Code>([A-Za-z]+)</Code>", reply.text)
    assert found, reply.text
    return found[1]


def test_signed_calls_are_answered(world: World, key: Key) -> None:
    statuses = [act(world, key, *each).status for each in CALLS]
    assert statuses == [201, 404, 404]
    assert code(act(world, key, *CALLS[1])) == "MessageNotExist"


@pytest.mark.parametrize(("method", "query", "body"), CALLS)
def test_no_forged_part_is_accepted(
    world: World, key: Key, method: str, query: str, body: bytes
) -> None:
    good = headers_of(key, method, query, body)
    refused = {"SignatureDoesNotMatch", "InvalidAccessKeyId", "InvalidDateHeader", "InvalidDigest"}
    refused |= {"MissingAuthorizationHeader", "MissingDateHeader", "InvalidAuthorizationHeader"}
    for name, value in good.items():
        altered = {**good, name: value[:-1] + ("A" if value[-1] != "A" else "B")}
        assert code(send(world, altered, method, query, body)) in refused, name
        without = {each: held for each, held in good.items() if each != name}
        assert code(send(world, without, method, query, body)) in refused, name
    for headers, other in (
        ({**good, "x-mq-more": "1"}, query),
        (good, f"{query}&more=1"),
        (good, query.replace("=", "=1", 1)),
    ):
        assert code(send(world, headers, method, other, body)) == "SignatureDoesNotMatch"
    other_path = "/topics/other/messages"
    assert code(send(world, good, method, query, body, other_path)) == "SignatureDoesNotMatch"
    if body:
        assert code(send(world, good, method, query, body + b" ")) == "InvalidDigest"
    for another in {"POST", "GET", "DELETE", "PUT"} - {method}:
        assert code(send(world, good, another, query, body)) == "SignatureDoesNotMatch"


MINE = Listed(topics=("news",))


@pytest.mark.parametrize(
    ("method", "query", "body", "right"),
    [
        (*CALLS[0], "send"),
        (*CALLS[1], "receive"),
        (*CALLS[2], "receive"),
        ("GET", f"{CONSUME}&trans=pop", b"", "send"),
        ("DELETE", "consumer=GID_shop&trans=commit", ACK, "send"),
    ],
)
def test_a_key_makes_the_calls_of_its_scope(
    world: World, make_key: MakeKey, method: str, query: str, body: bytes, right: str
) -> None:
    act(world, make_key("shop"), *CALLS[1])  # makes the group
    for each in ("send", "receive", "manage"):
        key = make_key("shop", scope=Scope(**{each: MINE}))
        reply = act(world, key, method, query, body)
        assert (code(reply) == "AccessDenied") == (each != right), each


def test_a_key_with_manage_makes_a_group(world: World, make_key: MakeKey) -> None:
    reader = make_key("shop", scope=Scope(receive=MINE))
    assert code(act(world, reader, *CALLS[1])) == "AccessDenied"
    both = make_key("shop", scope=Scope(receive=MINE, manage=MINE))
    assert code(act(world, both, *CALLS[1])) == "MessageNotExist"
    assert code(act(world, reader, *CALLS[1])) == "MessageNotExist"


@pytest.mark.parametrize(
    ("method", "query", "body", "refusal"),
    [
        ("PUT", "", b"", "InvalidArgument"),
        ("POST", "", b"", "MalformedXML"),
        ("POST", "", b"<Message/>", "InvalidArgument"),
        (
            "POST",
            "",
            b"<Message><MessageBody>x</MessageBody><Properties>a</Properties></Message>",
            "InvalidArgument",
        ),
        (
            "POST",
            "",
            b"<Message><MessageBody>x</MessageBody><Properties>a:b:c</Properties></Message>",
            "InvalidArgument",
        ),
        ("GET", "numOfMessages=1", b"", "InvalidArgument"),
        ("GET", "consumer=GID_shop", b"", "InvalidArgument"),
        ("GET", "consumer=GID_shop&numOfMessages=x", b"", "InvalidArgument"),
        ("GET", f"{CONSUME}&waitseconds=-1", b"", "InvalidArgument"),
        ("GET", f"{CONSUME}&trans=other", b"", "InvalidArgument"),
        ("GET", f"{CONSUME}&consumer=x", b"", "InvalidQueryString"),
        ("GET", f"{CONSUME}&tag=%ff", b"", "InvalidQueryString"),
        ("GET", f"{CONSUME}&tag={'x' * 65}", b"", "InvalidArgument"),
        ("DELETE", "", ACK, "InvalidArgument"),
        ("DELETE", "consumer=GID_shop&trans=pop", ACK, "InvalidArgument"),
        ("DELETE", "consumer=GID_shop", b"", "MissingReceiptHandle"),
        ("DELETE", "consumer=GID_shop", b"<x/>", "MalformedXML"),
    ],
)
def test_an_invalid_call_is_refused(
    world: World, key: Key, method: str, query: str, body: bytes, refusal: str
) -> None:
    assert code(act(world, key, method, query, body)) == refusal


PIECES = [
    *(b"<", b">", b"/", b"&", b"&amp;", b"&#13;", b"]]>", b"<![CDATA[", b"\xff", b"\0", b" ", b"|"),
    *(b"<Message>", b"</Message>", b"<MessageBody>", b"</MessageBody>", b"<Properties>a:1|"),
    *(b"</Properties>", b"<ReceiptHandles>", b"<ReceiptHandle>", b"</ReceiptHandle>", b"x", b":"),
    *(b"</ReceiptHandles>", b"<?xml version='1.0'?>", b"<!--", b"-->", b"<MessageTag>"),
]
NAMES = ["consumer", "numOfMessages", "ns", "tag", "trans", "waitseconds", "x", ""]
VALUES = ["", "1", "-1", "16", "17", "GID_shop", "order", "pop", "commit", "%7C%7C", "%ff", "*"]


def test_odd_requests_are_refused_or_taken_but_never_a_failure_of_ours(
    world: World, key: Key
) -> None:
    chance = random.Random(7)
    for _ in range(400):
        method = chance.choice(["POST", "GET", "DELETE"])
        body = b"".join(chance.choices(PIECES, k=chance.randrange(8)))
        if chance.random() < 0.5:
            whole, place = (MESSAGE, 9) if method == "POST" else (ACK, 16)
            body = whole[:place] + body + whole[place:]
        pairs = [
            f"{chance.choice(NAMES)}={chance.choice(VALUES)}" for _ in range(chance.randrange(5))
        ]
        query = "&".join([*pairs, *([CONSUME] if chance.random() < 0.5 else [])])
        if "waitseconds=1" in query:
            query = query.replace("waitseconds=1", "waitseconds=0")
        path = chance.choice([NEWS, NEWS, NEWS, "/topics/none/messages", "/topics/-/messages"])
        reply = act(world, key, method, query, body, path)
        assert reply.status < 500, (method, query, body, reply.text)
        assert reply.status < 400 or code(reply) or "<Errors" in reply.text
