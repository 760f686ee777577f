"""CloudFormation's custom resources: made, changed, renamed, rolled back, deleted, and repeated."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from tests.service.response_bucket import ResponseBucket

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.queues import queues
from cirrusmq_lambda.custom_resources import responses
from cirrusmq_lambda.custom_resources.identity import Identity, Place, read_identity
from cirrusmq_local.cloud.cloudformation import Intrinsic, read
from cirrusmq_local.testing import Client, World

EXAMPLE = Path(__file__).parents[2] / "infra/examples/shop_template.yaml"

STACK = "arn:aws:cloudformation:eu-central-1:123456789012:stack/shop/8f1c2d30"
FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:cirrusmq-manage:live"
Answer = dict[str, Any]


class Stack:
    """A stack's resources, asked for as CloudFormation asks."""

    def __init__(self, world: World, bucket: ResponseBucket) -> None:
        self.world, self.bucket = world, bucket
        self.requests = 0
        self.made: dict[str, tuple[str, str, dict[str, Any]]] = {}
        """Each resource that `create` made: type, physical id and properties, by logical id."""

    def event(
        self, kind: str, logical_id: str, type_name: str, physical_id: str = "", **properties: Any
    ) -> dict[str, Any]:
        self.requests += 1
        known = {"PhysicalResourceId": physical_id} if physical_id else {}
        return {
            "RequestType": kind,
            "ServiceToken": FUNCTION,
            "ResponseURL": self.bucket.url(self.requests),
            "StackId": STACK,
            "RequestId": f"4d6a-{self.requests}",
            "LogicalResourceId": logical_id,
            "ResourceType": f"Custom::CirrusMQ{type_name}",
            "ResourceProperties": {"ServiceToken": FUNCTION, "Account": "acme"} | properties,
            **known,
        }

    def ask(self, *args: Any, **properties: Any) -> Answer:
        return self.send(self.event(*args, **properties))

    def send(self, event: dict[str, Any]) -> Answer:
        """CloudFormation's view: what was PUT, which is what the function says it did."""
        answered: Answer = self.world.run("manage", event)
        assert self.bucket.answers[-1] == answered
        assert answered["RequestId"] == event["RequestId"]
        assert answered["StackId"] == STACK
        assert answered["LogicalResourceId"] == event["LogicalResourceId"]
        return answered

    def create(self, logical_id: str, type_name: str, **properties: Any) -> str:
        answer = self.ask("Create", logical_id, type_name, **properties)
        assert answer["Status"] == "SUCCESS", answer
        self.made[logical_id] = (type_name, str(answer["PhysicalResourceId"]), properties)
        return str(answer["PhysicalResourceId"])

    def delete_all(self) -> None:
        """Delete each resource that `create` made, the last one first."""
        for logical_id in reversed(self.made):
            type_name, physical_id, properties = self.made[logical_id]
            answer = self.ask("Delete", logical_id, type_name, physical_id, **properties)
            assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", physical_id)


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ResponseBucket]:
    made = ResponseBucket(tmp_path)

    def make_pool() -> urllib3.PoolManager:
        return urllib3.PoolManager(ca_certs=str(made.authority))

    monkeypatch.setattr(responses, "make_pool", make_pool)
    monkeypatch.setattr(urllib3.util.connection, "create_connection", made.connect)
    yield made
    made.close()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def stack(world: World, bucket: ResponseBucket) -> Stack:
    return Stack(world, bucket)


@pytest.fixture
def acme(world: World) -> Client:
    return world.client("acme")


