"""SNS's protocol `lambda`: a group whose function gets each message in SNS's own form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import SNSEvent
from aws_lambda_powertools.utilities.parser.models import SnsModel
from tests.dialects.conftest import REGION, MakeKey, change_settings, client_of
from tests.dialects.sns_calls import change
from tests.service.topics import Schedules

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.testing import Client, World
from cirrusmq_local.testing.core import FUNCTION

LAMBDA = f"arn:aws:lambda:{REGION}:123456789012:function:{FUNCTION}"
DEAD = json.dumps({"deadLetterTargetArn": f"arn:aws:sqs:{REGION}:shop:dead"})
SENT: dict[str, dict[str, Any]] = {
    "a.b-c": {"DataType": "String", "StringValue": "x"},
    "bytes": {"DataType": "Binary", "BinaryValue": b"\0\1"},
}


@pytest.fixture(autouse=True)
def open_functions(world: World) -> None:
    """A deployment with `InvokeFunctionsBy` managers: keys of SDKs are never admin keys."""
    change_settings(world, functions_by_managers=True)


@pytest.fixture
def events(world: World) -> list[dict[str, Any]]:
    """The events that the function got; it succeeds with each."""
    found: list[dict[str, Any]] = []
    world.handle = found.append
    return found


def subscribe(sns: Any, arn: str, endpoint: str = LAMBDA, **attributes: str) -> str:
    made: str = sns.subscribe(
        TopicArn=arn, Protocol="lambda", Endpoint=endpoint, Attributes=attributes
    )["SubscriptionArn"]
    return made


def path_of(shop: Client) -> str:
    """The native path of the topic's one subscription."""
    (found,) = shop.get("/topics/drinks/subscriptions").json["subscriptions"]
    return f"/topics/drinks/subscriptions/{found['name']}"


def texts(events: list[dict[str, Any]]) -> list[str]:
    return [each["Sns"]["Message"] for event in events for each in event["Records"]]


def test_an_event_is_as_sns_makes_it(
    world: World, sns: Any, arn: str, events: list[dict[str, Any]]
) -> None:
    made = subscribe(sns, arn)
    sent = sns.publish(TopicArn=arn, Message="tea ☕", Subject="s", MessageAttributes=SENT)
    world.settle()

    (event,) = events
    (record,) = event["Records"]
    assert record.keys() == {"EventSource", "EventVersion", "EventSubscriptionArn", "Sns"}
    assert record["EventSource"] == "aws:sns"
    assert record["EventSubscriptionArn"] == made
    told = record["Sns"]
    assert (told["Message"], told["Subject"], told["TopicArn"]) == ("tea ☕", "s", arn)
    assert told["MessageId"] == sent["MessageId"]
    assert told["MessageAttributes"] == {
        "a.b-c": {"Type": "String", "Value": "x"},
        "bytes": {"Type": "Binary", "Value": "AAE="},
    }
    assert SnsModel.model_validate(event).Records[0].Sns.Message == "tea ☕"
    assert SNSEvent(event).record.sns.unsubscribe_url == told["UnsubscribeUrl"]
    assert made.replace(":", "%3A") in told["UnsubscribeUrl"]


def test_members_of_a_plain_message_are_all_there(
    world: World, sns: Any, arn: str, events: list[dict[str, Any]]
) -> None:
    subscribe(sns, arn)
    sns.publish(TopicArn=arn, Message="tea")
    world.settle()
    message = SNSEvent(events[0]).record.sns
    assert message.get("Subject", "missing") is None
    assert message.message_attributes == {}


def test_each_message_comes_alone(
    world: World, sns: Any, arn: str, events: list[dict[str, Any]]
) -> None:
    subscribe(sns, arn)
    entries = [{"Id": str(each), "Message": str(each)} for each in range(5)]
    sns.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
    world.settle()
    assert [len(event["Records"]) for event in events] == [1] * 5
    assert sorted(texts(events)) == ["0", "1", "2", "3", "4"]


