from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import function

from cirrusmq_local.cloud.aws import NotOnOneMachineError, make_session
from cirrusmq_local.cloud.functions import EVENT_THREADS, Functions, UnknownFunctionError
from cirrusmq_local.cloud.template import Function


def make_function(folder: Path, name: str, code: str) -> Function:
    home = folder / name
    home.mkdir()
    (home / "app.py").write_text(code, encoding="utf-8")
    return function(f"cirrusmq-{name}", home)


@pytest.fixture
def functions(tmp_path: Path) -> Iterator[Functions]:
    answers = "def handler(event, context):\n    return ['{}', event, context.function_name]\n"
    loaded = Functions.load(
        [make_function(tmp_path, name, answers.format(name)) for name in ("one", "two")]
    )
    yield loaded
    loaded.stop()


def test_functions_with_modules_of_one_name_do_not_mix(functions: Functions) -> None:
    assert functions.run("cirrusmq-one", 1) == ["one", 1, "cirrusmq-one"]
    assert functions.run("cirrusmq-two", 2) == ["two", 2, "cirrusmq-two"]


def test_a_missing_function_is_named(functions: Functions, tmp_path: Path) -> None:
    with pytest.raises(UnknownFunctionError, match="three"):
        functions.run("three", {})
    with pytest.raises(UnknownFunctionError, match="three"):
        functions.send("three", {})
    missing = make_function(tmp_path, "gone", "")
    (missing.folder / "app.py").unlink()
    with pytest.raises(FileNotFoundError, match="cirrusmq-gone"):
        Functions.load([missing])


@pytest.fixture
def client(functions: Functions) -> Any:
    return make_session(lambda: functions).create_client("lambda")


def test_the_product_invokes_a_function_and_gets_its_answer(client: Any) -> None:
    answer = client.invoke(FunctionName="cirrusmq-one", Payload=b'{"a": 1}')
    assert answer["StatusCode"] == 200
    assert json.load(answer["Payload"]) == ["one", {"a": 1}, "cirrusmq-one"]


def test_the_product_may_name_a_function_by_its_arn(client: Any) -> None:
    arn = "arn:aws:lambda:local:000000000000:function:cirrusmq-two"
    assert json.load(client.invoke(FunctionName=arn)["Payload"])[0] == "two"


def test_an_asynchronous_invocation_is_accepted_and_runs_later(client: Any, tmp_path: Path) -> None:
    ran = threading.Event()
    later = Functions({"later": (make_function(tmp_path, "later", ""), lambda e, c: ran.set())})
    invoker = make_session(lambda: later).create_client("lambda")
    answer = invoker.invoke(FunctionName="later", InvocationType="Event", Payload=b"{}")
    assert answer["StatusCode"] == 202
    assert ran.wait(5)
    later.stop()


def test_events_of_a_busy_function_hold_up_no_other_function(tmp_path: Path) -> None:
    """However many wait for one of those that may run at once."""
    free, ran = threading.Event(), threading.Event()
    busy = replace(make_function(tmp_path, "busy", ""), reserved=2)
    both = Functions(
        {
            "busy": (busy, lambda event, context: free.wait(30)),
            "quick": (make_function(tmp_path, "quick", ""), lambda event, context: ran.set()),
        }
    )
    for _ in range(2 * EVENT_THREADS):
        both.send("busy", {})
    both.send("quick", {})
    assert ran.wait(5)
    free.set()
    both.stop()


def test_a_failure_of_an_asynchronous_invocation_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: Any, context: Any) -> Any:
        raise ValueError("told to fail")

    failing = Functions({"failing": (make_function(tmp_path, "failing", ""), fail)})
    failing.send("failing", {})
    failing.stop()
    assert "told to fail" in caplog.text


def test_after_a_stop_nothing_more_is_started(functions: Functions) -> None:
    functions.stop()
    functions.send("cirrusmq-one", {})


def test_an_unknown_function_is_the_clients_error(client: Any) -> None:
    with pytest.raises(client.exceptions.ResourceNotFoundException, match="three"):
        client.invoke(FunctionName="three")


def test_no_call_leaves_the_machine(functions: Functions) -> None:
    session = make_session(lambda: functions)
    with pytest.raises(NotOnOneMachineError, match="SQS ListQueues"):
        session.create_client("sqs").list_queues()
    with pytest.raises(NotOnOneMachineError, match="DynamoDB ListTables"):
        session.create_client("dynamodb").list_tables()
