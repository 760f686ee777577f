"""Programs that fork, and the ends of processes: what is sent, and what is told."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import variables_of
from tests.client.servers import Server
from tests.client.taking import bodies

from cirrusmq_client import Client, Connection

PROGRAMS = Path(__file__).with_name("forks.py")


class Program:
    """Runs a program of `forks.py` to its end; what it told, by who told it."""

    def __init__(self, connection: Connection, **variables: str) -> None:
        self._environment = {**os.environ, **variables, **variables_of(connection)}

    def run(self, name: str, queue: str) -> tuple[list[dict[str, Any]], int, str]:
        done = subprocess.run(
            [sys.executable, PROGRAMS, name, queue],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        told = [json.loads(line) for line in done.stdout.splitlines()]
        return told, done.returncode, done.stderr

    def told(self, name: str, queue: str) -> list[dict[str, Any]]:
        """What a program told that ends well, and without a word of an error."""
        told, status, errors = self.run(name, queue)
        assert (status, errors) == (0, "")
        return told


@pytest.fixture
def program(stack: Any) -> Program:
    return Program(stack.connection)


@pytest.fixture
def lonely() -> Iterator[Program]:
    """Its service's port is taken by nobody who answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        yield Program(Connection(url=url, access_key_id="a", secret="b"))


def test_children_and_threads_of_the_parent_send_at_once_through_one_client(
    program: Program, client: Client, queue: str
) -> None:
    told = program.told("send_at_once", queue)

    assert [each for each in told if each["wrong"]] == []
    children = [each for each in told if "soon" in each]
    assert [(each["soon"], each["flushed"]) for each in children] == [(30, True)] * 3
    assert len(told) == 3 + 3 + 1
    stored = [body for body in bodies(client, queue) if body.startswith("child")]
    assert len(stored) == len(set(stored)) == 3 * (30 + 30)


def test_a_tls_connection_of_the_parent_is_left_alone_by_children(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        connection = Connection(url=server.url, access_key_id="a", secret="b")
        program = Program(connection, SSL_CERT_FILE=str(server.authority))
        told = program.told("call_by_tls", "/queues")

    parent = told.pop()
    assert parent["port"] == parent["again"]
    assert parent["port"] not in {each["port"] for each in told}
    assert len(told) == 3


def test_at_a_fork_the_parent_alone_sends_the_lingering_messages(
    program: Program, client: Client, queue: str
) -> None:
    told = program.told("linger", queue)

    assert told == [
        {"who": "child", "sent": True, "parents": [False] * 3},
        {"who": "parent", "sent": [True] * 3},
    ]
    assert bodies(client, queue) == ["child", "parent 0", "parent 1", "parent 2"]


def test_a_consumer_of_the_parent_is_left_alone_by_its_child(program: Program, queue: str) -> None:
    told = program.told("consume", queue)

    assert told[-1] == {"who": "parent", "got": ["for the parent", "again for the parent"]}
    assert told[0]["who"] == "child"


def test_a_consumer_used_before_a_fork_runs_in_the_child(program: Program, queue: str) -> None:
    told = program.told("consume_in_child", queue)

    assert told == [{"who": "child", "got": ["one", "two"]}]


def test_an_async_client_works_in_the_loops_of_children(program: Program, queue: str) -> None:
    told = program.told("await_calls", queue)

    assert [each["right"] for each in told] == [True] * 4


def test_a_transaction_open_at_a_fork_publishes_in_the_child(program: Program, topic: str) -> None:
    told = program.told("transact", topic)

    assert told == [
        {"who": "child", "published": 1, "result": "result"},
        {"who": "parent", "published": 1, "result": "result"},
    ]


def test_a_child_ends_on_sigterm_though_its_parent_closes_a_producer_then(
    program: Program, queue: str
) -> None:
    assert program.told("end_by_signal", queue) == [{"status": signal.SIGTERM}]


def test_tokens_differ_between_children(program: Program) -> None:
    told, _, _ = program.run("make_tokens", "none")

    assert len({each["token"] for each in told}) == 3


@pytest.mark.long
def test_ending_children_of_multiprocessing_send_lingering_messages(
    program: Program, client: Client, queue: str
) -> None:
    told = program.told("end_child", queue)

    assert [each["status"] for each in told] == [0, 0, 0]
    methods = ("fork", "spawn", "forkserver")
    assert bodies(client, queue) == sorted(f"{how} {n}" for how in methods for n in range(100))


def test_a_child_waits_for_its_threads_before_it_sends_for_the_last_time(
    program: Program, client: Client, queue: str
) -> None:
    assert program.told("end_child_late", queue) == [{"status": 0}]
    assert bodies(client, queue) == ["early", "late"]


def test_a_forked_program_sends_its_own_messages_when_it_ends(
    program: Program, client: Client, queue: str
) -> None:
    assert program.told("end_forked", queue) == [{"status": 0}]
    assert bodies(client, queue) == sorted(["parent", *(f"child {n}" for n in range(100))])


def test_an_ending_program_sends_its_lingering_messages(
    program: Program, client: Client, queue: str
) -> None:
    assert program.told("end", queue) == []
    assert len(bodies(client, queue)) == 100


def test_a_program_ending_without_a_service_tells_how_many_are_lost(lonely: Program) -> None:
    told, status, errors = lonely.run("end", "none")

    assert (told, status) == ([], 1)
    assert errors.startswith(
        "cirrusmq_client: 100 messages were not sent before the program ended: nothing answers at"
    )
    assert errors.count("\n") == 1


def test_a_program_does_not_wait_for_a_hanging_service(unused_port: int) -> None:
    with socket.create_server(("127.0.0.1", unused_port)):
        url = f"http://127.0.0.1:{unused_port}"
        program = Program(Connection(url=url, access_key_id="a", secret="b"))
        told, status, errors = program.run("end_impatiently", "none")

    assert (told, status) == ([], 1)
    assert errors.startswith("cirrusmq_client: 100 messages were not sent before the program ended")


def test_children_ending_without_a_service_tell_how_many_are_lost(lonely: Program) -> None:
    told, _, errors = lonely.run("end_child", "none")

    assert [each["status"] for each in told] == [1, 1, 1]
    assert errors.count("100 messages were not sent before the program ended") == 3


@pytest.mark.long
def test_a_program_ends_as_it_likes_after_seeing_every_error(lonely: Program) -> None:
    told, status, errors = lonely.run("end_looking", "none")

    assert (told, status, errors) == ([{"errors": ["NotReachable"] * 3}], 0, "")


@pytest.mark.long
def test_a_producer_closed_without_a_service_logs_how_many_are_lost(
    lonely: Program,
) -> None:
    _, _, errors = lonely.run("close", "none")

    assert "100 messages were not sent; their futures say why: nothing answers at" in errors
