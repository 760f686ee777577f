"""SQS's wire facts as vectors: signatures, digests of attributes, names and errors."""

from __future__ import annotations

import pytest
from tests.dialects.contract_errors import CONTRACT_ERRORS

from cirrusmq.base import errors as contract
from cirrusmq.base import sdk_attributes
from cirrusmq.base.sdk_attributes import Typed
from cirrusmq_dialects import aws_signature as signature
from cirrusmq_dialects.router import dialect_of
from cirrusmq_dialects.sqs import contents, errors, names

BODY = b'{"QueueName": "q", "Attributes": {"VisibilityTimeout": "30"}, "tags": {"a": "b"}}'
SIGNATURE = "f57afa8217f881d893d16547f1bc6bcc98a5d312cf71e3fdbc3fceae7a52b36c"
HEADERS = {
    "authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261121/us-east-1/sqs/aws4_request,"
    " SignedHeaders=content-type;host;x-amz-date;x-amz-target;x-amzn-query-mode,"
    f" Signature={SIGNATURE}",
    "content-type": "application/x-amz-json-1.0",
    "host": "127.0.0.1:19090",
    "x-amz-date": "20261121T194227Z",
    "x-amz-target": "AmazonSQS.CreateQueue",
    "x-amzn-query-mode": "true",
}


def test_the_signature_matches_the_service() -> None:
    signed = signature.read(HEADERS)
    assert signed is not None
    text = signature.text_to_sign(signed, "POST", "/", "", HEADERS, BODY)
    assert signature.sign("secret", signed, text) == SIGNATURE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"),
        ("/sqs/", "/S/"),
        ("/20261121/", "/20261122/"),
        ("aws4_request", "aws5_request"),
        ("host;", ""),
        ("x-amz-date;", ""),
        ("content-type;", "content-type;content-type;"),
        ("content-type;", "content-type;x-not-sent;"),
        ("/us-east-1/", "//"),
        (SIGNATURE, SIGNATURE.upper()),
        (SIGNATURE, ""),
        ("Credential=", "Credentials="),
    ],
)
def test_an_incomplete_signature_is_read_as_none(old: str, new: str) -> None:
    assert (
        signature.read({**HEADERS, "authorization": HEADERS["authorization"].replace(old, new)})
        is None
    )


@pytest.mark.parametrize("time", ["", "20261121", "20261399T000000Z", "20261121T194227", "x" * 16])
def test_an_invalid_time_is_no_signature(time: str) -> None:
    assert signature.read({**HEADERS, "x-amz-date": time}) is None


def test_the_digest_of_attributes_matches_the_service() -> None:
    attributes = {"n-1.x": Typed("Number", "1"), "b": Typed("Binary", b"\0\1")}
    assert contents.attributes_md5(attributes) == "9826482dd098c680385bb6736547e946"
    assert contents.md5(b"hello") == "5d41402abc4b2a76b9719d911017c592"


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"plain": Typed("String", "a"), "bytes": Typed("Binary", b"\0")},
        {
            "n-1.x": Typed("Number", "1"),
            "1st": Typed("String.json", "{}"),
            "TAGS": Typed("String", "t"),
        },
        {"ünï": Typed("Binary.png", b"\x89"), "a_b": Typed("Number.int", "7")},
    ],
)
def test_attributes_come_back_with_their_names_and_types(attributes: dict[str, Typed]) -> None:
    written = sdk_attributes.write(attributes)
    assert sdk_attributes.read(written) == attributes
    for name in written:
        assert name.isascii()
        assert name.replace("$", "_").isidentifier()
        assert name != "TAGS"


def test_attributes_of_native_senders_have_the_plain_types() -> None:
    shown = sdk_attributes.read({"region": "eu", "raw": b"\1", "$trace": "own"})
    assert shown == {"region": Typed("String", "eu"), "raw": Typed("Binary", b"\1")}


@pytest.mark.parametrize(
    ("url", "ref"),
    [
        ("http://127.0.0.1:8081/shop/orders", "orders"),
        ("https://sqs.eu-central-1.amazonaws.com/123456789012/orders", "orders"),
        ("https://mq.example.com/shop/orders.fifo", "orders.fifo"),
        ("http://h/other/orders", "other:orders"),
        ("orders", "orders"),
    ],
)
def test_a_url_names_a_queue_by_its_last_parts(url: str, ref: str) -> None:
    assert names.ref_in_url(url, "shop") == ref


@pytest.mark.parametrize("url", ["", "/", "http://h/shop/a.b", "h/-x/orders"])
def test_a_url_of_no_queue_is_refused_in_its_own_words(url: str) -> None:
    with pytest.raises(errors.SqsError) as refused:
        names.ref_in_url(url, "shop")
    assert refused.value.shape in ("QueueDoesNotExist", "InvalidAddress")


@pytest.mark.parametrize("kind", CONTRACT_ERRORS, ids=lambda kind: kind.__name__)
def test_every_fault_of_the_contract_has_a_shape_and_a_code(
    kind: type[contract.CirrusMQError],
) -> None:
    error = kind.__new__(kind)
    error.detail = "why"
    shown = errors.of_contract(error)
    assert shown.message
    assert shown.query_code
    space, _, name = shown.type.partition("#")
    assert name == shown.shape or space == "com.amazon.coral.service"
    assert (shown.status == 503) == (kind is contract.Unavailable)
    of_status = (contract.Unauthenticated, contract.Forbidden, contract.LimitExceeded)
    assert (shown.status == 403) == (kind in of_status)


@pytest.mark.parametrize(
    ("method", "path", "headers", "name"),
    [
        ("POST", "/", {"x-amz-target": "AmazonSQS.SendMessage"}, "sqs"),
        ("POST", "/", {"x-amz-target": "DynamoDB_20120810.GetItem"}, None),
        ("GET", "/", {"x-amz-target": "AmazonSQS.SendMessage"}, None),
        ("POST", "/v2/index.php", {"content-type": "application/x-www-form-urlencoded"}, "cmq"),
        ("GET", "/v2/index.php", {}, "cmq"),
        ("POST", "/topics/t/messages", {"content-type": "text/xml"}, "aliyun"),
        ("DELETE", "/topics/t/messages", {}, "aliyun"),
        ("GET", "/topics/t/messages/1", {}, None),
        (
            "POST",
            "/shop/orders",
            {
                "content-type": "application/x-www-form-urlencoded; charset=utf-8",
                "authorization": "AWS4-HMAC-SHA256 Credential=x",
            },
            "sqs",
        ),
    ],
)
def test_a_call_is_in_one_dialect_or_in_none(
    method: str, path: str, headers: dict[str, str], name: str | None
) -> None:
    assert dialect_of(method, path, headers) == name
