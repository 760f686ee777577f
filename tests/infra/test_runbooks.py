"""The runbooks: they can be found, name what there is, and their steps do what they say."""

from __future__ import annotations

import re
from pathlib import Path

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError
from tests.infra.tools import ROOT, nested

from cirrusmq_local.cloud.cloudformation import StackTemplate
from cirrusmq_local.testing import World

MANUAL = ROOT / "infra/manual"
SECTION = "When something happens"
(_LISTED,) = (
    section["pages"]
    for section in yaml.safe_load((MANUAL / "navigation.yaml").read_text("utf-8"))
    if section["title"] == SECTION
)
PAGES = [MANUAL / f"{name}.md" for name in _LISTED]
# Written with a capital in the middle, as templates name their parts.
NAME = re.compile(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`")
# Names of the contract and of AWS, and values of parameters.
OTHERS = {"ReportsMachine", "ReportsBucket", "AllAtOnce"}


@pytest.fixture(scope="module")
def named(stacks: list[StackTemplate]) -> set[str]:
    """Names of parameters, resources and outputs of the templates."""
    found: set[str] = set()
    for stack in stacks:
        for section in ("Parameters", "Resources", "Outputs"):
            found |= set(stack.document.get(section) or {})
    return found


def test_every_page_can_be_found() -> None:
    above = (MANUAL / "operating.md").read_text()
    assert PAGES
    for page in PAGES:
        assert f"({page.name})" in above, page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_on_a_page_exists(page: Path, named: set[str]) -> None:
    text = page.read_text()
    for test in re.findall(r"`(tests/[^`]+)`", text):
        assert (ROOT / test).exists(), test
    assert set(NAME.findall(text)) <= named | OTHERS


def test_a_stuck_subscription_is_seen_and_started_again() -> None:
    world = World()
    client = world.client("alice")
    assert client.put("/topics/news").status == 201
    endpoint = {"protocol": "http", "endpoint": "http://127.0.0.1:9/hook"}
    assert client.put("/topics/news/subscriptions/web", endpoint).status == 201
    world.endpoint = lambda url: "status 500"
    (sent,) = client.post("/topics/news/messages", {"messages": [{"body": "a"}]}).json["messages"]
    world.settle()

    shown = client.get("/topics/news/subscriptions/web").json
    assert shown["state"] == "retrying"
    (traced,) = client.get(f"/topics/news/messages/{sent['id']}").json["deliveries"]
    assert (traced["state"], traced["last_error"]) == ("retrying", "status 500")

    # Its execution is gone: nobody is at it when its time is over.
    started = len(world.executions)
    world.clock.pass_seconds(3_600)
    world.run("sweep")
    assert len(world.executions) == started + 1
    world.engine.close()


def test_a_drained_queue_shows_nothing_left() -> None:
    world = World()
    admin, producer = world.client("alice", admin=True), world.client("alice")
    assert admin.put("/queues/orders").status == 201
    producer.send("orders", "a", "b")
    key = producer.authorization.removeprefix("Bearer ").partition(":")[0]
    assert admin.delete(f"/keys/{key}").status == 204
    world.clock.pass_seconds(60)
    assert producer.post("/queues/orders/messages", {"messages": [{"body": "c"}]}).status == 401

    counts = admin.get("/queues/orders").json["counts"]
    assert counts["active"] == 2
    held = admin.receive("orders")
    receipts = {"receipts": [message["receipt"] for message in held]}
    assert admin.post("/queues/orders/messages/delete", receipts).json["failed"] == []
    counts = admin.get("/queues/orders").json["counts"]
    assert not any(counts.values())
    world.engine.close()


@pytest.mark.usefixtures("in_aws")
def test_a_table_goes_once_its_protection_is_off() -> None:
    dynamodb, tables = boto3.client("dynamodb"), nested("tables")
    properties = tables.resolve(tables.document["Resources"])["Messages"]["Properties"]
    wanted = ("AttributeDefinitions", "KeySchema", "BillingMode", "DeletionProtectionEnabled")
    dynamodb.create_table(TableName="m", **{name: properties[name] for name in wanted})
    with pytest.raises(ClientError, match="DeletionProtectionEnabled"):
        dynamodb.delete_table(TableName="m")
    dynamodb.update_table(TableName="m", DeletionProtectionEnabled=False)
    dynamodb.delete_table(TableName="m")
    assert dynamodb.list_tables()["TableNames"] == []
