"""Any request, in any bytes, gets a refusal of the contract, never a failure of ours."""

from __future__ import annotations

import gzip
from functools import cache

import pytest
from tests.infra.test_routes import MANAGED
from tests.security.contract import CALLS, CODES, DOCUMENT, Call, Stage, names_for, set_stage

from cirrusmq_lambda.request_bodies import BINARY
from cirrusmq_local.testing import Client, Reply

BRING_MESSAGES = {
    *("POST /queues/{queue}/messages", "POST /topics/{topic}/messages"),
    *("POST /topics/{topic}/match", "POST /queues/{queue}/messages/{id}/reply"),
}
WITH_BODY = [call for call in CALLS if "requestBody" in call.described]
NO_OBJECTS = [
    b" ", b"{", b"[]", b"null", b"1", b'"x"', b"{} {}", b"\xef\xbb\xbf{}", b"\xff\xfe{\x00}\x00",
    b'{"a": "\x00"}', b"{'a': 1}", b'{"a": 1,}', b"[" * 100_000,
]  # fmt: skip
OBJECTS = [
    b"", b'{"a": "\xff"}', b'{"a": NaN}', b'{"a": Infinity}', b'{"a": 1e999}', b'{"a": "\\ud800"}',
    b'{"a": 1, "a": 2}', b'{"\\u0000": 1}', b'{"": ""}',
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b'{"messages":' + b"[" * 100_000, b'{"entries": [[[[]]]], "messages": [[[[]]]]}',
    b'{"' + b"k" * 100_000 + b'": 1}', b'{"a": ' + b"9" * 100_000 + b"}",
    b'{"max": -0, "wait_seconds": -0.0}', b'{"filter": {"tags": {"tags": []}}, "labels": {"": ""}}',
    b'{"messages": [{"body": "x", "attributes": {"\\u0000": "x"}}]}',
    b'{"messages": [{"body": "\\u0000", "group": "\\u0000", "deduplication_id": "\\u0000"}]}',
    b'{"receipts": ["\\u0000", "\\ufffe", "\xf0\x9f\x90\x98"]}', b'{"receipts": [""]}',
]  # fmt: skip
TYPES = {
    "application/json": True,
    "Application/JSON; Charset=UTF-8": True,
    'application/json;charset="utf-8"': True,
    "application/json; charset=utf-16": False,
    "application/json; charset=latin-1": False,
    "text/json": False,
    "application/x-www-form-urlencoded": False,
    "multipart/form-data; boundary=x": False,
    "": False,
    ";": False,
    "\x00": False,
}
NAMES = [
    "%00", "a%00b", "%ff", "%F0%9F%90%98", "a%2Fb", "%2e%2e", "..", "a b", "a:b:c", ":", "a:", ":b",
    "x" * 4_000, "%", "%zz", "K%23x", "a%0d%0ab", "*", "{queue}", "a,b", "%ed%a0%80",
]  # fmt: skip
SIGNS = ["a.bc", "a%20bc", "%C3%A9bc", "a%2Fbc", "a%00b"]
ODD = ["x" * 65, "1abc", "-abc", "_abc", *SIGNS]
BAD_NAMES = {
    "queue": ["x" * 81, *SIGNS, ":", "alice:", ":abc", "a:b:c"],
    "topic": ["x" * 257, *SIGNS],
    "subscription": [*ODD, "ab"],
    "receiver": ODD,
    "account": ODD,
}
NAMING = [call for call in CALLS if BAD_NAMES.keys() & set(call.names)]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"]


@pytest.fixture(scope="module")
def stage() -> Stage:
    return set_stage()


@cache
def bomb() -> bytes:
    """100 MB of blanks, gzipped: made where it is sent, not by each process that collects."""
    return gzip.compress(b" " * 100_000_000, 9)


def check(reply: Reply, *where: object) -> None:
    """A good answer, or a problem of a code that the document knows."""
    assert reply.status < 500, (*where, reply.text)
    if reply.status >= 400:
        assert reply.headers["Content-Type"] == "application/problem+json", where
        assert reply.code in CODES, where


@pytest.mark.parametrize("call", WITH_BODY, ids=str)
def test_a_non_object_body_is_malformed(stage: Stage, call: Call) -> None:
    before = stage.everything()
    for body in NO_OBJECTS:
        reply = stage.owner.raw(call.method, call.path(names_for(stage, call)), body)
        assert (reply.status, reply.code) == (400, "MalformedRequest"), body[:40]
    assert stage.everything() == before


@pytest.mark.few(12)
@pytest.mark.parametrize("call", WITH_BODY, ids=str)
def test_no_body_makes_a_call_fail(stage: Stage, call: Call) -> None:
    path = call.path({**names_for(stage, call), "receiver": "new", "account": "dora"})
    for body in OBJECTS:
        check(stage.owner.raw(call.method, path, body), body[:40])


@pytest.mark.parametrize("call", WITH_BODY, ids=str)
def test_a_body_is_json_in_utf_8_of_up_to_1_mib(stage: Stage, call: Call) -> None:
    before = stage.everything()
    path = call.path(names_for(stage, call))
    for content_type, supported in TYPES.items():
        reply = stage.owner.raw(call.method, path, b'{"x": 1}', content_type=content_type)
        assert reply.code == ("InvalidParameter" if supported else "UnsupportedMediaType")
        assert reply.status == (400 if supported else 415)
    large = stage.owner.raw(call.method, path, b" " * 1_048_577)
    if str(call) in BRING_MESSAGES:
        assert (large.status, large.code) == (400, "MalformedRequest")
    else:
        assert (large.status, large.code) == (413, "RequestTooLarge")
    assert stage.everything() == before


