"""Execution environments on one machine: one for all functions, or several for each."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.local.conftest import function
from tests.stack import Start

from cirrusmq.wiring import bootstrap
from cirrusmq_local.cloud.environments import SeparateEnvironments
from cirrusmq_local.cloud.functions import Functions
from cirrusmq_local.cloud.invocation import Handler


class Cores:
    """Makes objects in place of new cores, and counts them."""

    def __init__(self) -> None:
        self.started = 0

    def start(self) -> Any:
        self.started += 1
        return f"core {self.started}"


@pytest.fixture
def cores() -> Cores:
    return Cores()


def make_functions(cores: Cores, *handlers: Handler) -> Functions:
    named = {f"f{number}": (function(f"f{number}"), held) for number, held in enumerate(handlers)}
    return Functions(named, SeparateEnvironments(cores.start))


def test_functions_have_environments_of_their_own_and_use_them_again(cores: Cores) -> None:
    def tell(event: Any, context: Any) -> Any:
        return bootstrap.service()

    functions = make_functions(cores, tell, tell)
    assert [functions.run("f0", {}), functions.run("f1", {})] == ["core 1", "core 2"]
    assert [functions.run("f0", {}), functions.run("f1", {})] == ["core 1", "core 2"]
    functions.stop()


def test_calls_side_by_side_are_in_different_environments(cores: Cores) -> None:
    both = threading.Barrier(2)

    def meet(event: Any, context: Any) -> Any:
        both.wait(20)
        return bootstrap.service()

    functions = make_functions(cores, meet)
    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(functions.run, ["f0"] * 2, [{}] * 2)) == ["core 1", "core 2"]
    functions.stop()


@pytest.mark.few(1)
@pytest.mark.parametrize("layout", ["shared", "cloud"])
def test_a_change_holds_in_every_function_from_its_answer_on(start: Start, layout: str) -> None:
    client = start("--environments", layout).client()
    assert client.put("/queues/changed", json={}).status_code == 201
    message = {"messages": [{"body": "a" * 2_000}]}
    assert client.post("/queues/changed/messages", json=message).status_code == 201
    assert client.patch("/queues/changed", json={"max_message_bytes": 1_024}).status_code == 200
    refused = client.post("/queues/changed/messages", json=message)
    assert (refused.status_code, refused.json()["code"]) == (413, "MessageTooLarge")
