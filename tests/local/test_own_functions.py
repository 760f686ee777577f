"""A user's functions on one machine: named on the command line, called as Lambda functions are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cirrusmq.runtime.core import Called
from cirrusmq.wiring.adapters import Calls
from cirrusmq_local.cloud.aws import make_session
from cirrusmq_local.cloud.functions import Functions
from cirrusmq_local.cloud.own_functions import OwnFunctionError, arns, as_function, load_own


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_of_a_test.py").write_text(
        "def handler(event, context):\n    return event\n\nnothing = 1\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_module_of_the_working_folder_is_found() -> None:
    own = load_own(["shop=shop_of_a_test:handler"])
    assert own["shop"]({"Records": []}, None) == {"Records": []}
    assert arns(own) == "arn:aws:lambda:local:000000000000:function:shop"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("shop", "must be name=module:callable"),
        ("shop=shop_of_a_test", "must be name=module:callable"),
        ("a shop=shop_of_a_test:handler", "must be name=module:callable"),
        ("shop=no_such_module:handler", "No module named"),
        ("shop=shop_of_a_test:missing", "missing"),
        ("shop=shop_of_a_test:nothing", "cannot be called"),
    ],
)
def test_an_uncallable_function_is_told(text: str, reason: str) -> None:
    with pytest.raises(OwnFunctionError, match=reason):
        load_own([text])


def test_two_of_one_name_are_told() -> None:
    with pytest.raises(OwnFunctionError, match="two functions shop"):
        load_own(["shop=shop_of_a_test:handler"] * 2)


def call(handler: Callable[[Any, Any], Any], name: str = "shop") -> Called:
    """The outcome of calling a function through the product's own adapter."""
    functions = Functions({})
    functions.add(as_function("shop"), handler)
    calls = Calls(make_session(lambda: functions))
    return calls(arns({name: handler}), json.dumps({"Records": []}).encode(), 60)


def test_an_answer_comes_back() -> None:
    called = call(lambda event, context: {"batchItemFailures": [], **event})
    assert called == Called(answer={"batchItemFailures": [], "Records": []})


def test_an_exception_is_the_functions_own_error() -> None:
    def fail(event: Any, context: Any) -> None:
        raise ValueError("a bug")

    assert call(fail) == Called(error="ValueError: a bug")


def test_a_missing_function_has_not_run() -> None:
    called = call(lambda event, context: None, name="other")
    assert (called.error, called.refused) == ("ResourceNotFoundException", True)


def test_a_call_beyond_its_time_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.0, 61.0])
    monkeypatch.setattr("cirrusmq.wiring.adapters.time.monotonic", lambda: next(seconds))
    monkeypatch.setattr(
        "cirrusmq_local.cloud.functions.time",
        type("Still", (), {"monotonic": staticmethod(lambda: 0.0)}),
    )
    called = call(lambda event, context: "done")
    assert (called.answer, called.unknown) == (None, True)