def test_it_is_shown_as_sns_shows_it(sns: Any, arn: str) -> None:
    made = subscribe(sns, arn, FilterPolicy='{"kind": ["tea"]}')
    shown = sns.get_subscription_attributes(SubscriptionArn=made)["Attributes"]
    assert (shown["Protocol"], shown["Endpoint"]) == ("lambda", LAMBDA)
    assert shown["PendingConfirmation"] == "false"
    assert shown["ConfirmationWasAuthenticated"] == "true"
    assert shown["RawMessageDelivery"] == "false"
    assert json.loads(shown["FilterPolicy"]) == {"kind": ["tea"]}
    (listed,) = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
    assert (listed["SubscriptionArn"], listed["Endpoint"]) == (made, LAMBDA)
    sns.unsubscribe(SubscriptionArn=made)
    assert sns.list_subscriptions()["Subscriptions"] == []


def test_to_subscribe_again_finds_it_also_with_bounds_of_a_native_call(
    sns: Any, shop: Client, arn: str
) -> None:
    made = subscribe(sns, arn)
    wanted = {"function": FUNCTION, "batch": 16, "max_concurrency": 2}
    settings = {"invoke": wanted}
    assert shop.patch(path_of(shop), settings).status == 200
    assert subscribe(sns, arn) == made
    assert shop.get(path_of(shop)).json["invoke"]["batch"] == 16
    with pytest.raises(sns.exceptions.InvalidParameterException, match="already exists"):
        subscribe(sns, arn, FilterPolicy='{"kind": ["tea"]}')


def test_a_failing_message_is_retried_and_goes_to_the_dead_letter_queue(
    world: World, sns: Any, sqs: Any, shop: Client, arn: str
) -> None:
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    made = subscribe(sns, arn, RedrivePolicy=DEAD)
    shown = sns.get_subscription_attributes(SubscriptionArn=made)["Attributes"]
    assert json.loads(shown["RedrivePolicy"]) == json.loads(DEAD)
    retry = {"policy": "unordered", "max_retries": 1}
    assert shop.patch(path_of(shop), {"retry": retry}).status == 200
    tried: list[str] = []

    def fail(event: dict[str, Any]) -> None:
        tried.extend(texts([event]))
        raise RuntimeError("broken")

    world.handle = fail
    given = json.dumps({"default": "all", "lambda": "for functions"})
    sns.publish(TopicArn=arn, Message=given, MessageStructure="json")
    for _ in range(4):
        world.settle()
        world.clock.pass_seconds(60)
        world.run("sweep")
    world.settle()

    assert tried == ["for functions"] * 2
    (message,) = sqs.receive_message(QueueUrl=dead)["Messages"]
    told = json.loads(message["Body"])
    assert (told["Message"], told["TopicArn"]) == ("for functions", arn)

    events: list[dict[str, Any]] = []
    world.handle = events.append
    sqs.change_message_visibility(
        QueueUrl=dead, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
    )
    assert shop.post("/queues/dead/redrive", {}).status in (200, 202)
    world.settle()
    assert texts(events) == ["for functions"]
    assert events[0]["Records"][0]["EventSource"] == "aws:sns"


@pytest.mark.parametrize(
    ("given", "function", "queue"),
    [
        ({"default": "a"}, "a", "a"),
        ({"default": "a", "sqs": "b"}, "a", "b"),
        ({"default": "a", "https": "b"}, "a", "a"),
        ({"default": "a", "lambda": "b"}, "b", "a"),
        ({"default": "a", "lambda": "b", "https": "b"}, "b", "a"),
        ({"default": "a", "lambda": "b", "sqs": "b", "https": "c"}, "b", "b"),
    ],
)
def test_a_function_has_its_own_text(
    world: World,
    sns: Any,
    sqs: Any,
    arn: str,
    events: list[dict[str, Any]],
    given: dict[str, str],
    function: str,
    queue: str,
    url: str,
) -> None:
    raw = {"RawMessageDelivery": "true"}
    named = f"arn:aws:sqs:{REGION}:shop:orders"
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=named, Attributes=raw)
    subscribe(sns, arn)
    sns.publish(TopicArn=arn, Message=json.dumps(given), MessageStructure="json")
    world.settle()
    assert texts(events) == [function]
    (message,) = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    assert message["Body"] == queue
    assert "MessageAttributes" not in message


