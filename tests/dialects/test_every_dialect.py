"""Promises of every dialect alike: its keys, its rate, its failures, its logs, and its bill."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlencode

import pytest
from tests.dialects import test_cmq_refusals as cmq
from tests.dialects import test_mq_refusals as mq
from tests.dialects import test_sqs_refusals as sqs
from tests.dialects.conftest import URL, Key, call, change_settings
from tests.dialects.emq_wire import Emq, headers_of, message, read

from cirrusmq.base.errors import Unavailable
from cirrusmq_lambda import audit
from cirrusmq_local.testing import Client, Reply, World

ORDERS = f"{URL}/shop/orders"
PULL = {"protocol": "pull"}
WORD = "a secret word"
"""In the body of each send: no log may have it."""


def send_by_sqs(world: World, key: Key) -> Reply:
    return sqs.act(world, key, "SendMessage", {"QueueUrl": ORDERS, "MessageBody": WORD})


def code_of_sqs(reply: Reply) -> str:
    if reply.status == 200:
        return ""
    told, _, fault = reply.headers["x-amzn-query-error"].partition(";")
    assert fault == ("Sender" if reply.status < 500 else "Receiver")
    return f"{reply.status} {told}"


def send_by_cmq(world: World, key: Key, at: int = 0) -> Reply:
    params = cmq.params_of(key, "SendMessage", queueName="orders", msgBody=WORD)
    params["Timestamp"] = str(at or int(time.time()))
    form = urlencode(cmq.sign(key, params)).encode()
    return call(world, "POST", URL + cmq.PATH, {}, form)


def code_of_cmq(reply: Reply) -> str:
    answer = cmq.told(reply)
    return "/".join(map(str, cmq.refused(answer))) if answer["code"] else ""


def send_by_mq(world: World, key: Key, at: int | None = None) -> Reply:
    return mq.send(world, mq.headers_of(key, *mq.CALLS[0], at=at), *mq.CALLS[0])


def code_of_mq(reply: Reply) -> str:
    told = mq.code(reply)
    return f"{reply.status} {told}" if told else ""


def send_by_emq(world: World, key: Key, at: int | None = None) -> Reply:
    body = message("sendMessage", (1, "shop/orders"), (2, WORD))
    headers = headers_of(key, "/v1/api/message", body, at)
    return call(world, "POST", f"{URL}/v1/api/message?id=0", headers, body)


def code_of_emq(reply: Reply) -> str:
    found = read(reply.text.encode("utf-8", "surrogateescape"))[2]
    return str(found[1][1]) if 1 in found else ""


class Dialect(NamedTuple):
    """How a dialect sends a message and makes a change, and the codes of its refusals."""

    send: Callable[..., Reply]
    """With the time of the signature, if a dialect signs by hand here."""
    code: Callable[[Reply], str]
    """The code of a refusal, behind its status if that varies; an empty text if all is done."""
    change: Callable[[World, Key], object]
    wrong_secret: str
    unknown_key: str
    throttled: str
    unavailable: str
    failed: str
    audited: tuple[str, str, str]
    """Route and resource of the change in the audit, and route of a call that is refused."""


DIALECTS = {
    "sqs": Dialect(
        send=send_by_sqs,
        code=code_of_sqs,
        change=lambda world, key: sqs.act(
            world, key, "CreateQueue", {"QueueName": "parts", "tags": {"a": WORD}}
        ),
        wrong_secret="403 SignatureDoesNotMatch",
        unknown_key="403 InvalidClientTokenId",
        throttled="400 RequestThrottled",
        unavailable="503 ServiceUnavailable",
        failed="500 InternalFailure",
        audited=("sqs CreateQueue", "parts", "sqs"),
    ),
    "cmq": Dialect(
        send=send_by_cmq,
        code=code_of_cmq,
        change=lambda world, key: cmq.act(world, key, "CreateQueue", queueName="parts"),
        wrong_secret="4100/10030",
        unknown_key="4100/10270",
        throttled="4420/10250",
        unavailable="6000/10050",
        failed="6000/10050",
        audited=("cmq CreateQueue", "parts", "cmq"),
    ),
    "aliyun": Dialect(
        send=send_by_mq,
        code=code_of_mq,
        change=lambda world, key: mq.act(world, key, *mq.CALLS[1]),
        wrong_secret="403 SignatureDoesNotMatch",
        unknown_key="403 InvalidAccessKeyId",
        throttled="400 QpsLimitExceeded",
        unavailable="500 InternalError",
        failed="500 InternalError",
        audited=("aliyun MakeGroup", "news", "aliyun"),
    ),
    "emq": Dialect(
        send=send_by_emq,
        code=code_of_emq,
        change=lambda world, key: Emq(world, key).queue("purgeQueue", (1, "shop/orders")),
        wrong_secret="13",
        unknown_key="13",
        throttled="20",
        unavailable="14",
        failed="14",
        audited=("emq purgeQueue", "shop/orders", "emq sendMessage"),
    ),
}
EXPIRED = {"cmq": "4100/10030", "aliyun": "408 TimeExpired", "emq": "13"}


@pytest.fixture(params=DIALECTS)
def name(request: pytest.FixtureRequest) -> str:
    """The name of a dialect."""
    return str(request.param)


@pytest.fixture
def dialect(name: str) -> Dialect:
    return DIALECTS[name]


@pytest.fixture(autouse=True)
def orders(shop: Client) -> None:
    """A queue, and a topic that has a reader."""
    reader = "/topics/news/subscriptions/reader"
    for path, given in {"/queues/orders": {}, "/topics/news": {}, reader: PULL}.items():
        assert shop.put(path, given).status == 201


def test_a_key_unable_to_sign_is_told(
    world: World, key: Key, shop: Client, dialect: Dialect
) -> None:
    wrong = Key(world, "shop")
    wrong.secret = "wrong"
    assert dialect.code(dialect.send(world, wrong)) == dialect.wrong_secret
    native = shop.post("/keys", {}).json
    wrong.id, wrong.secret = native["access_key_id"], native["secret"]
    assert dialect.code(dialect.send(world, wrong)) == dialect.unknown_key
    for unknown in ("AKIDnobody", "AKID" + "0" * 32, "K#1", "x" * 128):
        wrong.id, wrong.secret = unknown, key.secret
        assert dialect.code(dialect.send(world, wrong)) == dialect.unknown_key, unknown
    assert shop.get("/queues/orders").json["counts"]["active"] == 0


@pytest.mark.parametrize("name", EXPIRED)
@pytest.mark.parametrize(
    ("seconds", "is_good"), [(-910, False), (-890, True), (890, True), (910, False)]
)
def test_a_signature_is_good_for_15_minutes(
    world: World, key: Key, name: str, dialect: Dialect, seconds: int, is_good: bool
) -> None:
    reply = dialect.send(world, key, at=int(time.time()) + seconds)

    assert dialect.code(reply) == ("" if is_good else EXPIRED[name])


def test_a_dialect_left_out_of_a_deployment_is_not_found(
    world: World, key: Key, name: str, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIALECTS", ",".join(each for each in DIALECTS if each != name))

    reply = dialect.send(world, key)

    assert (reply.status, reply.headers.get("Content-Type")) == (404, "application/problem+json")


def test_an_account_over_its_rate_is_told_to_wait(world: World, key: Key, dialect: Dialect) -> None:
    change_settings(world, account_requests_per_second=2)

    assert {dialect.code(dialect.send(world, key)) for _ in range(20)} == {"", dialect.throttled}


@pytest.mark.parametrize("error", [Unavailable(), ZeroDivisionError()], ids=repr)
def test_a_failing_store_is_told_as_an_error_of_the_server(
    world: World, key: Key, dialect: Dialect, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dialect.code(dialect.send(world, key)) == ""

    def fail(*_: object, **__: object) -> None:
        raise error

    for name in ("write", "put_if_absent", "transact"):
        monkeypatch.setattr(type(world.core.store), name, fail)

    told = dialect.unavailable if isinstance(error, Unavailable) else dialect.failed
    assert dialect.code(dialect.send(world, key)) == told


def test_the_audit_has_changes_and_wrong_keys_and_no_log_has_a_body_or_a_secret(
    world: World, key: Key, dialect: Dialect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    route, resource, refused_route = dialect.audited
    dialect.change(world, key)
    assert dialect.code(dialect.send(world, key)) == ""
    wrong = Key(world, "shop")
    secret, wrong.secret = wrong.secret, "wrong"
    dialect.send(world, wrong)

    lines = [vars(each) for each in caplog.records if each.name == audit.SERVICE]
    told = ("route", "resource", "key_id", "code")
    assert [tuple(line[name] for name in told) for line in lines] == [
        (route, resource, key.id, "Ok"),
        (refused_route, "", wrong.id, dialect.wrong_secret.split()[-1]),
    ]
    ours = [each for each in caplog.records if not each.name.startswith("boto")]
    shown = repr([vars(each) for each in ours])
    for hidden in (key.secret, secret, WORD, "Signature=", "'Signature'"):
        assert hidden not in shown
