"""`verify --engine` finds what a DynamoDB does otherwise, and leaves no table behind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
import pytest
from moto.server import ThreadedMotoServer
from tests.commands import run_command

from cirrusmq_local.commands import verify_engine
from cirrusmq_local.engine import Engine
from cirrusmq_local.verifying import beside_engine
from cirrusmq_local.verifying.beside_engine import BesideEngine, Comparison, changes_of_engine
from cirrusmq_local.verifying.drawn_operations import SORT_KEYS
from cirrusmq_local.verifying.journal import Journal

ROUNDS = 10
TABLE = "verify-any"
Call = Callable[..., Any]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return boto3.Session()


@pytest.fixture
def engines() -> Iterator[tuple[Engine, Engine]]:
    both = beside_engine.engine_of(TABLE), beside_engine.engine_of(TABLE)
    yield both
    for each in both:
        each.close()


@pytest.fixture
def moto() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    # Its tables are the process's, not the server's.
    reset = Request(f"http://{host}:{port}/moto-api/reset", method="POST")
    urlopen(reset).close()
    yield f"http://{host}:{port}"
    server.stop()


class Altered:
    """A client, one of whose methods does something else."""

    def __init__(self, client: Any, method: str, alter: Callable[[Call], Call]) -> None:
        self._client = client
        setattr(self, method, alter(getattr(client, method)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def loses_a_delete(call: Call) -> Call:
    return lambda **request: {} if "ConditionExpression" not in request else call(**request)


def bills_more(call: Call) -> Call:
    def altered(**request: Any) -> Any:
        answer = call(**request)
        answer.get("ConsumedCapacity", {"CapacityUnits": 0})["CapacityUnits"] += 0.5
        return answer

    return altered


def forgets_a_limit(call: Call) -> Call:
    return lambda **request: call(**{n: v for n, v in request.items() if n != "Limit"})


def played(
    session: Any, engines: tuple[Engine, Engine], theirs: Callable[[Any], Any], **given: Any
) -> Comparison:
    clients = [beside_engine.client_of(each, session) for each in engines]
    beside = BesideEngine(theirs(clients[1]), clients[0], engines[0], TABLE, 7, True)
    beside.play(ROUNDS)
    beside.compare_streams(changes_of_engine(engines[1], TABLE))
    return beside.told


def test_an_engine_does_the_same_as_another(session: Any, engines: tuple[Engine, Engine]) -> None:
    told = played(session, engines, lambda client: client)
    assert told.differences == []
    assert told.rounds == ROUNDS
    # Each kind was drawn, done, refused, counted and streamed.
    assert len(told.operations) == 9
    assert 50 < told.refused < 250
    assert told.units_compared > 100
    assert told.stream_records > 100


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("method", "alter", "kinds"),
    [
        ("delete_item", loses_a_delete, {"answer", "items", "units"}),
        ("get_item", bills_more, {"units"}),
        ("query", forgets_a_limit, {"answer"}),
    ],
)
def test_another_behaviour_is_a_difference(
    session: Any,
    engines: tuple[Engine, Engine],
    method: str,
    alter: Callable[[Call], Call],
    kinds: set[str],
) -> None:
    told = played(session, engines, lambda client: Altered(client, method, alter))
    assert {each.kind for each in told.differences} == kinds
    # Later ones may follow from the first.
    assert told.differences[0].method == method


def test_a_missing_stream_record_is_a_difference(
    session: Any, engines: tuple[Engine, Engine]
) -> None:
    clients = [beside_engine.client_of(each, session) for each in engines]
    beside = BesideEngine(clients[1], clients[0], engines[0], TABLE, 7, True)
    beside.play(2)
    theirs = changes_of_engine(engines[1], TABLE)
    key = ("p1", SORT_KEYS[0])
    lost = theirs[key].pop()
    beside.compare_streams(theirs)
    (found,) = beside.told.differences
    assert (found.kind, found.round, found.request) == ("stream", 1, {"key": key})
    assert found.ours == [*found.theirs, lost]


@pytest.mark.long
def test_a_moto_server_does_the_same_but_for_left_out_parts(
    session: Any, engines: tuple[Engine, Engine], moto: str
) -> None:
    named = {"endpoint_url": moto}
    theirs, streams = (session.client(n, **named) for n in ("dynamodb", "dynamodbstreams"))
    beside_engine.create_table(theirs, TABLE)
    ours = beside_engine.client_of(engines[0], session)
    narrow = BesideEngine(theirs, ours, engines[0], TABLE, 7, False)
    narrow.play(4)
    expected = engines[0].stream_position(TABLE)
    narrow.compare_streams(beside_engine.read_changes(streams, theirs, TABLE, expected))
    assert narrow.told.differences == []
    assert narrow.told.stream_records > 20


@pytest.mark.long
def test_the_command_tells_the_differences_of_moto(session: Any, moto: str, tmp_path: Path) -> None:
    env = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "HOME": str(tmp_path)}
    asked = ["verify", "--engine", moto, "--minutes", "0.2", "--seed", "1", "--yes"]
    key = ["--key", "key.pem", "--out", "wide"]
    wide = run_command([*asked, *key], env=env, folder=tmp_path)
    assert wide.returncode == 3, wide.stderr
    told = json.loads((tmp_path / "wide/engine.json").read_text())
    assert len(told["differences"]) > 5
    assert f"{len(told['differences'])} differences" in wide.stdout
    checked = run_command(["verify", "--check", "wide/engine.json"], env=env, folder=tmp_path)
    assert checked.returncode == 0, checked.stderr
    narrow = run_command([*asked, "--narrow", "--out", "narrow"], env=env, folder=tmp_path)
    assert narrow.returncode == 0, narrow.stdout
    assert session.client("dynamodb", endpoint_url=moto).list_tables()["TableNames"] == []


def test_undo_removes_the_table_of_an_early_ended_run(
    session: Any, moto: str, tmp_path: Path
) -> None:
    client = session.client("dynamodb", endpoint_url=moto)
    beside_engine.create_table(client, TABLE)
    journal = tmp_path / "undo-any.jsonl"
    Journal(journal).note({"kind": "table", "table": TABLE, "where": moto})
    env = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "HOME": str(tmp_path)}
    for undone in ("1 step", "0 steps"):
        told = run_command(["verify", "--undo", str(journal)], env=env, folder=tmp_path)
        assert (told.returncode, told.stdout) == (0, f"{undone} undone\n"), told.stderr
    assert client.list_tables()["TableNames"] == []


def test_credentials_of_an_account_may_come_from_its_machine(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "AWS_EC2_METADATA_DISABLED"
    monkeypatch.setenv(name, "true")
    monkeypatch.delenv(name)
    verify_engine.clients("aws")
    assert name not in os.environ
    verify_engine.clients("http://127.0.0.1:9")
    assert os.environ[name] == "true"


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (["--narrow"], "needs --engine"),
        (["--engine", "aws", "--start"], "plays no scenes"),
        (["--engine", "http://127.0.0.1:9", "--max-dollars", "0.01"], "is more than --max-dollars"),
        (["--engine", "http://127.0.0.1:9"], "is it a DynamoDB"),
    ],
)
def test_an_impossible_comparison_is_refused(more: list[str], error: str, tmp_path: Path) -> None:
    env = {
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_MAX_ATTEMPTS": "1",
        "HOME": str(tmp_path),
        "COLUMNS": "200",
    }
    told = run_command(["verify", "--yes", *more], env=env, folder=tmp_path)
    assert told.returncode in (1, 2)
    assert error in told.stderr