def test_each_type_is_made_and_deleted(stack: Stack, acme: Client) -> None:
    texts = {"delay_seconds": "5", "receive_wait_seconds": "1.5", "labels": {"team": "3"}}
    given = texts | {
        "dead_letter": {"queue": "orders-dead", "max_receives": "3"},
        "retry": {"policy": "custom", "waits": ["1", "2.5"], "jitter": "0.5"},
    }
    billing = {"protocol": "queue", "endpoint": "orders"}
    group = {"protocol": "pull", "ordered": "true"}
    properties: dict[str, Any]
    for logical_id, type_name, properties in (
        ("Dead", "Queue", {"Name": "orders-dead"}),
        ("Orders", "Queue", {"Name": "orders", "Attributes": given}),
        ("Audit", "Receiver", {"Queue": "orders", "Name": "audit"}),
        ("Partner", "Grant", {"Queue": "orders", "To": "partner", "Permission": "send"}),
        ("Sales", "Topic", {"Name": "sales", "Attributes": {"partitions": "3"}}),
        ("Press", "TopicGrant", {"Topic": "sales", "To": "press", "Permission": "subscribe"}),
        ("Billing", "Subscription", {"Topic": "sales", "Name": "billing", "Attributes": billing}),
        ("Group", "Subscription", {"Topic": "sales", "Name": "group", "Attributes": group}),
    ):
        stack.create(logical_id, type_name, **properties)
    shown = acme.get("/queues/orders").json
    assert (shown["delay_seconds"], shown["receive_wait_seconds"]) == (5, 1.5)
    assert shown["labels"] == {"team": "3"}
    assert shown["retry"] == {"policy": "custom", "waits": [1, 2.5], "jitter": 0.5}
    assert acme.get("/queues/orders/receivers/audit").status == 200
    assert acme.get("/queues/orders/grants/partner").json["permission"] == "send"
    assert acme.get("/topics/sales").json["partitions"] == 3
    assert acme.get("/topics/sales/grants/press").json["permission"] == "subscribe"
    assert acme.get("/topics/sales/subscriptions/group").json["ordered"] is True
    assert acme.get("/topics/sales/subscriptions/billing").json["endpoint"] == "orders"
    stack.delete_all()
    assert acme.get("/queues").json["queues"] == []
    assert acme.get("/topics").json["topics"] == []


def test_a_schedule_is_made_changed_and_deleted(stack: Stack, acme: Client) -> None:
    stack.create("Orders", "Queue", Name="orders")
    given = {"queue": "orders", "every_seconds": "3600", "message": {"body": "count"}}
    physical_id = stack.create("Hourly", "Schedule", Name="hourly", Attributes=given)
    shown = acme.get("/schedules/hourly").json
    assert (shown["every_seconds"], shown["missed"]) == (3600, "one")

    changed = given | {"every_seconds": "60", "missed": "all"}
    answer = stack.ask(
        "Update", "Hourly", "Schedule", physical_id, Name="hourly", Attributes=changed
    )
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", physical_id)
    shown = acme.get("/schedules/hourly").json
    assert (shown["every_seconds"], shown["missed"]) == (60, "all")

    other = stack.ask("Create", "Again", "Schedule", Name="hourly", Attributes=given)
    assert (other["Status"], acme.get("/schedules/hourly").json["every_seconds"]) == ("FAILED", 60)
    assert "did not make it" in other["Reason"]

    stack.ask("Delete", "Again", "Schedule", other["PhysicalResourceId"], Name="hourly")
    assert acme.get("/schedules/hourly").status == 200
    answer = stack.ask("Delete", "Hourly", "Schedule", physical_id, Name="hourly")
    assert answer["Status"] == "SUCCESS"
    assert acme.get("/schedules/hourly").status == 404


def test_the_answer_tells_the_name_and_the_id(stack: Stack, acme: Client) -> None:
    answer = stack.ask("Create", "Orders", "Queue", Name="orders")
    queue_id = acme.get("/queues/orders").json["id"]
    assert answer["Data"] == {"Name": "orders", "Id": queue_id}
    assert answer["PhysicalResourceId"] == f"acme/queue/orders/{queue_id}"
    assert stack.bucket.headers[-1].get("content-type") == ""
    assert stack.bucket.paths[-1].endswith("?X-Amz-Signature=a%2Bb")


