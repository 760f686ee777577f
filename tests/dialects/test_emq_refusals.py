"""Calls of EMQ's protocol that are refused: keys, signatures, rights, odd bytes."""

from __future__ import annotations

import contextlib
import random
import struct
import time
import tracemalloc
from typing import Any

import pytest
from tests.dialects.conftest import Key, MakeKey
from tests.dialects.emq_wire import (
    Emq,
    authorization,
    field,
    fields,
    headers_of,
    long,
    message,
    post,
    read,
    text,
)

from cirrusmq.access.scopes import Listed, Scope
from cirrusmq_dialects.emq.protocol import MalformedError, Reader
from cirrusmq_local.testing import Client, World

PATH = "/v1/api/message"
SEND = message("sendMessage", (1, "shop/q"), (2, "a secret word"))
DENIED, UNKNOWN_METHOD, PROTOCOL_ERROR, INVALID_PROTOCOL = 13, 1, 7, 9


@pytest.fixture
def emq(world: World, key: Key, shop: Client) -> Emq:
    """A program with a queue `q`."""
    assert shop.put("/queues/q", {}).status == 201
    return Emq(world, key)


def refused(answer: bytes) -> int:
    """The code of a refusal that a method declares."""
    kind, _, found = read(answer)
    assert (kind, found.keys()) == (2, {1}), found
    return int(found[1][1])


def odd(answer: bytes) -> int:
    """The code of an error that no method declares."""
    kind, _, found = read(answer)
    assert kind == 3, found
    return int(found[2])


def in_queue(shop: Client) -> int:
    return int(shop.get("/queues/q").json["counts"]["active"])


ALTERED = [
    {"content-md5": "0" * 32},
    {"x-xiaomi-date": "Sat, 21 Nov 2026 19:43:55 GMT"},
    {"x-xiaomi-timestamp": str(int(time.time()) - 1)},
    {"x-xiaomi-further": "1"},
    {"content-type": "application/x-thrift-binary; charset=utf-8"},
    {"content-md5": ""},
]


@pytest.mark.parametrize("changes", ALTERED, ids=lambda each: next(iter(each)))
def test_each_altered_header_is_refused(
    world: World, emq: Emq, shop: Client, changes: dict[str, str]
) -> None:
    headers = headers_of(emq.key, PATH, SEND) | changes

    assert refused(post(world, "message", SEND, headers)) == DENIED
    assert in_queue(shop) == 0


def test_another_path_is_refused(world: World, emq: Emq) -> None:
    headers = headers_of(emq.key, "/v1/api/queue", SEND)

    assert refused(post(world, "message", SEND, headers)) == DENIED


def test_each_altered_byte_of_the_body_is_refused(world: World, emq: Emq, shop: Client) -> None:
    headers = headers_of(emq.key, PATH, SEND)

    for at in range(0, len(SEND), 3):
        altered = SEND[:at] + bytes([SEND[at] ^ 1]) + SEND[at + 1 :]
        kind, _, found = read(post(world, "message", altered, headers))
        assert kind == 3 or found[1][1] == DENIED
    assert in_queue(shop) == 0


@pytest.mark.parametrize(
    "given", ["", "Galaxy-V2", "Galaxy-V2 AKIDx", "Galaxy-V2 a:b:c", "Bearer a:b", "Galaxy-V2 :x"]
)
def test_no_signature_is_refused(world: World, emq: Emq, given: str) -> None:
    headers = headers_of(emq.key, PATH, SEND) | {"authorization": given}

    assert refused(post(world, "message", SEND, headers)) == DENIED


@pytest.mark.parametrize("at", ["", "soon", "-1", "1e9", "9" * 20])
def test_an_invalid_time_is_refused(world: World, emq: Emq, at: str) -> None:
    headers = headers_of(emq.key, PATH, SEND) | {"x-xiaomi-timestamp": at}
    headers["authorization"] = authorization(emq.key.id, emq.key.secret, PATH, headers)

    assert refused(post(world, "message", SEND, headers)) == DENIED


