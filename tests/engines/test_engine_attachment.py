"""The engine behind botocore and PynamoDB: answers and errors as from Amazon, and no network."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.loaders import Loader
from pynamodb.attributes import BinaryAttribute, ListAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.connection import Connection
from pynamodb.exceptions import DoesNotExist, TransactWriteError, UpdateError
from pynamodb.models import Model
from pynamodb.transactions import TransactGet, TransactWrite

from cirrusmq_local.engine import Engine, TableSpec, attach, attach_globally
from cirrusmq_local.engine.bodies import BODY_TYPES

KEY = {"pk": {"S": "p"}, "sk": {"S": "1"}}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")


@pytest.fixture
def memory(clock: Any) -> Iterator[Engine]:
    engine = Engine(None, [TableSpec("Messages", stream=True)], now_ms=clock)
    yield engine
    engine.close()


@pytest.fixture
def client(memory: Engine) -> Any:
    client = botocore.session.get_session().create_client("dynamodb", region_name="us-east-1")
    attach(memory, client)
    return client


def test_a_client_gets_its_put_item_binary_included(client: Any) -> None:
    item = {**KEY, "raw": {"B": b"\x00\xff"}, "set": {"BS": [b"a", b"b"]}, "n": {"N": "1.50"}}
    client.put_item(TableName="Messages", Item=item)
    answer = client.get_item(TableName="Messages", Key=KEY)
    assert answer["Item"] == {**item, "n": {"N": "1.5"}}
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert answer["ResponseMetadata"]["RequestId"]


def test_a_failed_condition_is_botocores_own_exception(client: Any) -> None:
    client.put_item(TableName="Messages", Item={**KEY, "raw": {"B": b"\xff"}})
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as caught:
        client.put_item(
            TableName="Messages",
            Item=KEY,
            ConditionExpression="attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    response = caught.value.response
    assert response["Error"] == {
        "Code": "ConditionalCheckFailedException",
        "Message": "The conditional request failed",
    }
    assert response["message"] == "The conditional request failed"
    assert response["Item"] == {**KEY, "raw": {"B": b"\xff"}}
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_a_cancelled_transaction_shows_its_reasons(client: Any) -> None:
    check = {"TableName": "Messages", "Key": KEY, "ConditionExpression": "attribute_exists(pk)"}
    with pytest.raises(client.exceptions.TransactionCanceledException) as caught:
        client.transact_write_items(TransactItems=[{"ConditionCheck": check}])
    assert caught.value.response["CancellationReasons"] == [
        {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
    ]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("call", "request_", "code"),
    [
        ("get_item", {"TableName": "Elsewhere", "Key": KEY}, "ResourceNotFoundException"),
        ("get_item", {"TableName": "Messages", "Key": {}}, "ValidationException"),
        ("list_tables", {}, "NotSupportedByEmbeddedEngine"),
        ("scan", {"TableName": "Messages", "AttributesToGet": ["a"]}, "NotSupportedByEmbedded"),
    ],
)
def test_every_other_refusal_is_a_client_error(
    client: Any, call: str, request_: dict[str, Any], code: str
) -> None:
    with pytest.raises(ClientError, match=code):
        getattr(client, call)(**request_)


def test_a_body_of_the_wrong_shape_is_a_client_error(memory: Engine) -> None:
    from botocore.config import Config

    session = botocore.session.get_session()
    client = session.create_client(
        "dynamodb", region_name="us-east-1", config=Config(parameter_validation=False)
    )
    attach(memory, client)
    with pytest.raises(ClientError, match="SerializationException"):
        client.put_item(TableName="Messages", Item={**KEY, "n": {"N": 1}})


def test_a_description_has_a_time(client: Any) -> None:
    table = client.describe_table(TableName="Messages")["Table"]
    assert isinstance(table["CreationDateTime"], datetime)


def test_sessions_can_be_attached_and_detached(memory: Engine) -> None:
    for session in (botocore.session.get_session(), boto3.session.Session()):
        detach = attach(memory, session)
        make: Any = getattr(session, "create_client", None) or session.client
        client = make("dynamodb", region_name="us-east-1")
        client.put_item(TableName="Messages", Item=KEY)
        detach()
        client = make("dynamodb", region_name="us-east-1")
        client.meta.events.register("before-send.dynamodb", _refuse_to_send)
        with pytest.raises(RuntimeError, match="about to be sent"):
            client.put_item(TableName="Messages", Item=KEY)


def _refuse_to_send(**_: Any) -> None:
    raise RuntimeError("about to be sent")


def test_no_credentials_are_needed(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    # Without this, botocore asks the network for credentials when a client is made.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    client = botocore.session.get_session().create_client("dynamodb", region_name="us-east-1")
    attach(memory, client)
    assert "Item" not in client.get_item(TableName="Messages", Key=KEY)


def test_a_body_knows_every_member_of_amazons_model() -> None:
    """A member that the body's type did not know would be dropped before anyone could refuse it."""
    model = Loader().load_service_model("dynamodb", "service-2")
    for operation, body in BODY_TYPES.items():
        shape = model["operations"][operation]["input"]["shape"]
        members = set(model["shapes"][shape]["members"])
        assert members <= set(body.__annotations__), operation


