"""The runbook of a restore, step by step on moto: tables, settings, parameters, and the service."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.session import get_session
from msgspec.structs import replace
from tests.infra.tools import nested

from cirrusmq.base.timestamps import format_time
from cirrusmq.runtime.core import Tables
from cirrusmq.runtime.store import Store
from cirrusmq.wiring.bootstrap import make_dynamodb
from cirrusmq_local.cloud.template import load
from cirrusmq_local.testing import World
from release import ROOT, read_parameters
from restore import main, restored_name

REGION = "eu-central-1"
AT = datetime(2026, 11, 20, 8, tzinfo=UTC)
TABLES = ("Directory", "Messages", "Usage")


@pytest.fixture
def deployed(in_aws: None) -> dict[str, str]:
    """A stack with the tables as the template makes them; its outputs."""
    tables = nested("tables")
    made = tables.resolve(tables.document["Resources"])
    stack = {
        "Resources": {
            name: {"Type": made[name]["Type"], "Properties": made[name]["Properties"]}
            for name in TABLES
        },
        "Outputs": {f"{name}Table": {"Value": {"Ref": name}} for name in TABLES},
    }
    cloudformation = boto3.client("cloudformation")
    cloudformation.create_stack(StackName="cirrusmq", TemplateBody=json.dumps(stack))
    (found,) = cloudformation.describe_stacks(StackName="cirrusmq")["Stacks"]
    client = boto3.client("dynamodb")
    for each in found["Outputs"]:
        properties = made[each["OutputKey"].removesuffix("Table")]["Properties"]
        # moto's CloudFormation leaves these out.
        client.update_time_to_live(
            TableName=each["OutputValue"],
            TimeToLiveSpecification=properties["TimeToLiveSpecification"],
        )
        client.update_continuous_backups(
            TableName=each["OutputValue"],
            PointInTimeRecoverySpecification=properties["PointInTimeRecoverySpecification"],
        )
    return {each["OutputKey"]: each["OutputValue"] for each in found["Outputs"]}


def settings(name: str) -> dict[str, Any]:
    """Of a table, what a restore loses."""
    client = boto3.client("dynamodb")
    table = client.describe_table(TableName=name)["Table"]
    backups = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    recovery = backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]
    lives = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    tags = client.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]
    return {
        "stream": table.get("StreamSpecification"),
        "ttl": (lives["TimeToLiveStatus"], lives.get("AttributeName")),
        "recovery": recovery,
        "protected": table["DeletionProtectionEnabled"],
        "tags": [tag for tag in tags if not tag["Key"].startswith("aws:")],
        "keys": table["KeySchema"],
    }


def run(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Run the command; the parameters that it answers."""
    capsys.readouterr()  # what functions logged before
    main(["--stack", "cirrusmq", "--at", AT.isoformat()])
    given = read_parameters(ROOT, capsys.readouterr().out.split())
    # A canary would leave nine calls of ten with the old tables.
    assert given["Rollout"] == "AllAtOnce"
    assert len(given) == len(TABLES) + 2
    return given


