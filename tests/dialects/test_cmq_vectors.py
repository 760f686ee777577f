"""CMQ's wire facts as vectors: signatures, forms, errors."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from tests.dialects.contract_errors import CONTRACT_ERRORS

from cirrusmq.base import errors as contract
from cirrusmq_dialects.calling import Call
from cirrusmq_dialects.cmq import calls, errors, reading, signature
from cirrusmq_dialects.cmq.errors import CmqError

HOST = "127.0.0.1:8081"
PLAIN = {
    "Action": "SendMessage",
    "Nonce": "1",
    "RequestClient": "SDK_Python_1.3",
    "SecretId": "AKIDtest",
    "SignatureMethod": "HmacSHA1",
    "Timestamp": "1795175726",
    "delaySeconds": "2",
    "msgBody": "hello 世界&a_b=c",
    "queueName": "q1",
}
AT = {**PLAIN, "msgBody": "@x"}
DOCUMENTED = {
    **PLAIN,
    "Nonce": "2889712707386595659",
    "SecretId": "AKIDPcYDclDJCn8D0Xypa4f3pKYUCVYLn3zT",
    "Timestamp": "1534154812",
    "clientRequestId": "1231231231",
    "delaySeconds": "0",
    "msgBody": "msg",
    "queueName": "test1",
}


def signed(params: dict[str, str], made: str, secret: str = "secretkey", **call: str) -> bool:
    given = {**params, "Signature": made}
    return signature.is_signed_with(
        secret, call.get("method", "POST"), call.get("host", HOST), given
    )


def test_the_signature_matches_the_documentation() -> None:
    secret, host = "pPgfLipfEXZ7VcRzhAMIyPaU7UbQyFFx", "cmq-queue-gz.api.tencentyun.com"
    assert signed(DOCUMENTED, "C16WEtEXsD5v5tnaUMLAbZewXhI=", secret, host=host)


def test_the_signature_matches_the_sdk() -> None:
    assert signed(PLAIN, "i22mgUJolEqqvBh65APAxqxMxFA=")
    sha256 = {**PLAIN, "SignatureMethod": "HmacSHA256"}
    assert signed(sha256, "Vv/mCHdQfQv7m1b4bjsLE5iSsqDyVV3+Ja6jNMJCuZw=", method="GET")


def test_a_body_beginning_with_an_at_may_be_left_out_of_it_on_post_alone() -> None:
    without, post, get = (
        "fra2YVrQNwHoCdfGuxEOKly9jCs=",
        "GxmjOYBSpXjcbP/VIKZJ2E0K7ME=",
        "EmukVgQRR+7X8+2gBozglssWZzA=",
    )
    assert signed(AT, without)
    assert signed(AT, post)
    assert signed(AT, get, method="GET")
    assert not signed(AT, without, method="GET")
    assert not signed(AT, get)


def form(method: str, query: str, body: bytes) -> dict[str, str]:
    """The parameters of a call."""
    call = Call(
        core=None,  # type: ignore[arg-type]
        id="1",
        method=method,
        path=signature.PATH,
        query=query,
        headers={},
        body=body,
        source=None,
        left_seconds=lambda: 29.0,
    )
    return reading.read_form(call)


def test_parameters_are_in_the_query_of_a_get_or_else_in_its_body() -> None:
    text = urlencode(PLAIN)
    assert form("GET", text, b"") == PLAIN
    assert form("GET", "", text.encode()) == PLAIN
    assert form("POST", "", text.encode()) == PLAIN
    assert form("POST", "a=b", b"c=&d=+%2B") == {"c": "", "d": " +"}


@pytest.mark.parametrize(
    ("method", "body", "module"),
    [
        ("PUT", b"a=b", 10410),
        ("POST", b"a=1&a=1", 10330),
        ("POST", b"a=%ff", 10420),
        ("POST", b"\xff=1", 10420),
        ("POST", b"a=" + b"x" * 1_048_576, 10420),
        ("POST", b"&".join(b"a%d=1" % each for each in range(300)), 10420),
    ],
)
def test_an_invalid_form_is_refused(method: str, body: bytes, module: int) -> None:
    with pytest.raises(CmqError) as refused:
        form(method, "", body)
    assert (refused.value.code, refused.value.module) == (4000, module)


def test_lists_begin_with_0_or_1() -> None:
    assert reading.numbered({"a.0": "x", "a.1": "y", "ab.1": "z"}, "a") == ["x", "y"]
    many = {f"a.{each}": str(each) for each in range(1, 17)}
    assert reading.numbered(many, "a") == [str(each) for each in range(1, 17)]
    assert reading.numbered({}, "a") == []


@pytest.mark.parametrize(
    ("names", "module"),
    [
        (["a.0", "a.2"], 10380),
        (["a.2"], 10380),
        (["a.1", "a.01"], 10310),
        (["a.x"], 10310),
        (["a."], 10310),
        ([f"a.{each}" for each in range(17)], 10370),
    ],
)
def test_lists_with_gaps_or_odd_names_are_refused(names: list[str], module: int) -> None:
    with pytest.raises(CmqError) as refused:
        reading.numbered(dict.fromkeys(names, "x"), "a")
    assert (refused.value.code, refused.value.module) == (4000, module)


@pytest.mark.parametrize("kind", CONTRACT_ERRORS, ids=lambda kind: kind.__name__)
def test_every_fault_of_the_contract_has_a_code_and_a_module(
    kind: type[contract.CirrusMQError],
) -> None:
    error = kind.__new__(kind)
    error.detail = "why"
    for action in [*calls.ACTIONS, ""]:
        shown = errors.of_contract(error, action)
        assert shown.message == f"({shown.module}){shown.text}"
        assert shown.text.endswith(": why")
        assert (shown.code == 6000) == (kind is contract.Unavailable)
        assert (shown.code == 4100) == (kind in (contract.Unauthenticated, contract.Forbidden))


@pytest.mark.parametrize(
    ("parameter", "module", "named"),
    [
        ("messages[3].tags[2]", 10350, "msgTag"),
        ("messages[0].delay_seconds", 10350, "delaySeconds"),
        ("rewind_seconds", 10700, "rewindSeconds"),
        ("dead_letter.queue", 10740, "nest"),
        ("something", 10350, "something"),
    ],
)
def test_a_parameter_is_named_as_cmq_names_it(parameter: str, module: int, named: str) -> None:
    shown = errors.of_contract(contract.InvalidParameter(parameter, "is odd"), "SendMessage")
    assert (shown.code, shown.module) == (4000, module)
    assert named in shown.text


def test_every_action_is_a_function() -> None:
    for action in calls.ACTIONS:
        assert callable(calls.function_of(action))
