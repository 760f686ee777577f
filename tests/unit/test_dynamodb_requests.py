"""Requests of the store's client, compared with requests that botocore makes by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.session import Session

from cirrusmq.wiring.bootstrap import make_dynamodb
from cirrusmq.wiring.dynamodb_requests import PreparedRequests

REGION = "eu-west-1"
KEY = {"pk": {"S": "Q#1#0"}, "sk": {"S": "é\u2028"}}
ITEM = {
    **KEY,
    "b": {"B": b"\x00\xff body"},
    "k": {"L": [{"B": b""}, {"B": b"n"}]},
    "u": {"BOOL": True},
}
CALLS: dict[str, dict[str, Any]] = {
    "get_item": {"TableName": "t", "Key": KEY, "ConsistentRead": True},
    "put_item": {"TableName": "t", "Item": ITEM, "ConditionExpression": "a = b"},
    "update_item": {"TableName": "t", "Key": KEY, "ExpressionAttributeValues": {":a": {"N": "1"}}},
    "delete_item": {"TableName": "t", "Key": KEY},
    "query": {"TableName": "t", "Limit": 5, "ScanIndexForward": False, "ExclusiveStartKey": KEY},
    "batch_get_item": {"RequestItems": {"t": {"Keys": [KEY, KEY]}}},
}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFIRST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB", raising=False)


@cache
def _session() -> Session:
    """One for the process: what botocore reads for a client, it reads once a session."""
    return Session()


class Raw:
    """The body of an HTTP response."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._content


def sent_by(client: Any) -> list[Any]:
    """The list that gets each request which the client sends, all of which are answered `{}`."""
    requests: list[Any] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        requests.append(request)
        return AWSResponse(request.url, 200, {}, Raw(b"{}"))

    client.meta.events.register("before-send.dynamodb", answer)
    return requests


def plain_client() -> Any:
    config = Config(parameter_validation=False)
    return _session().create_client("dynamodb", region_name=REGION, config=config)


def described(request: Any) -> tuple[str, str, dict[str, str], Any]:
    headers = {name.lower(): str(value) for name, value in request.headers.items()}
    kept = {name: headers[name] for name in ("x-amz-target", "content-type")}
    return request.method, request.url, kept, json.loads(request.body)


@pytest.mark.parametrize("method", CALLS)
def test_repeated_requests_are_as_botocore_makes_them(method: str) -> None:
    ours, plain = make_dynamodb(_session(), REGION), plain_client()
    sent, expected = sent_by(ours), sent_by(plain)

    getattr(plain, method)(**CALLS[method])
    for _ in range(3):
        getattr(ours, method)(**CALLS[method])

    assert [described(request) for request in sent] == 3 * [described(expected[0])]


def test_each_request_is_signed_with_the_credentials_of_its_time() -> None:
    session = Session()
    session.set_credentials("AKIAFIRST", "secret")
    client = make_dynamodb(session, REGION)
    sent = sent_by(client)

    for number in range(3):
        client.get_item(TableName="t", Key={"pk": {"S": str(number)}})
    held = session.get_credentials()
    held.access_key, held.token = "AKIASECOND", "token"
    client.get_item(TableName="t", Key={"pk": {"S": "3"}})

    signed = [request.headers["Authorization"].decode() for request in sent]
    assert ["AKIAFIRST" in each for each in signed] == [True, True, True, False]
    assert f"AKIASECOND/{signed[3].split('/')[1]}/{REGION}/dynamodb/aws4_request" in signed[3]
    assert len({each.rpartition("Signature=")[2] for each in signed}) == 4
    assert "X-Amz-Security-Token" in sent[3].headers
    assert "X-Amz-Security-Token" not in sent[2].headers


def test_each_transaction_has_a_token_of_its_own() -> None:
    client = make_dynamodb(_session(), REGION)
    sent = sent_by(client)

    for _ in range(3):
        client.transact_write_items(TransactItems=[{"Put": {"TableName": "t", "Item": ITEM}}])

    assert len({json.loads(request.body)["ClientRequestToken"] for request in sent}) == 3


def test_a_clients_requests_go_to_its_own_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_dynamodb(_session(), REGION)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:9/base")
    second = make_dynamodb(Session(), REGION)
    third = _session().create_client("dynamodb", region_name="us-east-1", endpoint_url="http://x:1")
    sent = [sent_by(client) for client in (first, second, third)]

    for _ in range(2):
        for client in (first, second, third):
            client.get_item(TableName="t", Key=KEY)

    assert [[request.url for request in requests] for requests in sent] == [
        2 * [f"https://dynamodb.{REGION}.amazonaws.com/"],
        2 * ["http://127.0.0.1:9/base"],
        2 * ["http://x:1/"],
    ]
    assert isinstance(second, PreparedRequests)
    assert not isinstance(third, PreparedRequests)  # the session makes other clients as before
