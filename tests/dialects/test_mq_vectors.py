"""Wire facts of RocketMQ's HTTP protocol as vectors: signatures, documents, errors."""

from __future__ import annotations

import pytest
from tests.dialects.contract_errors import CONTRACT_ERRORS

from cirrusmq.base import errors as contract
from cirrusmq.model.message import Message
from cirrusmq_dialects.aliyun import contents, errors, reading, signature, writing
from cirrusmq_dialects.aliyun.errors import HandleErrors, MqError
from cirrusmq_dialects.calling import Call
from cirrusmq_dialects.signing import sign

DATE = "Fri, 20 Nov 2026 11:55:27 GMT"
PATH = "/topics/T1/messages"
ACK = (
    b'<?xml version="1.0" encoding="UTF-8"?><ReceiptHandles xmlns="http://mq.aliyuncs.com/doc/v1/">'
    b"<ReceiptHandle><![CDATA[bad]]></ReceiptHandle></ReceiptHandles>"
)
ACK_MD5 = "OThkNDA5NzUwZDdmZDEzZGY3Y2FhZjBiNzY3ZThiYzY="


def made_call(method: str, query: str, headers: dict[str, str], body: bytes = b"") -> Call:
    return Call(
        core=None,  # type: ignore[arg-type]
        id="1",
        method=method,
        path=PATH,
        query=query,
        headers={"x-mq-version": "2015-06-06", "date": DATE, **headers},
        body=body,
        source=None,
        left_seconds=lambda: 29.0,
    )


POST = made_call("POST", "ns=MQ_INST_1", {"content-type": "text/xml;charset=UTF-8"}, b"<x/>")
GET_QUERY = "consumer=GID_1&numOfMessages=3&ns=MQ_INST_1&waitseconds=3&tag=TagA%7C%7CTagB"
DELETE = made_call(
    "DELETE",
    "consumer=GID_1&ns=I",
    {
        "content-md5": ACK_MD5,
        "content-type": "text/xml;charset=utf-8",
        "date": "Sat, 21 Nov 2026 19:37:31 GMT",
    },
    ACK,
)


@pytest.mark.parametrize(
    ("call", "made"),
    [
        (POST, "RG8wW279fyTwrH+97fC44VliGOw="),
        (made_call("GET", GET_QUERY, {}), "4QF9Ah1H4NDrfF86GlMHTo9P/q0="),
        (DELETE, "cclJBTUAFCkkYc+PHDKGQB1Rr8c="),
        # An API adds a Content-Type to a call without a body.
        (
            made_call("GET", GET_QUERY, {"content-type": "application/octet-stream"}),
            "4QF9Ah1H4NDrfF86GlMHTo9P/q0=",
        ),
    ],
)
def test_the_signature_matches_the_service(call: Call, made: str) -> None:
    assert signature.is_signed_with("secretkey", made, call)
    assert not signature.is_signed_with("other", made, call)


def test_a_content_type_of_a_call_with_a_body_is_part_of_it() -> None:
    made = sign("s", signature.text_to_sign("POST", PATH, "", {"date": DATE}, ""), "sha1")
    call = made_call("POST", "", {"content-type": "text/xml"}, b"<x/>")
    assert not signature.is_signed_with("s", made, call)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "MissingAuthorizationHeader"),
        ({"authorization": "MQ "}, "InvalidAuthorizationHeader"),
        ({"authorization": "MQ x"}, "InvalidAuthorizationHeader"),
        ({"authorization": "MQ x:"}, "InvalidAuthorizationHeader"),
        ({"authorization": "MNS x:y="}, "InvalidAuthorizationHeader"),
        ({"authorization": "MQ a b:y="}, "InvalidAuthorizationHeader"),
    ],
)
def test_an_invalid_authorization_is_refused(headers: dict[str, str], code: str) -> None:
    with pytest.raises(MqError) as refused:
        signature.read(headers)
    assert refused.value.code == code
    assert signature.read({"authorization": "MQ id:c2ln"}) == ("id", "c2ln")


@pytest.mark.parametrize(
    ("date", "code"),
    [
        ("", "MissingDateHeader"),
        ("2026-11-20", "InvalidDateHeader"),
        ("Fri, 20 Nov 2026 11:55:27", "InvalidDateHeader"),
        ("Fri, 32 Nov 2026 11:55:27 GMT", "InvalidDateHeader"),
        ("Fri, 20 Xxx 2026 11:55:27 GMT", "InvalidDateHeader"),
        ("Fri, 20 Nov 2026 25:55:27 GMT", "InvalidDateHeader"),
        ("Fri, 20 Nov 0000 11:55:27 GMT", "InvalidDateHeader"),
    ],
)
def test_an_invalid_date_is_refused(date: str, code: str) -> None:
    with pytest.raises(MqError) as refused:
        signature.read_date({"date": date})
    assert refused.value.code == code
    assert signature.read_date({"date": DATE}) == 1_795_175_727