def test_the_example_template_is_made_and_removed(stack: Stack, acme: Client) -> None:
    """Its resources in their order of dependence, each value as CloudFormation passes it on."""
    made: dict[str, Answer] = {}

    def passed_on(value: Any) -> Any:
        match value:
            case Intrinsic(function="GetAtt", argument=argument):
                name, _, attribute = argument.partition(".")
                return made[name]["Data"][attribute]
            case Intrinsic(function="Ref"):
                return "acme"
            case Intrinsic() | bool() | int() | float():
                return str(value)
            case dict():
                return {key: passed_on(held) for key, held in value.items()}
            case list():
                return [passed_on(held) for held in value]
        return value

    for name, resource in read(EXAMPLE)["Resources"].items():
        if resource["Type"].startswith("Custom::CirrusMQ"):
            properties = passed_on(resource["Properties"]) | {"ServiceToken": FUNCTION}
            type_name = resource["Type"].removeprefix("Custom::CirrusMQ")
            stack.create(name, type_name, **properties)
            made[name] = stack.bucket.answers[-1]
    assert acme.get("/queues/orders").json["dead_letter"] == {
        "queue": "orders-dead",
        "max_receives": 5,
    }
    assert acme.get("/topics/sales/subscriptions/packing").json["filter"] == {"tags": ["paid"]}
    assert len(made) == 6
    stack.delete_all()
    assert acme.get("/queues").json["queues"] == []


def test_a_request_made_twice_is_done_once(stack: Stack, acme: Client) -> None:
    event = stack.event("Create", "Orders", "Queue", Name="orders")
    first = stack.send(event)
    assert stack.send(event) == first
    physical_id = str(first["PhysicalResourceId"])
    renamed = stack.event("Update", "Orders", "Queue", physical_id, Name="bills")
    second = stack.send(renamed)
    assert stack.send(renamed) == second
    assert [each["name"] for each in acme.get("/queues").json["queues"]] == ["bills", "orders"]
    removal = stack.event("Delete", "Orders", "Queue", physical_id, Name="orders")
    assert stack.send(removal)["Status"] == "SUCCESS"
    assert stack.send(removal)["Status"] == "SUCCESS"
    assert [each["name"] for each in acme.get("/queues").json["queues"]] == ["bills"]


def test_a_queue_made_by_others_is_neither_taken_nor_deleted(stack: Stack, acme: Client) -> None:
    acme.put("/queues/orders")
    answer = stack.ask("Create", "Orders", "Queue", Name="orders")
    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == "queue orders exists, and this stack did not make it"
    rolled_back = str(answer["PhysicalResourceId"])
    assert stack.ask("Delete", "Orders", "Queue", rolled_back, Name="orders")["Status"] == "SUCCESS"
    assert acme.get("/queues/orders").status == 200
    mine = stack.create("Bills", "Queue", Name="bills")
    acme.delete("/queues/bills")
    acme.put("/queues/bills")
    assert stack.ask("Delete", "Bills", "Queue", mine, Name="bills")["Status"] == "SUCCESS"
    assert acme.get("/queues/bills").status == 200
    answer = stack.ask("Update", "Bills", "Queue", mine, Name="bills")
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", mine)


def test_an_update_changes_and_resets_attributes_in_place(stack: Stack, acme: Client) -> None:
    attributes = {"delay_seconds": "5", "description": "a"}
    made = stack.create("Orders", "Queue", Name="orders", Attributes=attributes)
    answer = stack.ask(
        "Update", "Orders", "Queue", made, Name="orders", Attributes={"description": "b"}
    )
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", made)
    shown = acme.get("/queues/orders").json
    assert (shown["delay_seconds"], shown["description"]) == (0, "b")
    answer = stack.ask(
        "Update", "Orders", "Queue", made, Name="orders", Attributes={"ordered": "true"}
    )
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", made)
    assert answer["Reason"] == "ordered: is fixed when the queue is created"


