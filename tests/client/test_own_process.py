"""A second process that calls the tables of a stack itself, under its policy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import Run, connection_by, variables_of
from tests.stack import COMMAND, environment

from cirrusmq_client import Client
from cirrusmq_local.cloud.policy_guard import allows

STACK = Path(__file__).with_name("own_stack.py")
PROGRAM = Path(__file__).with_name("own_process.py")


class OwnStack:
    """A running stack whose tables are at a port."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, STACK, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert self.process.stdout is not None
        self.url, self.tables = json.loads(self.process.stdout.readline())
        held = json.loads((folder / "connection.json").read_text())
        self.connection = connection_by(held["url"], held)

    def allow(self, queue_id: str) -> None:
        """Have the policy of a queue at the port."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{queue_id}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def command(self, *arguments: str) -> tuple[int, str]:
        """The end of a command, and what it printed."""
        done = subprocess.run(
            [COMMAND, *arguments],
            env=os.environ | variables_of(self.connection),
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    def run(self, way: str, queue: str, **variables: str) -> tuple[dict[str, Any], str]:
        """What a program told, and what it logged."""
        done = subprocess.run(
            [sys.executable, PROGRAM, way, queue],
            env={
                **os.environ,
                **variables_of(self.connection),
                "AWS_ENDPOINT_URL_DYNAMODB": self.tables,
                "AWS_ACCESS_KEY_ID": "any",
                "AWS_SECRET_ACCESS_KEY": "any",
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        return json.loads(done.stdout), done.stderr

    def stop(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnStack]:
    made = OwnStack(tmp_path_factory.mktemp("own") / "data")
    yield made
    made.stop()


def new_queue(own: OwnStack, name: str) -> str:
    with Client(own.connection) as client:
        made: Any = client.create_queue(name)
        return str(made["id"])


BODIES = sorted(f"message {number}" for number in range(20))


def test_a_second_process_calls_the_tables_itself(own: OwnStack) -> None:
    own.allow(new_queue(own, "threads"))

    told, logged = own.run("threads", "threads")

    assert told["taken"] == BODIES
    assert logged == ""
    # The first send and the first receive ask whether the key may.
    assert told["paths"] == {
        "/endpoints": 1,
        "/queues/threads/messages": 1,
        "/queues/threads/messages/receive": 1,
    }
    assert told["operations"]["PutItem"] >= 19
    assert told["operations"]["DeleteItem"] >= 16


@pytest.mark.long
def test_so_does_one_with_an_event_loop(own: OwnStack) -> None:
    own.allow(new_queue(own, "tasks"))

    told, logged = own.run("tasks", "tasks")

    assert told["taken"] == sorted(["first", *BODIES[:-1]]) or len(told["taken"]) == 20
    assert logged == ""
    assert told["paths"]["/queues/tasks/messages"] == 1
    assert told["operations"]["PutItem"] >= 19


def test_messages_of_a_second_process_carry_its_trace(own: OwnStack) -> None:
    own.allow(new_queue(own, "spans"))

    told, logged = own.run("spans", "spans")

    assert (len(told["taken"]), logged) == (3, "")
    assert told["operations"]["PutItem"] >= 2


def test_without_the_right_all_goes_by_the_url(own: OwnStack) -> None:
    new_queue(own, "forbidden")
    own.allow("none")

    told, logged = own.run("threads", "forbidden")

    assert told["taken"] == BODIES
    assert "AccessDeniedException" in logged
    assert told["paths"]["/queues/forbidden/messages"] == 20


@pytest.mark.long
def test_without_a_way_to_the_tables_all_goes_by_the_url(own: OwnStack) -> None:
    own.allow(new_queue(own, "unreachable"))

    told, logged = own.run("threads", "unreachable", AWS_ENDPOINT_URL_DYNAMODB="http://127.0.0.1:9")

    assert told["taken"] == BODIES
    assert "the formats cannot be read" in logged
    assert told["paths"]["/queues/unreachable/messages"] == 20


def test_the_command_prints_the_policy_of_queues(own: OwnStack) -> None:
    ids = [new_queue(own, name) for name in ("first", "second")]

    code, told = own.command("iam-policy", "first", "second", "--aws-account", "123456789012")

    assert code == 0, told
    policy = json.loads(told)
    tables = "arn:aws:dynamodb:local:123456789012:table/"
    for queue_id in ids:
        for action in ("PutItem", "UpdateItem", "DeleteItem", "Query"):
            assert allows(policy, f"dynamodb:{action}", "Messages", f"Q#{queue_id}#0", {"pk", "sk"})
        put = "dynamodb:PutItem"
        assert not allows(policy, put, "Messages", f"Q#{queue_id}#0", {"pk", "sk", "l"})
    assert not allows(policy, "dynamodb:Query", "Messages", "Q#another#0", ())
    assert {each["Resource"].rpartition("/")[0] + "/" for each in policy["Statement"]} == {tables}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("first", "--aws-account", "12"), 2, "must be 12 digits"),
        (("missing", "--aws-account", "123456789012"), 1, "no queue missing"),
    ],
)
def test_the_command_names_the_mistake(
    own: OwnStack, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended, told = own.command("iam-policy", *arguments)
    assert ended == code
    assert said in told


def test_a_deployment_without_named_tables_has_no_policy(run_command: Run) -> None:
    done = run_command("iam-policy", "orders", "--aws-account", "123456789012")
    assert done.returncode == 1
    assert "InProcess=true" in done.stderr
