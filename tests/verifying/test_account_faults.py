"""Faults of an account are undone exactly, by the run itself or from its journal (on moto)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from cirrusmq_local.verifying.account import Account
from cirrusmq_local.verifying.journal import Journal, play, read_steps

FUNCTION, TABLE = "queue-send", "Messages"
TRUST = {"Version": "2012-10-17", "Statement": []}


class _Ended(Exception):
    """The run ends in the middle of a fault, as by kill -9."""


class Cloud:
    """A function and a table on moto."""

    def __init__(self, folder: Path) -> None:
        region = {"region_name": "us-east-1"}
        self.functions = boto3.client("lambda", **region)
        self.tables = boto3.client("dynamodb", **region)
        role = boto3.client("iam", **region).create_role(
            RoleName="any", AssumeRolePolicyDocument=json.dumps(TRUST)
        )
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as file:
            file.writestr("app.py", "def handler(event, context): return 1\n")
        self.functions.create_function(
            FunctionName=FUNCTION,
            Runtime="python3.11",
            Role=role["Role"]["Arn"],
            Handler="app.handler",
            Environment={"Variables": {"MESSAGES_TABLE": TABLE}},
            Code={"ZipFile": packed.getvalue()},
        )
        self.journal = Journal(folder / "undo.jsonl")
        self.seen: list[Any] = []
        """What is set while a fault lasts."""
        self.look: Any = lambda: None
        sleeps = self._sleep, self._sleep
        self.account = Account(self.functions, self.tables, self.journal, *sleeps)

    def concurrency(self) -> int | None:
        told = self.functions.get_function_concurrency(FunctionName=FUNCTION)
        held: int | None = told.get("ReservedConcurrentExecutions")
        return held

    def alias(self) -> str:
        told = self.functions.get_alias(FunctionName=FUNCTION, Name="live")
        return str(told["FunctionVersion"])

    def _sleep(self, seconds: float) -> None:
        self.seen.append(self.look())


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    with mock_aws():
        yield Cloud(tmp_path)


@pytest.mark.few(2)
@pytest.mark.parametrize("reserved", [None, 0, 7])
def test_a_stopped_function_has_its_reserve_again(cloud: Cloud, reserved: int | None) -> None:
    if reserved is not None:
        cloud.functions.put_function_concurrency(
            FunctionName=FUNCTION, ReservedConcurrentExecutions=reserved
        )
    cloud.look = cloud.concurrency
    cloud.account.stop(FUNCTION)
    assert cloud.seen == [0]
    assert cloud.concurrency() == reserved
    assert read_steps(cloud.journal.path) == {0: None}


@pytest.mark.parametrize(
    ("held", "was"),
    [
        ({}, {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1}),
        (
            {"OnDemandThroughput": {"MaxWriteRequestUnits": 700}},
            {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 700},
        ),
    ],
)
def test_a_lowered_table_has_its_maximum_again(
    cloud: Cloud, held: dict[str, Any], was: dict[str, int]
) -> None:
    """By the requests, which botocore checks: moto knows no maximum."""
    with Stubber(cloud.tables) as stub:
        stub.add_response("describe_table", {"Table": held}, {"TableName": TABLE})
        _expect(stub, {**was, "MaxWriteRequestUnits": 5})
        stub.add_client_error("update_table", "ResourceInUseException")
        _expect(stub, was)
        cloud.account.lower_of(FUNCTION, 5)
        stub.assert_no_pending_responses()
    assert read_steps(cloud.journal.path) == {0: None}


def _expect(stub: Stubber, limit: dict[str, int]) -> None:
    stub.add_response("update_table", {}, {"TableName": TABLE, "OnDemandThroughput": limit})


def test_an_alias_goes_to_the_version_before_and_back(cloud: Cloud) -> None:
    cloud.functions.publish_version(FunctionName=FUNCTION)
    cloud.functions.create_alias(FunctionName=FUNCTION, Name="live", FunctionVersion="1")
    cloud.account.move_alias(FUNCTION)
    assert cloud.seen == [], "there is no version before"
    cloud.functions.update_function_configuration(FunctionName=FUNCTION, Description="second")
    cloud.functions.publish_version(FunctionName=FUNCTION)
    cloud.functions.update_alias(FunctionName=FUNCTION, Name="live", FunctionVersion="2")
    cloud.look = cloud.alias
    cloud.account.move_alias(FUNCTION)
    assert cloud.seen == ["1"]
    assert cloud.alias() == "2"


def test_a_fault_of_a_killed_run_is_undone_from_its_journal(cloud: Cloud) -> None:
    """kill -9 while a function is stopped."""
    cloud.journal.note({"kind": "concurrency", "function": FUNCTION, "was": 7})
    cloud.functions.put_function_concurrency(FunctionName=FUNCTION, ReservedConcurrentExecutions=0)
    assert len(play(cloud.journal.path, cloud.account.undoing())) == 1
    assert cloud.concurrency() == 7
    assert play(cloud.journal.path, cloud.account.undoing()) == []


def test_a_refused_fault_is_undone_all_the_same(cloud: Cloud) -> None:
    def refused() -> None:
        raise _Ended

    cloud.look = refused
    with pytest.raises(_Ended):
        cloud.account.stop(FUNCTION)
    assert cloud.concurrency() is None
    assert read_steps(cloud.journal.path) == {0: None}