def test_updates_of_the_other_types_change_them_in_place(stack: Stack, acme: Client) -> None:
    topic = stack.create("Sales", "Topic", Name="sales", Attributes={"description": "a"})
    stack.create("Orders", "Queue", Name="orders")
    group = {"Topic": "sales", "Name": "group"}
    made = stack.create("Group", "Subscription", **group, Attributes={"protocol": "pull"})
    grant = {"Queue": "orders", "To": "partner"}
    granted = stack.create("Grant", "Grant", **grant, Permission="send")
    press = {"Topic": "sales", "To": "press"}
    shared = stack.create("Press", "TopicGrant", **press, Permission="info")
    audit = {"Queue": "orders", "Name": "audit"}
    receiver = stack.create("Audit", "Receiver", **audit)
    filtered = group | {"Attributes": {"protocol": "pull", "filter": {"tags": ["paid"]}}}
    properties: dict[str, Any]
    for type_name, physical_id, properties in (
        ("Topic", topic, {"Name": "sales"}),
        ("Subscription", made, filtered),
        ("Grant", granted, grant | {"Permission": "info"}),
        ("TopicGrant", shared, press | {"Permission": "full"}),
        ("Receiver", receiver, audit),
    ):
        answer = stack.ask("Update", "Made", type_name, physical_id, **properties)
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", physical_id)
    assert acme.get("/topics/sales").json["description"] is None
    assert acme.get("/topics/sales/subscriptions/group").json["filter"] == {"tags": ["paid"]}
    assert acme.get("/queues/orders/grants/partner").json["permission"] == "info"
    assert acme.get("/topics/sales/grants/press").json["permission"] == "full"
    fixed = {"start": "earliest"}
    answer = stack.ask("Update", "Audit", "Receiver", receiver, **audit, Attributes=fixed)
    assert answer["Status"] == "FAILED"


def test_a_function_must_be_listed_by_the_deployment(stack: Stack, acme: Client) -> None:
    shop = {"invoke": {"function": "handler", "batch": "16"}}
    queue = stack.create("Orders", "Queue", Name="orders", Attributes=shop)
    stack.create("Sales", "Topic", Name="sales")
    group = {"Topic": "sales", "Name": "group"}
    pulled = {"protocol": "pull"}
    member = stack.create("Group", "Subscription", **group, Attributes=pulled | shop)
    paths = ("/queues/orders", "/topics/sales/subscriptions/group")
    assert [acme.get(path).json["invoke"]["batch"] for path in paths] == [16, 16]

    other = {"invoke": {"function": "other"}}
    for kind, made, named, attributes in (
        ("Queue", queue, {"Name": "orders"}, other),
        ("Subscription", member, group, pulled | other),
    ):
        answer = stack.ask("Update", "Named", kind, made, **named, Attributes=attributes)
        assert answer["Status"] == "FAILED"
        assert str(answer["Reason"]).startswith("invoke.function: must be one of handler")
    assert stack.ask("Update", "Orders", "Queue", queue, Name="orders")["Status"] == "SUCCESS"
    assert acme.get("/queues/orders").json["invoke"] is None


def test_another_name_is_another_queue_until_a_rollback_brings_the_first_one_back(
    stack: Stack, acme: Client
) -> None:
    first = stack.create("Orders", "Queue", Name="orders")
    renamed = stack.ask("Update", "Orders", "Queue", first, Name="bills")
    second = str(renamed["PhysicalResourceId"])
    assert second != first
    assert renamed["Data"]["Name"] == "bills"
    back = stack.ask("Update", "Orders", "Queue", second, Name="orders")
    assert back["PhysicalResourceId"] == first
    assert stack.ask("Delete", "Orders", "Queue", second, Name="bills")["Status"] == "SUCCESS"
    assert [each["name"] for each in acme.get("/queues").json["queues"]] == ["orders"]


def test_a_deleted_queue_is_made_again_by_an_update(stack: Stack, acme: Client) -> None:
    made = stack.create("Orders", "Queue", Name="orders")
    acme.delete("/queues/orders")
    answer = stack.ask("Update", "Orders", "Queue", made, Name="orders")
    assert answer["Status"] == "SUCCESS"
    assert answer["PhysicalResourceId"] != made
    assert stack.ask("Delete", "Orders", "Queue", made, Name="orders")["Status"] == "SUCCESS"
    assert acme.get("/queues/orders").status == 200


def test_contents_are_deleted_only_by_order_of_the_template(stack: Stack, acme: Client) -> None:
    made = stack.create("Orders", "Queue", Name="orders")
    acme.send("orders", "one", "two")
    answer = stack.ask("Delete", "Orders", "Queue", made, Name="orders")
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", made)
    assert answer["Reason"].startswith("queue orders has 2 messages: ")
    forced = stack.ask("Delete", "Orders", "Queue", made, Name="orders", DeleteWithContents="true")
    assert forced["Status"] == "SUCCESS"
    assert acme.get("/queues/orders").status == 404
    topic = stack.create("Sales", "Topic", Name="sales")
    acme.put("/topics/sales/subscriptions/mine", {"protocol": "pull"})
    answer = stack.ask("Delete", "Sales", "Topic", topic, Name="sales")
    assert answer["Reason"].startswith("topic sales has 1 subscription: ")