ARGUMENTS: dict[str, list[tuple[int, Any]]] = {
    "listQueue": [(1, "")],
    "listDeadLetterSourceQueues": [(1, "shop/q")],
    "setPermission": [(1, "shop/q"), (2, "partner"), (3, 1)],
    "revokePermission": [(1, "shop/q"), (2, "partner")],
    "queryPermissionForId": [(1, "shop/q"), (2, "partner")],
    "createTag": [(1, "shop/q"), (2, "late")],
    "deleteTag": [(1, "shop/q"), (2, "late")],
    "setQueueAttribute": [(1, "shop/q"), (2, fields((1, 5)))],
    "setQueueQuota": [(1, "shop/q"), (2, fields((2, fields((1, 2**40)))))],
    "setQueueRedrivePolicy": [(1, "shop/q"), (2, fields((1, "shop/d"), (2, 2)))],
    "createQueue": [(1, "new")],
    "sendMessage": [(1, "shop/q"), (2, "x")],
    "receiveMessage": [(1, "shop/q"), (3, 0)],
    "deleteMessage": [(1, "shop/q"), (2, "x")],
    "deadMessage": [(1, "shop/q"), (2, "x")],
    "changeMessageVisibilitySeconds": [(1, "shop/q"), (2, "x"), (3, 1)],
}
OF_QUEUE: list[tuple[int, Any]] = [(1, "shop/q")]
MANAGES = {
    *("createQueue", "deleteQueue", "purgeQueue", "setQueueAttribute", "setQueueQuota"),
    *("setQueueRedrivePolicy", "removeQueueRedrivePolicy", "setPermission", "revokePermission"),
    *("queryPermissionForId", "listPermissions", "createTag", "deleteTag", "listQueue"),
}
RECEIVES = {
    *("receiveMessage", "deleteMessage", "deadMessage", "changeMessageVisibilitySeconds"),
}
SHOWS = {"getQueueInfo", "getTagInfo", "listTag", "listDeadLetterSourceQueues", "queryPermission"}


def service_of(method: str) -> str:
    return "message" if "Message" in method else "queue"


@pytest.mark.few(45)
@pytest.mark.parametrize("method", sorted(MANAGES | RECEIVES | {"sendMessage"} | SHOWS))
@pytest.mark.parametrize("right", ["send", "receive", "manage"])
def test_a_scope_allows_its_calls(
    emq: Emq, make_key: MakeKey, world: World, method: str, right: str
) -> None:
    """As on the native routes: a key has its right on the queue `q` alone."""
    needed = {**dict.fromkeys(MANAGES, "manage"), **dict.fromkeys(RECEIVES, "receive")}
    needed["sendMessage"] = "send"
    limited = Emq(world, make_key("shop", scope=Scope(**{right: Listed(queues=("q",))})))
    given = ARGUMENTS.get(method, OF_QUEUE)

    allowed = method in SHOWS or (right == needed[method] and method not in ("createQueue",))
    allowed = allowed and method != "listQueue"
    try:
        limited.call(service_of(method), method, *given)
        code = 0
    except Exception as error:
        code = error.args[0]
    assert (code != DENIED) == (allowed and method != "setQueueRedrivePolicy")


@pytest.mark.parametrize("method", sorted(MANAGES | RECEIVES | {"sendMessage"} | SHOWS))
def test_another_account_needs_a_grant(
    emq: Emq, make_key: MakeKey, world: World, method: str
) -> None:
    stranger = Emq(world, make_key("partner"))
    given = ARGUMENTS.get(method, OF_QUEUE)
    if method in ("createQueue", "listQueue"):
        given = [(1, "shop/q")]
    if method == "listQueue":
        assert stranger.queue(method, *given) == {1: []}
    elif method == "queryPermission":
        assert stranger.queue(method, *given) == {1: 0}
    else:
        assert stranger.code(service_of(method), method, *given) == DENIED


def rate(value: int) -> bytes:
    """A throughput, made as an i64, as the contract has it."""
    return b"\x0a\0\1" + long(value) + b"\0"