def test_a_filter_of_bodies_sees_the_functions_text(
    world: World, sns: Any, arn: str, events: list[dict[str, Any]]
) -> None:
    subscribe(sns, arn, FilterPolicy='{"kind": ["tea"]}', FilterPolicyScope="MessageBody")
    for kind, other in (("tea", "water"), ("water", "tea")):
        both = {"default": json.dumps({"kind": other}), "lambda": json.dumps({"kind": kind})}
        sns.publish(TopicArn=arn, Message=json.dumps(both), MessageStructure="json")
    world.settle()
    assert [json.loads(each) for each in texts(events)] == [{"kind": "tea"}]


def test_a_paused_one_gets_its_messages_later(
    world: World, sns: Any, shop: Client, arn: str, events: list[dict[str, Any]]
) -> None:
    subscribe(sns, arn)
    assert shop.post(f"{path_of(shop)}/pause").status == 200
    sns.publish(TopicArn=arn, Message="tea")
    world.settle()
    assert events == []
    assert shop.post(f"{path_of(shop)}/resume").status == 200
    world.settle()
    assert texts(events) == ["tea"]


def test_its_breaker_tries_one_message_and_gives_none_up(
    world: World, sns: Any, sqs: Any, shop: Client, arn: str
) -> None:
    sqs.create_queue(QueueName="dead")
    subscribe(sns, arn, RedrivePolicy=DEAD)
    path, tried, done = path_of(shop), list[str](), list[str]()
    wanted = {"invoke": {"function": FUNCTION, "max_concurrency": 1, "breaker": {}}}
    assert shop.patch(path, wanted).status == 200
    sent = [f"tea {number}" for number in range(25)]

    def fail(event: dict[str, Any]) -> None:
        assert event["Records"][0]["EventSource"] == "aws:sns"
        tried.extend(texts([event]))
        raise RuntimeError("broken")

    world.handle = fail
    for each in sent:
        sns.publish(TopicArn=arn, Message=each)
    schedules = Schedules(world, sweeps=True)
    schedules.pass_seconds(1_800)
    assert shop.get(path).json["breaker_state"] == "open"
    assert 30 < len(tried) < 100  # 20 until it opens, then at last one a minute

    world.handle = lambda event: done.extend(texts([event]))
    schedules.pass_seconds(1_300)
    assert sorted(done) == sorted(sent)
    assert shop.get(path).json["breaker_state"] == "closed"
    assert shop.get("/queues/dead").json["counts"]["active"] == 0


def test_an_account_with_a_grant_subscribes_a_function_as_far_as_natively(
    world: World, sns: Any, shop: Client, arn: str, make_key: MakeKey, events: list[dict[str, Any]]
) -> None:
    bob = client_of(world, make_key("bob"), "sns")
    with pytest.raises(bob.exceptions.AuthorizationErrorException):
        subscribe(bob, arn)
    shop.put("/topics/drinks/grants/bob", {"permission": "subscribe"})
    made = subscribe(bob, arn)
    sns.publish(TopicArn=arn, Message="tea")
    world.settle()
    assert texts(events) == ["tea"]
    assert bob.get_subscription_attributes(SubscriptionArn=made)["Attributes"]["Owner"] == "bob"
    # A subscription stays when the grant is taken back; its account can end it and make another
    # one as little as natively.
    assert shop.delete("/topics/drinks/grants/bob").status == 204
    sns.publish(TopicArn=arn, Message="later")
    world.settle()
    assert texts(events) == ["tea", "later"]
    with pytest.raises(bob.exceptions.AuthorizationErrorException):
        bob.unsubscribe(SubscriptionArn=made)
    sns.unsubscribe(SubscriptionArn=made)
    with pytest.raises(bob.exceptions.AuthorizationErrorException):
        subscribe(bob, arn)