def test_a_digest_is_of_the_bytes_or_of_their_hexadecimal_digits() -> None:
    reading.check_digest(DELETE)
    reading.check_digest(made_call("DELETE", "", {"content-md5": "mNQJdQ1/0T33yq8Ldn6Lxg=="}, ACK))
    reading.check_digest(made_call("DELETE", "", {}, ACK))
    for given in ("x", "ü", ACK_MD5[:-2], "mNQJdQ1/0T33yq8Ldn6Lxh=="):
        with pytest.raises(MqError, match="Content-MD5"):
            reading.check_digest(made_call("DELETE", "", {"content-md5": given}, ACK))


def test_documents_are_read_however_an_sdk_writes_them() -> None:
    python = (
        b'<?xml version="1.0" encoding="utf-8"?><Message xmlns="http://mq.aliyuncs.com/doc/v1/">'
        b"<MessageBody>a &amp; &#13;\xe4\xb8\xad</MessageBody><Properties>a:1|KEYS:k1|</Properties>"
        b"<MessageTag>TagA</MessageTag></Message>"
    )
    assert reading.read_message(python) == {
        "MessageBody": "a & \r中",
        "Properties": "a:1|KEYS:k1|",
        "MessageTag": "TagA",
    }
    node = (
        b"<m:Message xmlns:m='x'>\n <m:MessageBody><![CDATA[a]]><![CDATA[<b>]]></m:MessageBody>"
        b"<Other><Deep>x</Deep></Other></m:Message>"
    )
    assert reading.read_message(node)["MessageBody"] == "a<b>"
    assert reading.read_handles(ACK) == ["bad"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        b"<Message>",
        b"<Message/><Message/>",
        b"<Other/>",
        b"<Message>&x;</Message>",
        b"<!DOCTYPE Message [<!ENTITY x 'y'>]><Message>&x;</Message>",
        b"<!DOCTYPE Message><Message/>",
        b"<Message>\xff</Message>",
        b"<Message>\0</Message>",
        b"<Message>&#0;</Message>",
        b"<Message><MessageBody><![CDATA[a]]>]]></MessageBody></Message>",
        b"<Message>" * 65 + b"</Message>" * 65,
        b"<Message>" + b" " * 1_048_576 + b"</Message>",
        b"<?xml version='1.0' encoding='utf-16'?><Message>\xff</Message>",
    ],
)
def test_an_invalid_document_is_refused(body: bytes) -> None:
    with pytest.raises(MqError) as refused:
        reading.read_message(body)
    assert refused.value.code == "MalformedXML"


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        ("", "MissingReceiptHandle"),
        ("<ReceiptHandle/>", "MissingReceiptHandle"),
        ("<Other>x</Other>", "MissingReceiptHandle"),
        ("<ReceiptHandle>x</ReceiptHandle>" * 17, "InvalidArgument"),
    ],
)
def test_a_list_of_handles_has_1_to_16(inner: str, code: str) -> None:
    with pytest.raises(MqError) as refused:
        reading.read_handles(f"<ReceiptHandles>{inner}</ReceiptHandles>".encode())
    assert refused.value.code == code


def test_properties_come_back_as_they_were_given() -> None:
    fields = {"MessageBody": "x", "Properties": "a-b.c:1|KEYS:k 1|__SHARDINGKEY:g|中:文"}
    draft = contents.Draft(fields)
    assert draft.native["group"] == "g"
    kept = Message(body="x", attributes=draft.native["attributes"], group="g")
    shown = contents.shown(kept)["Properties"]
    assert sorted(shown.strip("|").split("|")) == sorted(fields["Properties"].split("|"))


@pytest.mark.parametrize(
    ("body", "encoded"), [("a\x01", "YQE="), (b"\0\xff", "AP8="), ("\ufffe", "77++")]
)
def test_a_body_unfit_for_xml_is_base64(body: str | bytes, encoded: str) -> None:
    shown = contents.shown(Message(body=body))
    assert (shown["MessageBody"], shown["Properties"]) == (encoded, "bodyEncoding:base64|")


@pytest.mark.parametrize("kind", CONTRACT_ERRORS, ids=lambda kind: kind.__name__)
def test_every_fault_of_the_contract_has_a_code_and_a_status(
    kind: type[contract.CirrusMQError],
) -> None:
    error = kind.__new__(kind)
    error.detail = "why"
    shown = errors.of_contract(error)
    assert shown.message.endswith("why")
    assert (shown.status == 500) == (kind is contract.Unavailable)
    assert (shown.status == 403) == (kind in (contract.Unauthenticated, contract.Forbidden))
    assert errors.text_of("MessageNotExist") == "Message not exist."


def test_answers_have_the_parts_read_by_the_sdks() -> None:
    refused = writing.write_error(MqError("MessageNotExist"), "h:1", "id")
    assert refused.status == 404
    assert refused.headers["x-mq-request-id"] == "id"
    assert refused.headers["Content-Type"] == "text/xml;charset=utf-8"
    for part in (b"<Code>MessageNotExist</Code>", b"<RequestId>id</RequestId>", b"http://h:1<"):
        assert part in refused.body
    some = writing.handle_errors(HandleErrors({"<h>": "ReceiptHandleError"}), "id")
    assert b"<ReceiptHandle>&lt;h&gt;</ReceiptHandle></Error></Errors>" in some.body
    assert writing.done("id").body == b""
