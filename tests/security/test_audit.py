"""The audit has a line for each call that changes something and for each refused key."""

from __future__ import annotations

import json
import logging
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.commands import run_command
from tests.listings import key_id
from tests.security.contract import CALLS, Call, Stage, names_for, set_stage
from tests.stack import COMMAND, Start, environment

from cirrusmq_lambda import audit
from cirrusmq_local.testing import Client

FIELDS = ("account", "key_id", "route", "resource", "code", "source")
DATA = (
    *("messages", "receive", "peek", "delete", "visibility", "give-back", "dead-letter", "match"),
    *("commit", "rollback"),
)


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append({name: getattr(record, name) for name in ("request_id", *FIELDS)})

    def take(self) -> list[dict[str, Any]]:
        taken, self.records = self.records, []
        return taken


@pytest.fixture
def lines() -> Iterator[Lines]:
    held, logger = Lines(), logging.getLogger(audit.SERVICE)
    logger.addHandler(held)
    yield held
    logger.removeHandler(held)


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = set_stage()
    yield made
    made.world.engine.close()


def changes(call: Call) -> bool:
    """Whether the call changes more than messages."""
    of_message = call.route.startswith("/queues/{queue}/messages/{id}")
    return call.method != "GET" and call.route.rpartition("/")[2] not in DATA and not of_message


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_change_is_a_line_and_nothing_else_is(stage: Stage, call: Call, lines: Lines) -> None:
    names = names_for(stage, call)

    reply = stage.make(stage.owner, call, names)

    told = lines.take()
    if not changes(call):
        assert told == []
        return
    ((line),) = told
    assert line["account"] == "alice"
    assert line["key_id"] == key_id(stage.owner)
    assert line["route"] == str(call)
    assert line["code"] == ("Ok" if reply.status < 400 else reply.code)
    assert line["source"] == "127.0.0.1"
    if call.names:
        assert line["resource"] == "/".join(names[name] for name in call.names)
    else:
        assert line["resource"] == reply.json["access_key_id"]


@pytest.mark.parametrize("call", [call for call in CALLS if call.needs_key], ids=str)
def test_every_refused_key_is_a_line(stage: Stage, call: Call, lines: Lines) -> None:
    made = stage.owner.post("/keys", {"scope": {}}).json
    nothing = Client(stage.world, f"Bearer {made['access_key_id']}:{made['secret']}")
    wrong = Client(stage.world, f"Bearer {made['access_key_id']}:wrong")
    lines.take()

    stage.make(wrong, call, names_for(stage, call))
    stage.make(nothing, call, names_for(stage, call))

    unknown, forbidden = lines.take()
    assert (unknown["account"], unknown["key_id"]) == (None, made["access_key_id"])
    assert (forbidden["account"], forbidden["key_id"]) == ("alice", made["access_key_id"])
    assert (unknown["code"], forbidden["code"]) == ("Unauthenticated", "Forbidden")
    assert unknown["route"] == forbidden["route"] == str(call)


def test_a_secret_in_the_place_of_a_key_is_not_told(stage: Stage, lines: Lines) -> None:
    made = stage.owner.post("/keys").json
    lines.take()
    for text in (
        made["secret"],
        f"{made['secret']}:{made['access_key_id']}",
        f"x {made['secret']}",
        f"{made['access_key_id']} {made['secret']}",
    ):
        assert Client(stage.world, f"Bearer {text}").get("/queues").status == 401
    told = lines.take()
    assert len(told) == 4
    assert made["secret"] not in repr(told)


def test_the_first_admin_key_is_always_told(stage: Stage, lines: Lines) -> None:
    made = stage.world.run("manage", {"create_admin_key": {"account": "carol"}})
    (line,) = lines.take()
    assert (line["route"], line["account"]) == ("create_admin_key", "carol")
    assert line["resource"] == made["access_key_id"]
    assert made["secret"] not in repr(line)


def test_a_line_is_written_at_every_level_of_the_log(stage: Stage) -> None:
    """Its logger has a level of its own."""
    from cirrusmq_lambda.observability import logger

    before = logger.log_level
    logger.setLevel("ERROR")
    try:
        told = {"request_id": "r", "route": "create_admin_key", "name": "", "code": "Ok"}
        audit.record(stage.world.core, **told)
        assert logging.getLogger(audit.SERVICE).isEnabledFor(logging.INFO)
    finally:
        logger.setLevel(before)


def test_on_one_machine_a_command_reads_it(start: Start) -> None:
    up = start()
    client = up.client()
    client.put("/queues/orders")
    client.post("/queues/orders/messages", json={"messages": [{"body": "x"}]})
    made = client.post("/keys", json={"account": "carol", "scope": {"send": "all"}}).json()
    bad = {"authorization": f"Bearer {made['access_key_id']}:wrong"}
    assert client.get("/queues", headers=bad).status_code == 401

    def audit(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["audit", "--data", str(up.folder), *arguments]
        return run_command(command, env=environment(), folder=up.folder)

    def shown(*arguments: str) -> list[dict[str, Any]]:
        run = audit("--json", *arguments)
        assert run.returncode == 0, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines()]

    every = shown()
    assert [each["route"] for each in every] == [
        "create_admin_key",
        "PUT /queues/{queue}",
        "POST /keys",
        "GET /queues",
    ]
    assert [each["code"] for each in shown("--code", "Unauthenticated")] == ["Unauthenticated"]
    assert shown("--account", "carol") == []
    assert len(shown("--account", "local", "--since", every[1]["at"])) == 2
    assert shown("--since", "2099-01-01T00:00:00Z") == []
    assert "PUT /queues/{queue}  orders  Ok" in audit().stdout
    follower = subprocess.Popen(
        [str(COMMAND), "audit", "--data", str(up.folder), "--json", "--follow"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follower.stdout is not None
    try:
        assert [json.loads(follower.stdout.readline()) for _ in every] == every
        client.delete("/queues/orders")
        assert json.loads(follower.stdout.readline())["route"] == "DELETE /queues/{queue}"
    finally:
        follower.terminate()
        follower.wait()
        follower.stdout.close()