@pytest.mark.parametrize(
    ("type_name", "properties", "reason"),
    [
        ("Queue", {}, "Name: this field is needed"),
        ("Queue", {"Name": "orders", "Size": "3"}, "Size: this field is not known"),
        ("Queue", {"Name": "9."}, "queue: must be 1 to 80 characters"),
        ("Queue", {"Name": "orders", "Account": "a b"}, "Account: must be 1 to 64 characters"),
        *[
            ("Queue", {"Name": "orders", "Attributes": attributes}, reason)
            for attributes, reason in (
                (
                    {"delay_seconds": "soon"},
                    "Attributes.delay_seconds: must be an integer from 0 to ",
                ),
                ({"ordered": "perhaps"}, "Attributes.ordered: Expected bool"),
                (
                    {"retry": {"policy": "custom", "waits": ["x"]}},
                    "retry.waits[0]: must be a number",
                ),
                ({"invoke": {"function": "pack"}}, "invoke.function: must be one of handler: "),
            )
        ],
        ("Table", {"Name": "orders"}, "Type: must be one of Custom::CirrusMQQueue, "),
        (
            "Subscription",
            {
                "Topic": "sales",
                "Name": "web",
                "Attributes": {"protocol": "http", "endpoint": "https://example.com"},
            },
            "Attributes.protocol: must be queue or pull: ",
        ),
        (
            "Receiver",
            {"Queue": "nowhere", "Name": "audit"},
            "account acme has no queue nowhere",
        ),
    ],
)
def test_an_impossible_create_is_answered_and_its_removal_is_done(
    stack: Stack, acme: Client, type_name: str, properties: dict[str, Any], reason: str
) -> None:
    answer = stack.ask("Create", "Made", type_name, **properties)
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].startswith(reason)
    removed = stack.ask(
        "Delete", "Made", type_name, str(answer["PhysicalResourceId"]), **properties
    )
    assert removed["Status"] == "SUCCESS"
    assert acme.get("/queues").json["queues"] == []