class Message(Model):  # type: ignore[misc, unused-ignore]
    """A model as the product has them."""

    class Meta:
        table_name = "Messages"
        region = "us-east-1"

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    n = NumberAttribute(default=0)
    nonces = ListAttribute[Any](null=True)
    body = BinaryAttribute(null=True, legacy_encoding=False)


@pytest.fixture
def everywhere(memory: Engine) -> Iterator[Engine]:
    detach = attach_globally(memory)
    yield memory
    detach()


def test_models_of_pynamodb_work_on_a_global_engine(everywhere: Engine) -> None:
    Message("p", "1", nonces=[1, b"\xff", "x"], body=b"\x00\xff").save()
    message = Message.get("p", "1")
    assert (message.body, message.nonces[1]) == (b"\x00\xff", b"\xff")
    message.update(actions=[Message.n.add(3), Message.nonces[0].set(7)], condition=Message.n == 0)
    assert Message.get("p", "1", consistent_read=True).nonces[0] == 7
    with pytest.raises(UpdateError) as caught:
        message.update(actions=[Message.n.set(0)], condition=Message.n == 0)
    assert caught.value.cause_response_code == "ConditionalCheckFailedException"
    with Message.batch_write() as batch:
        for number in range(60):
            batch.save(Message("q", f"{number:02d}"))
    assert [m.sk for m in Message.query("q", Message.sk.startswith("1"), page_size=3)] == [
        f"1{digit}" for digit in range(10)
    ]
    assert Message.count("q") == 60
    assert len(list(Message.batch_get([("q", "01"), ("q", "02"), ("q", "xx")]))) == 2
    message.delete()
    with pytest.raises(DoesNotExist):
        Message.get("p", "1")
    assert Message.exists()


def test_transactions_of_pynamodb_work_on_a_global_engine(everywhere: Engine) -> None:
    connection = Connection(region="us-east-1")
    with TransactWrite(connection=connection) as transaction:
        transaction.save(Message("p", "1", n=1))
        transaction.save(Message("p", "2", n=2))
    with TransactGet(connection=connection) as transaction:
        future = transaction.get(Message, "p", "2")
    assert future.get().n == 2
    cancelled = TransactWrite(connection=connection)
    cancelled.delete(Message("p", "1"))
    cancelled.condition_check(Message, "p", "2", condition=Message.n == 5)
    with pytest.raises(TransactWriteError) as caught:
        cancelled.__exit__(None, None, None)  # type: ignore[no-untyped-call]
    # PynamoDB sends checks first.
    check, delete = caught.value.cancellation_reasons
    assert check is not None
    assert check.code == "ConditionalCheckFailed"
    assert delete is None


def test_a_later_global_engine_takes_the_place_of_an_earlier_one(
    everywhere: Engine, clock: Any
) -> None:
    Message("p", "1").save()
    other = Engine(None, [TableSpec("Messages")], now_ms=clock)
    detach = attach_globally(other)
    assert Message.count("p") == 0
    detach()
    other.close()


def test_a_connection_of_pynamodb_can_be_attached_alone(memory: Engine) -> None:
    connection = Connection(region="us-east-1")
    attach(memory, connection)
    connection.dispatch("PutItem", {"TableName": "Messages", "Item": KEY})
    assert memory.stream_position("Messages") == 1