def test_a_restored_table_has_the_settings_of_its_source(
    deployed: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    parameters = run(capsys)
    for name in TABLES:
        source, restored = deployed[f"{name}Table"], parameters[f"Existing{name}Table"]
        assert restored == f"{source}-restored-20261120T080000Z"
        assert settings(restored) == settings(source)
        assert settings(restored)["recovery"] == "ENABLED"
        assert settings(restored)["ttl"] == ("ENABLED", "expires_at")
        assert settings(restored)["protected"] is True
    table = boto3.client("dynamodb").describe_table(TableName=parameters["ExistingMessagesTable"])
    assert parameters["ExistingMessagesStream"] == table["Table"]["LatestStreamArn"]


def test_a_second_run_finds_the_work_of_the_first(
    deployed: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(capsys)
    boto3.client("dynamodb").update_time_to_live(
        TableName=first["ExistingUsageTable"],
        TimeToLiveSpecification={"Enabled": False, "AttributeName": "expires_at"},
    )
    assert run(capsys) == first
    assert settings(first["ExistingUsageTable"]) == settings(deployed["UsageTable"])
    assert len(boto3.client("dynamodb").list_tables()["TableNames"]) == 2 * len(TABLES)


def test_a_table_restored_before_keeps_its_first_name() -> None:
    assert restored_name("a-Messages-X", AT) == restored_name("a-Messages-X-restored-1", AT)


def test_a_moment_without_a_zone_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--stack", "cirrusmq", "--at", "2026-11-20T08:00:00"])
    assert "must have a zone" in capsys.readouterr().err


def test_the_stack_is_deployed_on_the_restored_tables(
    root: Path, deployed: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    parameters = run(capsys)
    template = load(root / "template.yaml", parameters)
    assert template.tables == []  # it makes none
    environment = template.environment()
    for name in TABLES:
        assert environment[f"{name.upper()}_TABLE"] == parameters[f"Existing{name}Table"]
    stream = parameters["ExistingMessagesStream"]
    assert {each.table for each in template.streams} == {stream}
    # Whatever a function may do on a table that the stack makes it may do on the given one.
    made = load(root / "template.yaml")
    given = {
        f"{name}.Arn": "arn:aws:dynamodb:local:000000000000:table/"
        + parameters[f"Existing{name}Table"]
        for name in TABLES
    }
    given["Messages.StreamArn"] = stream
    given["Messages.Arn/stream/*"] = given["Messages.Arn"] + "/stream/*"
    for before, after in zip(made.functions, template.functions, strict=True):
        expected = {given.get(name, name): held for name, held in before.permissions.items()}
        assert after.permissions == expected, after.name


@pytest.mark.parametrize("given", ["ExistingDirectoryTable", "ExistingUsageTable"])
def test_one_table_can_be_given_alone(root: Path, given: str) -> None:
    template = load(root / "template.yaml", {given: "another"})
    assert len(template.tables) == 2
    assert "another" in template.environment().values()


def test_the_service_goes_on_with_restored_tables(
    deployed: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    store = Store(make_dynamodb(get_session(), REGION), world.random, world.clock.sleep)
    world.core = replace(world.core, store=store, tables=_tables(deployed, "{}Table"))
    client = world.client("alice", admin=True)
    assert client.put("/queues/orders").status == 201
    assert client.put("/topics/news").status == 201
    assert client.put("/topics/news/subscriptions/all", {"protocol": "pull"}).status == 201
    client.send("orders", "a", "b")
    (held, *_) = client.receive("orders", 1)
    # Published at the very end: the old table's stream has it, the new one's has not.
    reply = client.post("/topics/news/messages", {"messages": [{"body": "c"}]})
    assert reply.status == 201

    parameters = run(capsys)
    world.core = replace(world.core, tables=_tables(parameters, "Existing{}Table"))
    client.send("orders", "d")

    # Receipts from before the moment hold, what was visible still is.
    reply = client.post("/queues/orders/messages/delete", {"receipts": [held["receipt"]]})
    assert reply.json["failed"] == []
    left = [each["body"] for _ in range(4) for each in client.receive("orders")]
    assert sorted(left) == ["b", "d"]
    # What fan_out had not handed out is in no stream any more: it is asked for.
    receive = "/topics/news/subscriptions/all/messages/receive"
    assert client.post(receive, {"wait_seconds": 0}).json["messages"] == []
    world.run("replay", {"fan_out_since": format_time(world.clock.now_ms() - 600_000)})
    while world.invoked:
        role, event = world.invoked.popleft()
        world.run(role, event)
    (message,) = client.post(receive, {"wait_seconds": 0}).json["messages"]
    assert message["body"] == "c"
    world.engine.close()


def _tables(named: dict[str, str], pattern: str) -> Tables:
    return Tables(**{name.lower(): named[pattern.format(name)] for name in TABLES})
