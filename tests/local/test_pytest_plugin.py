"""The plugin for pytest, as projects of users load it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_client import Ack, Batches, Message, Producer, Received, Retry, Subscription
from cirrusmq_local.testing import Service

pytest_plugins = "pytester"
EXAMPLE = Path(__file__).with_name("test_own_consumer.py")
MANUAL = Path(__file__).parents[2] / "infra/manual/testing.md"


@pytest.fixture
def here(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder of a user's tests, whose runs load nothing but this plugin."""
    pytester.makeini("[pytest]\naddopts = -p no:schemathesis -p no:hypothesispytest\n")
    return pytester


def test_the_package_names_its_plugin() -> None:
    (ours,) = [each for each in entry_points(group="pytest11") if each.name == "cirrusmq"]
    assert ours.value == "cirrusmq_local.pytest_plugin"


def test_the_manuals_example_passes_and_each_test_begins_with_nothing(
    here: pytest.Pytester,
) -> None:
    shown = EXAMPLE.read_text().partition("def handle")
    assert "".join(shown[1:]) in MANUAL.read_text()
    here.makepyfile(
        test_own_consumer=EXAMPLE.read_text(),
        test_empty="""
            import os

            import pytest

            before = dict(os.environ)

            @pytest.mark.parametrize("number", [1, 2])
            def test_it_is_empty(cirrusmq, number):
                assert list(cirrusmq.client.list_queues()) == []
                cirrusmq.client.create_queue("orders")

            def test_the_environment_is_as_it_was():
                del os.environ["PYTEST_CURRENT_TEST"]
                before.pop("PYTEST_CURRENT_TEST", None)
                assert dict(os.environ) == before
        """,
    )
    # A process of its own: loggers keep the output of the run that they are made in.
    here.runpytest_subprocess("-q").assert_outcomes(passed=4)


def test_a_run_not_using_it_imports_nothing_of_the_service() -> None:
    code = (
        "import sys, cirrusmq_local.pytest_plugin;"
        "print([each for each in sys.modules if each in"
        " ('cirrusmq', 'cirrusmq_client', 'httpx', 'botocore', 'cirrusmq_local.testing')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"


def test_a_failing_handler_gets_the_message_again_by_the_retry_policy(
    cirrusmq: Service, caplog: pytest.LogCaptureFixture
) -> None:
    client = cirrusmq.client
    client.create_queue("dead")
    letters: Any = {"queue": "dead", "max_receives": 3}
    again_after_30_s: Any = {"policy": "custom", "waits": [30, 30]}
    client.create_queue("orders", {"retry": again_after_30_s, "dead_letter": letters})
    Producer(client).send("orders", "soup")

    def fail(message: Received) -> None:
        raise ConnectionError("the kitchen is closed")

    assert len(cirrusmq.consume("orders", fail)) == 1
    assert "the kitchen is closed" in caplog.text
    cirrusmq.pass_seconds(29)
    assert cirrusmq.consume("orders", fail) == []
    cirrusmq.pass_seconds(1)
    (again,) = cirrusmq.consume("orders", lambda message: Ack())
    assert again.receive_count == 2
    cirrusmq.pass_seconds(3_600)
    assert cirrusmq.consume("orders", fail) == []


def test_batches_groups_and_orders_are_given_as_a_consumer_gives_them(cirrusmq: Service) -> None:
    client = cirrusmq.client
    client.create_topic("news")
    client.create_subscription("news", "readers", {"protocol": "pull"})
    client.publish("news", [Message(str(number)) for number in range(5)])
    seen: list[list[str]] = []
    group = Subscription("news", "readers")
    cirrusmq.consume(
        group,
        lambda messages: seen.append([each.text for each in messages]),
        batches=Batches(max_batch=16, max_await=0),
    )
    assert [len(each) for each in seen] == [5]

    client.create_queue("steps", {"ordered": True})
    client.send("steps", [Message(text, group="a") for text in ("1", "2", "3")])
    tried: list[str] = []

    def refuse_the_second(message: Received) -> Retry | None:
        tried.append(message.text)
        return Retry(after=10) if tried == ["1", "2"] else None

    cirrusmq.consume("steps", refuse_the_second)
    assert tried == ["1", "2"]
    cirrusmq.pass_seconds(10)
    cirrusmq.consume("steps", refuse_the_second)
    assert tried == ["1", "2", "2", "3"]


def test_no_more_than_the_most_are_given(cirrusmq: Service) -> None:
    cirrusmq.client.create_queue("orders")
    Producer(cirrusmq.client).send_batch("orders", (str(number) for number in range(20)))
    assert len(cirrusmq.consume("orders", lambda message: None, limit=3)) == 3
    assert len(cirrusmq.consume("orders", lambda message: None, limit=100)) == 17