def test_an_unexpected_failure_is_answered(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> Any:
        raise ZeroDivisionError("a secret detail")

    monkeypatch.setattr(queues, "create_queue", fail)
    answer = stack.ask("Create", "Orders", "Queue", Name="orders")
    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == "Something went wrong; the request is in the log."


def test_a_too_long_request_is_answered_before_the_function_ends(
    stack: Stack, acme: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it made meanwhile is known to the rollback by the id in the answer."""
    goes_on, ended, created = threading.Event(), threading.Event(), queues.create_queue

    def hang(*args: Any, **options: Any) -> Any:
        goes_on.wait(20)
        try:
            return created(*args, **options)
        finally:
            ended.set()

    monkeypatch.setattr(queues, "create_queue", hang)
    monkeypatch.setattr(responses, "ANSWER_SECONDS", 28.8)
    answer = stack.ask("Create", "Orders", "Queue", Name="orders")
    assert (answer["Status"], answer["Reason"][:19]) == ("FAILED", "This took too long.")
    goes_on.set()
    assert ended.wait(20)
    assert acme.get("/queues/orders").status == 200
    rolled_back = str(answer["PhysicalResourceId"])
    assert stack.ask("Delete", "Orders", "Queue", rolled_back, Name="orders")["Status"] == "SUCCESS"
    assert acme.get("/queues/orders").status == 404


@pytest.mark.parametrize("write", [1, 2, 3])
def test_a_create_ended_anywhere_is_finished_by_its_repetition(
    stack: Stack, acme: Client, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    """Also where it was ended after it was made, before it was answered."""
    stack.create("Orders", "Queue", Name="orders")
    event = stack.event("Create", "Audit", "Receiver", Queue="orders", Name="audit")
    writes = 0
    transact = type(stack.world.core.store).transact

    class Ended(BaseException):
        pass

    def ends(self: Any, *args: Any, **options: Any) -> Any:
        nonlocal writes
        writes += 1
        done = transact(self, *args, **options)
        if writes == write:
            raise Ended
        return done

    with monkeypatch.context() as patched:
        patched.setattr(type(stack.world.core.store), "transact", ends)
        ended = False
        try:
            stack.send(event)
        except Ended:
            ended = True
    answer = stack.send(event)
    assert answer["Status"] == "SUCCESS"
    assert acme.get("/queues/orders/receivers/audit").json["id"] == answer["Data"]["Id"]
    assert ended


def test_an_untaken_answer_is_sent_again(stack: Stack) -> None:
    stack.bucket.statuses = [503, 500]
    assert stack.ask("Create", "Orders", "Queue", Name="orders")["Status"] == "SUCCESS"
    stack.bucket.statuses = [403]
    event = stack.event("Create", "Bills", "Queue", Name="bills")
    with pytest.raises(urllib3.exceptions.HTTPError, match="403"):
        stack.send(event)
    assert stack.send(event)["Status"] == "SUCCESS"


@pytest.mark.parametrize(
    "url",
    [
        "http://bucket.s3.amazonaws.com/a",
        "https://example.com/a",
        "https://bucket.s3.amazonaws.com.example.com/a",
        "https://s3.amazonaws.com@example.com/a",
        "https://a:b@bucket.s3.amazonaws.com/a",
        "https://169.254.169.254/a",
        "https://evil.com/.s3.amazonaws.com",
        "https://bucket.execute-api.amazonaws.com/",
    ],
)
def test_nothing_is_done_for_an_address_outside_s3(stack: Stack, acme: Client, url: str) -> None:
    event = stack.event("Create", "Orders", "Queue", Name="orders") | {"ResponseURL": url}
    with pytest.raises(InvalidParameter, match="ResponseURL"):
        stack.world.run("manage", event)
    assert acme.get("/queues").json["queues"] == []


@pytest.mark.parametrize(
    "url",
    [
        "https://cloudformation-custom-resource-response-useast1.s3.amazonaws.com/a?b=c",
        "https://cloudformation-custom-resource-response-eusouth1.s3.eu-south-1.amazonaws.com/a",
        "https://cloudformation-custom-resource-response-euwest1.s3-eu-west-1.amazonaws.com/a",
        "https://cloudformation-custom-resource-response-cnnorth1.s3.cn-north-1.amazonaws.com.cn/a",
    ],
)
def test_the_buckets_of_cloudformation_are_taken(url: str) -> None:
    assert responses.check_url(url) == url


def test_an_id_is_read_as_it_was_written_and_stays_short_enough() -> None:
    for place in (
        Place("acme", "queue", "q" * 64),
        Place("a" * 64, "subscription", "s" * 64, "t" * 64),
    ):
        identity = Identity(place, ("id1", "id2"))
        assert read_identity(str(identity)) == identity
        long = Identity(place, tuple(f"{number:012d}" for number in range(100)))
        assert len(str(long)) <= 1_024
        read = read_identity(str(long))
        assert read is not None
        assert read.ids[0] == "000000000000"
    for other in ("", "a", "acme/queue/orders", "acme/table/orders/1", "acme/receiver/orders/1"):
        assert read_identity(other) is None


def test_a_change_is_in_the_audit_of_its_account_and_no_key_made_it(
    stack: Stack, acme: Client
) -> None:
    made = stack.create("Orders", "Queue", Name="orders")
    assert stack.ask("Create", "Bad", "Queue", Name="a b")["Status"] == "FAILED"
    stack.world.clock.pass_seconds(1)
    stack.ask("Delete", "Orders", "Queue", made)

    found = acme.get("/audit").json["changes"]

    assert [(each["route"], each["resource"]) for each in found] == [
        ("Delete Custom::CirrusMQQueue", "Orders"),
        ("Create Custom::CirrusMQQueue", "Orders"),
    ]
    assert {(each["account"], each["key_id"]) for each in found} == {(None, None)}