@pytest.mark.few(12)
@pytest.mark.parametrize("call", WITH_BODY, ids=str)
def test_a_gzipped_body_is_inflated_up_to_its_limit_and_no_further(
    stage: Stage, call: Call
) -> None:
    before = stage.everything()
    path = call.path(names_for(stage, call))

    def told(body: bytes, coding: str = "gzip", content_type: str = BINARY) -> tuple[int, str]:
        headers = {"content-encoding": coding}
        reply = stage.owner.raw(call.method, path, body, content_type=content_type, headers=headers)
        return reply.status, str(reply.code)

    small = gzip.compress(b'{"x": 1}')
    assert told(small) == told(small, "GZIP", "application/json") == (400, "InvalidParameter")
    assert told(small, content_type="text/html") == (415, "UnsupportedMediaType")
    assert told(small, "br") == (415, "UnsupportedMediaType")
    assert told(b'{"x": 1}', content_type="application/json") == (415, "UnsupportedMediaType")
    assert told(b'{"x": 1}') == told(small[:-1]) == told(small * 2) == (400, "MalformedRequest")
    assert told(bomb()) == (413, "RequestTooLarge")
    assert stage.everything() == before


@pytest.mark.few(24)
@pytest.mark.parametrize("call", NAMING, ids=str)
def test_a_name_of_another_form_is_refused_by_name(stage: Stage, call: Call) -> None:
    before = stage.everything()
    for name in BAD_NAMES.keys() & set(call.names):
        for odd in BAD_NAMES[name]:
            names = {**names_for(stage, call), name: odd}
            reply = stage.make(stage.owner, call, names)
            if "%2F" in odd and str(call) in MANAGED:
                # The API decodes the path before `manage` takes it apart.
                assert reply.status in (404, 405), (name, odd, reply.text)
                continue
            assert (reply.status, reply.code) == (400, "InvalidParameter"), (name, odd, reply.text)
            assert reply.json["parameter"] == name, odd
    assert stage.everything() == before


@pytest.mark.few(24)
@pytest.mark.parametrize("call", [call for call in CALLS if "{" in call.route], ids=str)
def test_no_name_makes_a_call_fail(stage: Stage, call: Call) -> None:
    names = {**names_for(stage, call), "queue": "none", "topic": "none"}
    for name in names:
        for odd in NAMES:
            if f"{{{name}}}" in call.route:
                reply = stage.make(stage.owner, call, {**names, name: odd})
                check(reply, name, odd)
                assert reply.status >= 400, (name, odd)


@pytest.mark.few(12)
@pytest.mark.parametrize("call", [call for call in CALLS if call.method == "GET"], ids=str)
def test_no_query_makes_a_call_fail(stage: Stage, call: Call) -> None:
    path = call.path(names_for(stage, call))
    known = [each["name"] for each in call.described["parameters"] if each["in"] == "query"]
    for name in [*known, "other", "", "%00", "%ff"]:
        for value in [*NAMES, "", "0", "-1", "1e3", "+1", "1", "٣", "2026-11-20T08:00:00Z", "0000"]:
            check(stage.owner.get(path, f"{name}={value}"), name, value)
        check(stage.owner.get(path, f"{name}=1&{name}=2&{name}"), name)
        check(stage.owner.get(path, name), name)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_an_unknown_parameter_of_a_query_is_refused_and_nothing_done(
    stage: Stage, call: Call
) -> None:
    before = stage.everything()
    path = call.path(names_for(stage, call))

    reply = stage.owner.call(call.method, path, stage.body(call), "force=true")

    assert (reply.status, reply.code) == (400, "InvalidParameter"), reply.text
    assert reply.json["parameter"] == "force"
    assert stage.everything() == before


@pytest.mark.parametrize("path", sorted(DOCUMENT["paths"]))
def test_a_method_missing_at_a_route_is_refused_with_the_allowed_ones(
    stage: Stage, path: str
) -> None:
    before = stage.everything()
    has = {method.upper() for method in DOCUMENT["paths"][path]}
    call = next(call for call in CALLS if call.route == path)
    for method in set(METHODS) - has:
        for client in (stage.owner, Client(stage.world, "")):
            reply = client.call(method, call.path(names_for(stage, call)))
            assert (reply.status, reply.code) == (405, "MethodNotAllowed"), method
            assert set(reply.headers["Allow"].split(", ")) == has
    assert stage.everything() == before


@pytest.mark.parametrize(
    "path",
    [
        "//", "/nothing", "/queues/", "/queues//", "//queues", "/queues/orders/",
        "/queues//messages", "/queues/orders//messages", "/queues/orders/messages/",
        "/queues/orders/messages/receive/", "/Queues/orders",
        "/queues/../keys", "/topics/news/subscriptions//confirm", "/docs/api/", "/docs/a/b",
        "/local", "/%71ueues//", "/" + "x" * 4_000, "/" + "/".join("x" * 200), "/\x00", "/%00/%ff",
    ],
)  # fmt: skip
def test_an_unknown_route_is_not_found(stage: Stage, path: str) -> None:
    before = stage.everything()
    for method in METHODS:
        reply = stage.owner.call(method, path, {} if method in ("PUT", "POST", "PATCH") else None)
        assert (reply.status, reply.code) == (404, "NotFound"), (method, reply.text)
    assert stage.everything() == before


@pytest.mark.parametrize(
    "header",
    [
        "\x00", "é", "Bearer \ud800:x", "Bearer a:é", "bearer a b:c", "Bearer :", "Bearer a:b:c",
        "B" * 9_000,
    ],
)  # fmt: skip
def test_no_header_makes_a_call_fail(stage: Stage, header: str) -> None:
    reply = Client(stage.world, header).get("/queues")

    assert (reply.status, reply.code) == (401, "Unauthenticated")
