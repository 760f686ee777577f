"""The SDK's attempts of one store call, on the client that functions make, without a network."""

from __future__ import annotations

import io
import random
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
import pytest
from botocore.awsrequest import AWSResponse, HeadersDict
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from botocore.session import Session

from cirrusmq.base.errors import Unavailable
from cirrusmq.runtime.store import ConditionFailed, Store, put_if_absent
from cirrusmq.wiring import bootstrap
from cirrusmq.wiring.adapters import InParallel
from cirrusmq.wiring.bootstrap import longer_retries

ITEM = {"pk": {"S": "Q#queue#0"}, "sk": {"S": "1"}}
STORED = {**ITEM, "t": {"N": "7"}}
LOST = ReadTimeoutError(endpoint_url="https://dynamodb")
UNSENT = ConnectTimeoutError(endpoint_url="https://dynamodb")


class Raw(io.BytesIO):
    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


def answer(status: int = 200, *, damaged: int = 0, **body: Any) -> AWSResponse:
    content = msgspec.json.encode(body)
    checksum = str(zlib.crc32(content) + damaged)
    headers = {"content-type": "application/x-amz-json-1.0", "x-amz-crc32": checksum}
    return AWSResponse("https://dynamodb", status, HeadersDict(headers), Raw(content))


def refusal(code: str, status: int = 400, **more: Any) -> AWSResponse:
    return answer(status, __type=f"com.amazonaws.dynamodb.v20120810#{code}", **more)


@cache
def _session() -> Session:
    """One for the process: what botocore reads for a client, it reads once a session."""
    return Session()


class Network:
    """Answers attempts one after the other, and notes how long the SDK waits between them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        self.waits: list[float] = []
        self.attempts = 0
        self._answers: Sequence[AWSResponse | Exception] = ()
        monkeypatch.setattr(bootstrap._Wiring, "session", _session())
        client = bootstrap.dynamodb.__wrapped__()
        client.meta.events.register_first("before-send.dynamodb", self._answer)
        monkeypatch.setattr("time.sleep", self.waits.append)
        self.store = Store(client, random.Random(1), self.waits.append)

    def will_answer(self, *answers: AWSResponse | Exception) -> None:
        self._answers, self.attempts = answers, 0

    def _answer(self, **_: Any) -> AWSResponse:
        self.attempts += 1
        given = self._answers[self.attempts - 1]
        if isinstance(given, Exception):
            raise given
        return given


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    return Network(monkeypatch)


@pytest.mark.parametrize(
    "passing",
    [
        lambda: refusal("ThrottlingException"),
        lambda: refusal("ProvisionedThroughputExceededException"),
        lambda: refusal("RequestLimitExceeded"),
        lambda: refusal("InternalServerError", 500),
        lambda: answer(503),
        lambda: LOST,
        lambda: UNSENT,
    ],
)
def test_a_call_is_made_twice_at_most(network: Network, passing: Any) -> None:
    network.will_answer(passing(), passing())
    with pytest.raises(Unavailable) as refused:
        network.store.get("Messages", "a", "b")
    assert network.attempts == 2
    assert refused.value.retry_after_seconds == 1

    network.will_answer(passing(), answer(Item=STORED))
    assert network.store.get("Messages", "a", "b") == STORED


def test_the_second_attempt_follows_after_at_most_a_fifth_of_a_second_by_chance(
    network: Network,
) -> None:
    for _ in range(200):
        network.will_answer(refusal("ThrottlingException"), answer())
        network.store.get("Messages", "a", "b")
    assert len(network.waits) == 200
    assert 0 <= min(network.waits) < 0.02
    assert 0.18 < max(network.waits) <= 0.2


def test_background_work_makes_five_attempts_with_growing_pauses(network: Network) -> None:
    throttled = [refusal("ThrottlingException") for _ in range(5)]
    network.will_answer(*throttled)
    with longer_retries(), pytest.raises(Unavailable):
        network.store.get("Messages", "a", "b")
    assert network.attempts == 5
    assert len(network.waits) == 4
    assert all(wait <= 2**number for number, wait in enumerate(network.waits))


def test_patience_is_of_its_own_threads_and_ends(network: Network) -> None:
    def attempts(_: int) -> int:
        try:
            network.store.get("Messages", "a", "b")
        except Unavailable:
            return network.attempts
        raise AssertionError("was answered")

    network.will_answer(*(refusal("ThrottlingException") for _ in range(20)))
    with longer_retries():
        assert sorted(InParallel()(attempts, [1, 2]))[-1] == 10
    network.will_answer(*(refusal("ThrottlingException") for _ in range(20)))
    assert attempts(0) == 2


@pytest.mark.parametrize("lost", [LOST, refusal("InternalServerError", 500)])
def test_a_condition_failed_behind_a_lost_attempt_may_have_met_its_own_write(
    network: Network, lost: AWSResponse | Exception
) -> None:
    network.will_answer(lost, refusal("ConditionalCheckFailedException", Item=STORED))
    with pytest.raises(ConditionFailed) as failed:
        network.store.write("PutItem", put_if_absent("Messages", ITEM))
    assert (failed.value.item, failed.value.repeated) == (STORED, True)


def test_an_answer_damaged_on_its_way_is_asked_for_again(network: Network) -> None:
    network.will_answer(answer(Item={}, damaged=1), answer(Item=STORED))
    assert network.store.get("Messages", "a", "b") == STORED
    assert network.attempts == 2


def test_a_condition_failed_at_once_is_another_writers(network: Network) -> None:
    network.will_answer(refusal("ConditionalCheckFailedException", Item=STORED))
    with pytest.raises(ConditionFailed) as failed:
        network.store.write("PutItem", put_if_absent("Messages", ITEM))
    assert (failed.value.item, failed.value.repeated) == (STORED, False)
    assert (network.attempts, network.waits) == (1, [])


def test_a_mistake_of_our_own_is_not_made_twice(network: Network) -> None:
    network.will_answer(refusal("ValidationException"))
    with pytest.raises(Exception, match="ValidationException"):
        network.store.get("Messages", "a", "b")
    assert network.attempts == 1