def test_messages_of_a_rewind_have_the_same_form(
    world: World, sns: Any, shop: Client, arn: str, events: list[dict[str, Any]]
) -> None:
    subscribe(sns, arn)
    since = format_time(world.clock.now_ms())
    world.clock.pass_seconds(1)
    sent = sns.publish(TopicArn=arn, Message="tea")
    world.settle()
    world.clock.pass_seconds(60)
    answer = shop.post(f"{path_of(shop)}/rewind", {"to": since})
    assert answer.status == 202, answer.text
    world.settle()
    assert texts(events) == ["tea", "tea"]
    told = events[-1]["Records"][0]
    assert (told["EventSource"], told["Sns"]["MessageId"]) == ("aws:sns", sent["MessageId"])


def test_a_redelivered_message_has_the_same_form_and_text(
    world: World, sns: Any, shop: Client, arn: str, events: list[dict[str, Any]]
) -> None:
    subscribe(sns, arn)
    path, beside = path_of(shop), "/topics/drinks/subscriptions/beside"
    assert shop.put(beside, {"protocol": "pull"}).status == 201
    given = json.dumps({"default": "all", "lambda": "for functions"})
    sns.publish(TopicArn=arn, Message=given, MessageStructure="json")
    world.settle()
    (message,) = shop.post(f"{beside}/messages/receive", {}).json["messages"]
    assert message["body"] == "all"
    again = shop.post(f"{path}/redeliver", {"ids": [message["id"]]})
    assert again.status == 202, again.text
    world.settle()
    assert texts(events) == ["for functions"] * 2
    assert events[0]["Records"][0]["Sns"] == events[1]["Records"][0]["Sns"]


@pytest.mark.parametrize(
    ("endpoint", "attributes", "words"),
    [
        (LAMBDA.replace(FUNCTION, "unknown"), {}, f"must be one of {FUNCTION}"),
        ("arn:aws:lambda:a:b:c", {}, "Lambda endpoint ARN"),
        ("arn:aws:sqs:a:b:function:c", {}, "Lambda endpoint ARN"),
        (f"arn:aws:lambda:a:b:function:{'f' * 257}", {}, "Lambda endpoint ARN"),
        (LAMBDA, {"RawMessageDelivery": "true"}, "does not support raw message delivery"),
        (LAMBDA, {"DeliveryPolicy": "{}"}, "DeliveryPolicy"),
    ],
)
def test_a_wrong_subscribe_is_refused_and_leaves_nothing(
    sns: Any, arn: str, endpoint: str, attributes: dict[str, str], words: str
) -> None:
    with pytest.raises(sns.exceptions.InvalidParameterException, match=words) as refused:
        subscribe(sns, arn, endpoint, **attributes)
    assert "invoke" not in str(refused.value)
    assert sns.list_subscriptions()["Subscriptions"] == []


def test_raw_delivery_is_refused_later_too(sns: Any, arn: str) -> None:
    made = subscribe(sns, arn)
    with pytest.raises(sns.exceptions.InvalidParameterException, match="raw message delivery"):
        change(sns, made, "RawMessageDelivery", "true")


def test_a_fifo_topic_has_no_functions(sns: Any) -> None:
    made = sns.create_topic(Name="a.fifo", Attributes={"FifoTopic": "true"})["TopicArn"]
    with pytest.raises(sns.exceptions.InvalidParameterException, match="queues of SQS alone"):
        subscribe(sns, made)


def test_without_functions_by_managers_a_subscribe_is_refused(
    world: World, sns: Any, arn: str
) -> None:
    change_settings(world, functions_by_managers=False)
    with pytest.raises(sns.exceptions.AuthorizationErrorException, match="InvokeFunctionsBy"):
        subscribe(sns, arn)
    assert sns.list_subscriptions()["Subscriptions"] == []
