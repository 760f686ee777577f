"""Lambda's limits on this machine: calls that it refuses or ends are refused or ended here."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.local.conftest import HandTime, function

from cirrusmq_local.cloud.aws import make_session
from cirrusmq_local.cloud.functions import Functions
from cirrusmq_local.cloud.guard import GuardedEngine
from cirrusmq_local.cloud.invocation import (
    LINKS,
    PAYLOAD_BYTES,
    AnswerTooLargeError,
    EventTooLargeError,
    Handler,
    TimedOutError,
    TooManyRequestsError,
    invoke,
)
from cirrusmq_local.engine import Engine, TableSpec

PUT = {"TableName": "Items", "Item": {"pk": {"S": "a"}, "sk": {"S": "b"}}}
GET = {"TableName": "Items", "Key": PUT["Item"]}


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(None, [TableSpec("Items")], now_ms=lambda: 1)
    yield made
    made.close()


def text_answer(body: str) -> dict[str, Any]:
    return {"statusCode": 200, "headers": {}, "body": body, "isBase64Encoded": False}


def run(hand_time: HandTime, handler: Handler, event: Any = None) -> Any:
    return invoke(function("reader"), handler, event or {}, hand_time.monotonic)


@pytest.mark.parametrize("character", ["é", "語", '"'])
def test_an_answer_counts_as_the_runtime_encodes_it(hand_time: HandTime, character: str) -> None:
    one = len(json.dumps(character)) - 2
    fits = text_answer(character * ((PAYLOAD_BYTES - 200) // one))
    assert run(hand_time, lambda event, context: fits) == fits
    with pytest.raises(AnswerTooLargeError):
        run(hand_time, lambda event, context: text_answer(character * (PAYLOAD_BYTES // one)))


def test_a_base64_body_may_be_larger(hand_time: HandTime) -> None:
    body = base64.b64encode("語".encode() * 1_500_000).decode()
    answer = text_answer(body) | {"isBase64Encoded": True}
    assert run(hand_time, lambda event, context: answer) == answer


def test_a_too_large_event_does_not_reach_the_function(hand_time: HandTime) -> None:
    calls: list[Any] = []
    with pytest.raises(EventTooLargeError):
        run(hand_time, lambda event, context: calls.append(event), {"body": "a" * PAYLOAD_BYTES})
    assert calls == []


def test_the_context_counts_down_to_the_timeout(hand_time: HandTime) -> None:
    def handler(event: Any, context: Any) -> Any:
        hand_time.seconds += 28.5
        return [context.get_remaining_time_in_millis(), bool(context.aws_request_id)]

    assert run(hand_time, handler) == [500, True]


def test_an_answer_after_the_timeout_is_no_answer(hand_time: HandTime) -> None:
    def handler(event: Any, context: Any) -> Any:
        hand_time.seconds += 29.1
        return {}

    with pytest.raises(TimedOutError, match="29 s"):
        run(hand_time, handler)


def test_a_functions_write_after_its_timeout_takes_no_effect(
    hand_time: HandTime, engine: Engine
) -> None:
    guarded, caught = GuardedEngine(engine), []

    def handler(event: Any, context: Any) -> Any:
        guarded.execute("PutItem", PUT)
        hand_time.seconds += 29.1
        try:
            guarded.execute("DeleteItem", GET)
        except Exception as error:  # as a handler does that turns errors into answers
            caught.append(error)

    with pytest.raises(TimedOutError):
        run(hand_time, handler)
    assert caught == []
    assert engine.execute("GetItem", GET)["Item"] == PUT["Item"]


@pytest.mark.parametrize(("may_loop", "runs"), [(False, LINKS), (True, 40)])
def test_a_self_invoking_function_is_stopped_unless_it_may(may_loop: bool, runs: int) -> None:
    came: list[int] = []
    enough = threading.Event()

    def handler(event: Any, context: Any) -> None:
        came.append(event["number"])
        if len(came) == 40:
            enough.set()
            return
        payload = json.dumps({"number": event["number"] + 1}).encode()
        client.invoke(FunctionName="loop", InvocationType="Event", Payload=payload)

    looping = replace(function("loop"), may_loop=may_loop)
    functions = Functions({"loop": (looping, handler)})
    client = make_session(lambda: functions).create_client("lambda")
    functions.send("loop", {"number": 0})
    enough.wait(0.5 if not may_loop else 20)
    functions.stop()
    assert came == list(range(runs))


def test_no_more_run_at_once_than_are_reserved() -> None:
    began, go_on = threading.Event(), threading.Event()

    def handler(event: Any, context: Any) -> str:
        began.set()
        assert go_on.wait(20)
        return "done"

    functions = Functions({"sweep": (replace(function("sweep"), reserved=1), handler)})
    answers: list[str] = []
    first = threading.Thread(target=lambda: answers.append(functions.run("sweep", {})))
    first.start()
    assert began.wait(20)
    with pytest.raises(TooManyRequestsError):
        functions.run("sweep", {})
    functions.send("sweep", {})  # waits for its turn, as in Lambda's own queue
    go_on.set()
    first.join()
    functions.stop()
    assert answers == ["done"]


def test_the_caller_sees_an_http_apis_answer_for_lambda(serve: Any) -> None:
    gateway = serve({"POST /a": lambda event, context: text_answer("語" * 2_000_000)})
    answered = gateway.client.post("/a")
    assert (answered.status_code, answered.json()) == (500, {"message": "Internal Server Error"})
    answered = gateway.client.post("/a", content=b"a" * (PAYLOAD_BYTES + 1))
    assert (answered.status_code, answered.json()) == (413, {"message": "Request Too Long"})