Q = (1, "shop/q")
OUT_OF_RANGE = [(1, 901), (2, 1), (2, 43_201), (3, 21), (4, 101), (5, 59), (6, 1_023), (7, 256)]
STRING, ENTRY = ((1, "STRING"), (2, "x")), ((1, "1"), (2, "x"))
REJECTED: list[tuple[str, list[tuple[int, Any]], int]] = [
    *(("setQueueAttribute", [Q, (2, (each,))], 2) for each in [*OUT_OF_RANGE, (1, -1)]),
    *(("createQueue", [(1, "o"), (2, (each,))], 2) for each in [*OUT_OF_RANGE, (1, -1)]),
    *(("setQueueQuota", [Q, (2, ((2, rate(each)),))], 2) for each in (0, 10_001, -1)),
    *(("getQueueInfo", [(1, each)], 2) for each in ("q", "/q", "shop/", "a/b/c", "shop/a:b")),
    ("getQueueInfo", [(1, "shop/?")], 2),
    ("getQueueInfo", [(1, "")], 5),
    ("createQueue", [Q], 4),
    *(
        ("setQueueRedrivePolicy", [Q, (2, ((1, each), (2, 2)))], 2)
        for each in ("other/d", "d", "", "shop/")
    ),
    *(("setPermission", [Q, (2, "partner"), (3, each)], 2) for each in (7, 9, 10, 11, -1)),
    ("createTag", [Q, (2, "t"), (5, "a b"), (6, STRING)], 2),
    ("createTag", [Q, (2, "t"), (5, "AND"), (6, STRING)], 2),
    ("createTag", [Q, (2, "t"), (5, "a"), (6, ((1, "empty"),))], 2),
    ("createTag", [Q, (2, "t"), (5, "a"), (6, ((1, "BINARY"), (3, "x")))], 2),
    ("createTag", [Q, (2, "t"), (5, "a")], 2),
    ("deleteTag", [Q, (2, "none")], 2),
    ("receiveMessage", [Q, (3, 0), (6, "none")], 2),
    ("sendMessage", [Q, (2, "")], 10),
    ("sendMessage", [Q], 10),
    ("sendMessage", [Q, (2, "x"), (3, 901)], 2),
    ("sendMessage", [Q, (2, "x"), (4, 1)], 2),
    ("sendMessage", [Q, (2, "x"), (7, 3)], 2),
    ("sendMessage", [Q, (2, "x"), (7, 17)], 2),
    ("sendMessage", [Q, (2, "x"), (5, {"a": ((1, "Number"), (2, "1"))})], 2),
    ("sendMessage", [Q, (2, "x"), (5, {"a": ((1, "STRING"),)})], 2),
    ("sendMessage", [Q, (2, "x"), (5, {"a": ((2, "x"),)})], 2),
    ("sendMessageBatch", [Q, (2, [ENTRY, ((1, "2"), (2, ""))])], 10),
    ("sendMessageBatch", [Q, (2, [ENTRY, ENTRY])], 2),
    ("sendMessageBatch", [Q, (2, [((1, str(each)), (2, "x")) for each in range(17)])], 2),
    ("sendMessageBatch", [Q, (2, [])], 2),
    ("deleteMessageBatch", [Q, (2, [((1, f"handle-{each}"),) for each in range(101)])], 2),
    ("deleteMessageBatch", [Q, (2, [((1, "handle"),)] * 2)], 2),
]
"""Methods, their arguments, of which a tuple is a struct, and the code."""


def made(value: Any) -> Any:
    """A value with structs in the place of tuples."""
    match value:
        case tuple():
            return fields(*((number, made(each)) for number, each in value))
        case list():
            return [made(each) for each in value]
        case dict():
            return {name: made(each) for name, each in value.items()}
    return value


@pytest.mark.parametrize(
    ("method", "given", "code"), REJECTED, ids=lambda each: str(each).replace("'", "")[:60]
)
def test_an_impossible_call_is_rejected_and_does_nothing(
    world: World, key: Key, shop: Client, method: str, given: list[tuple[int, Any]], code: int
) -> None:
    emq = Emq(world, key)
    emq.queue("createQueue", (1, "q"))

    arguments = [(number, made(each)) for number, each in given]

    assert emq.code(service_of(method), method, *arguments) == code
    assert [each["name"] for each in shop.get("/queues").json["queues"]] == ["q"]
    assert shop.get("/queues/q/receivers").json["receivers"] == []
    assert in_queue(shop) == 0


@pytest.mark.parametrize(
    "kind", ["application/x-thrift-compact", "application/x-thrift", "text/plain", ""]
)
def test_other_protocols_are_refused(world: World, emq: Emq, kind: str) -> None:
    headers = headers_of(emq.key, PATH, SEND) | {"content-type": kind}

    assert odd(post(world, "message", SEND, headers)) == INVALID_PROTOCOL


@pytest.mark.parametrize("method", ["peekMessage", "createQueue", "x" * 80, "é", "<b>"])
def test_unknown_methods_are_refused(world: World, emq: Emq, method: str) -> None:
    body = message(method, (1, "shop/q"))

    assert odd(post(world, "message", body, headers_of(emq.key, PATH, body))) == UNKNOWN_METHOD


