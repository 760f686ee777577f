"""EMQ's calls as bytes, made by hand: of Thrift's rules, without a reader or writer of it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
import time
from collections.abc import Mapping
from typing import Any

from tests.dialects.conftest import URL, Key, call

from cirrusmq_local.testing import World

TYPE = "application/x-thrift-binary"
BOOL, I32, I64, TEXT, STRUCT, MAP, LIST = 2, 8, 10, 11, 12, 13, 15
Value = Any


def text(value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return struct.pack("!i", len(content)) + content


def field(number: int, value: Value) -> bytes:
    """A field; bytes are a struct that is made already, a list has such, a dict maps texts."""
    kind, content = typed(value)
    return struct.pack("!bh", kind, number) + content


def typed(value: Value) -> tuple[int, bytes]:
    match value:
        case bool():
            return BOOL, struct.pack("!b", value)
        case int():
            return (I32, struct.pack("!i", value)) if abs(value) < 1 << 31 else (I64, long(value))
        case str():
            return TEXT, text(value)
        case bytes():
            return STRUCT, value
        case list():
            kinds = {typed(each)[0] for each in value} or {STRUCT}
            inner = b"".join(typed(each)[1] for each in value)
            return LIST, struct.pack("!bi", *kinds, len(value)) + inner
        case dict():
            kinds = {typed(each)[0] for each in value.values()} or {TEXT}
            inner = b"".join(text(name) + typed(each)[1] for name, each in value.items())
            return MAP, struct.pack("!bbi", TEXT, *kinds, len(value)) + inner
    raise TypeError(value)


def long(value: int) -> bytes:
    return struct.pack("!q", value)


def fields(*numbered: tuple[int, Value]) -> bytes:
    """A struct."""
    return b"".join(field(*each) for each in numbered) + b"\0"


def message(method: str, *numbered: tuple[int, Value], sequence: int = 0) -> bytes:
    """A call whose argument has these fields."""
    head = b"\x80\x01\0\1" + text(method) + struct.pack("!i", sequence)
    return head + fields((1, fields(*numbered)))


def headers_of(key: Key, path: str, body: bytes, at: int | None = None) -> dict[str, str]:
    """The headers of a signed call."""
    headers = {
        "content-md5": hashlib.md5(body).hexdigest(),
        "content-type": TYPE,
        "x-xiaomi-date": "Sat, 21 Nov 2026 19:43:54 GMT",
        "x-xiaomi-timestamp": str(int(time.time()) if at is None else at),
    }
    return headers | {"authorization": authorization(key.id, key.secret, path, headers)}


def authorization(key_id: str, secret: str, path: str, headers: Mapping[str, str]) -> str:
    lines = [f"{each}:{headers[each]}" for each in sorted(headers) if each.startswith("x-xiaomi-")]
    signed = "\n".join(["POST", headers["content-md5"], TYPE, "", *lines, path])
    made = hmac.new(secret.encode(), signed.encode(), hashlib.sha1).digest()
    return f"Galaxy-V2 {key_id}:{base64.b64encode(made).decode()}"


def post(
    world: World, service: str, body: bytes, headers: Mapping[str, str], method: str = "POST"
) -> bytes:
    """The body of an answer, whose status is 200."""
    reply = call(world, method, f"{URL}/v1/api/{service}?id=0", dict(headers), body)
    assert reply.status == 200, reply
    assert reply.headers["Content-Type"] == TYPE
    return reply.text.encode("utf-8", "surrogateescape")


class Read:
    """Reads an answer into numbers and values: structs as dicts by number."""

    def __init__(self, body: bytes) -> None:
        self.body, self.at = body, 0

    def take(self, form: str) -> Any:
        size = struct.calcsize(form)
        (value,) = struct.unpack(form, self.body[self.at : self.at + size])
        self.at += size
        return value

    def text(self) -> str | bytes:
        size = self.take("!i")
        content = self.body[self.at : self.at + size]
        self.at += size
        try:
            return content.decode()
        except UnicodeDecodeError:
            return content

    def value(self, kind: int) -> Any:
        if kind in (BOOL, I32, I64):
            return self.take({BOOL: "!?", I32: "!i", I64: "!q"}[kind])
        if kind == TEXT:
            return self.text()
        if kind == LIST:
            inner, size = self.take("!b"), self.take("!i")
            return [self.value(inner) for _ in range(size)]
        if kind == MAP:
            _, inner, size = self.take("!b"), self.take("!b"), self.take("!i")
            return {self.text(): self.value(inner) for _ in range(size)}
        assert kind == STRUCT, kind
        found = {}
        while kind := self.take("!b"):
            number = self.take("!h")
            found[number] = self.value(kind)
        return found


def read(body: bytes) -> tuple[int, str, Any]:
    """The type of an answer (2 is a reply, 3 an exception), its method and its struct."""
    reader = Read(body)
    kind = reader.take("!I") - 0x80010000
    method, _ = reader.text(), reader.take("!i")
    found = reader.value(STRUCT)
    assert reader.at == len(body)
    return kind, str(method), found


class Emq:
    """Makes signed calls."""

    def __init__(self, world: World, key: Key) -> None:
        self._world, self.key = world, key

    def call(self, service: str, method: str, *numbered: tuple[int, Value]) -> Any:
        """The value of a result, or None; a refusal is raised."""
        body = message(method, *numbered)
        answer = post(self._world, service, body, headers_of(self.key, f"/v1/api/{service}", body))
        kind, told, found = read(answer)
        assert (kind, told) == (2, method), (kind, told, found)
        if 1 in found:
            raise RefusedError(found[1][1], found[1][2])
        return found.get(0)

    def queue(self, method: str, *numbered: tuple[int, Value]) -> Any:
        return self.call("queue", method, *numbered)

    def message(self, method: str, *numbered: tuple[int, Value]) -> Any:
        return self.call("message", method, *numbered)

    def code(self, service: str, method: str, *numbered: tuple[int, Value]) -> int:
        """The code of a refusal."""
        try:
            self.call(service, method, *numbered)
        except RefusedError as error:
            return error.code
        raise AssertionError("it was not refused")


class RefusedError(Exception):
    """A GalaxyEmqServiceException."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code, self.text = code, text