HEAD = SEND[: SEND.index(b"sendMessage") + 15]
ODD = {
    "nothing": b"",
    "not strict": text("sendMessage") + b"\1\0\0\0\0\0",
    "a reply": b"\x80\x01\0\2" + SEND[4:],
    "another version": b"\x80\x02" + SEND[2:],
    "a name of bytes": b"\x80\x01\0\1" + text(b"\xff\xfe") + b"\0\0\0\0\0",
    "a long name": message("x" * 81),
    "a negative size": HEAD + b"\x0c\0\1\x0b\0\1\xff\xff\xff\xff",
    "a huge text": HEAD + b"\x0c\0\1\x0b\0\1\x7f\xff\xff\xff",
    "bytes behind": SEND + b"\0",
    "no text": message("sendMessage", (1, "shop/q")).replace(b"shop/q", b"\xff\xff\xffp/q"),
    "a type of none": HEAD + b"\x0c\0\1\x09\0\1",
    "a negative type": HEAD + b"\x0c\0\1\xff\0\1",
}
CONTAINERS = {
    "a list of nothing": struct.pack("!bhbi", 15, 90, 1, 2**31 - 1),
    "a list of booleans": struct.pack("!bhbi", 15, 90, 2, 2**31 - 1),
    "a list of structs": struct.pack("!bhbi", 15, 2, 12, 2**30),
    "a set": struct.pack("!bhbi", 14, 90, 3, 2**29),
    "a map": struct.pack("!bhbbi", 13, 5, 11, 12, 2**29),
    "a negative map": struct.pack("!bhbbi", 13, 5, 11, 12, -1),
    "a map of other types": struct.pack("!bhbbi", 13, 5, 8, 8, 1) + b"\0" * 9,
    "deep structs": struct.pack("!bh", 12, 90) * 5_000,
    "deep lists": struct.pack("!bh", 15, 90) + struct.pack("!bi", 15, 1) * 5_000,
}


@pytest.mark.parametrize("name", [*ODD, *CONTAINERS])
def test_odd_bytes_are_a_clients_error(world: World, emq: Emq, shop: Client, name: str) -> None:
    body = ODD[name] if name in ODD else HEAD + b"\x0c\0\1" + CONTAINERS[name] + b"\0\0\0"

    assert odd(post(world, "message", body, headers_of(emq.key, PATH, body))) == PROTOCOL_ERROR
    assert in_queue(shop) == 0


def test_drawn_bytes_are_a_clients_error(world: World, emq: Emq) -> None:
    """Bytes of a good call with some of them altered, cut, repeated; and noise behind a head."""
    drawn = random.Random(20_26)
    codes = set()
    for _ in range(1_500):
        body = bytearray(SEND if drawn.random() < 0.7 else HEAD + drawn.randbytes(40))
        for _ in range(drawn.randrange(1, 6)):
            at = drawn.randrange(len(body))
            match drawn.randrange(3):
                case 0:
                    body[at] = drawn.choice((0, 1, 2, 8, 11, 12, 13, 15, 127, 255))
                case 1:
                    del body[at : at + drawn.randrange(1, 5)]
                case _:
                    body[at:at] = body[at : at + drawn.randrange(1, 9)]
            body = body or bytearray(b"\0")
        sent = bytes(body)
        kind, _, found = read(post(world, "message", sent, headers_of(emq.key, PATH, sent)))
        codes.add((kind, found[2] if kind == 3 else found[1][1] if 1 in found else 0))
    assert codes <= {(2, 0), (2, 2), (2, 5), (2, 6), (2, 10), (2, DENIED), (3, 1), (3, 7)}
    assert {(3, 1), (3, 7), (2, 0)} <= codes


@pytest.mark.parametrize("size", [40_000, pytest.param(250_000, marks=pytest.mark.long)])
def test_no_body_takes_much_memory_or_time(size: int) -> None:
    """The worst that a body can hold: as many elements as bytes, skipped or kept.

    A part of the largest one: to trace memory takes much longer than to read.
    """
    skipped = field(90, [False] * size)
    kept = struct.pack("!bhbi", 15, 2, 12, size) + b"\0" * size
    nested = struct.pack("!bhbi", 15, 90, 15, size // 5) + struct.pack("!bi", 12, 0) * (size // 5)
    for content in (skipped, kept, nested):
        reader = Reader(message("sendMessageBatch")[:-2] + content + b"\0\0")
        reader.head()
        tracemalloc.start()
        began = time.process_time()
        with contextlib.suppress(MalformedError):
            reader.argument("SendBatch")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * size
        assert time.process_time() - began < 30


def test_a_request_over_1_mib_is_refused(world: World, emq: Emq) -> None:
    body = message("sendMessage", (1, "shop/q"), (2, "x" * 1_048_577))

    assert refused(post(world, "message", body, headers_of(emq.key, PATH, body))) == 2
