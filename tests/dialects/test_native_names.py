"""A refusal names the parameters of the service that a program calls, never the core's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import pytest
from tests.dialects.conftest import REGION, URL, Key, session
from tests.dialects.emq_wire import Emq, RefusedError, fields

from cirrusmq.access.keys import Caller
from cirrusmq_dialects.calling import Call
from cirrusmq_dialects.sns import calls as sns_calls
from cirrusmq_dialects.sns.asking import Asked as SnsAsked
from cirrusmq_dialects.sns.errors import SnsError
from cirrusmq_dialects.sns.serve import _shown as sns_shown
from cirrusmq_dialects.sqs import calls as sqs_calls
from cirrusmq_dialects.sqs.asking import Asked as SqsAsked
from cirrusmq_dialects.sqs.errors import SqsError
from cirrusmq_dialects.sqs.serve import _shown as sqs_shown
from cirrusmq_local.testing import World

Made: TypeAlias = Iterator[tuple[str, dict[str, Any]]]
"""Actions and their members."""
NATIVE = re.compile(
    r"\b[a-z0-9]+(?:_[a-z0-9]+)+|\b(?:cursor|labels)\b|\b(?:endpoint|filter|messages|policy)(?:[:\[]|\.\S)"
)
"""Names that only the native contract has: AWS writes none with an underscore."""
BAD: Mapping[str, tuple[Any, ...]] = {
    "string": ("", "x" * 3_000, "ü\0 /", "{}", '{"a": 1}', "[", "arn:aws:sqs:x:shop:none", 5),
    "integer": (-1, 10**12, "x", []),
    "boolean": ("maybe",),
    "blob": ("?",),
    "list": ("x", [], [None], ["x"] * 300),
    "map": ("x", {}, {"a": None}, {f"k{number}": "v" * 250 for number in range(50)}),
}
"""Values that most parameters of a type refuse."""
TOPIC = f"arn:aws:sns:{REGION}:shop:drinks"
GIVEN: dict[str, Any] = {
    "QueueUrl": f"{URL}/shop/orders",
    "QueueName": "orders",
    "SourceArn": f"arn:aws:sqs:{REGION}:shop:dead",
    "TopicArn": TOPIC,
    "ResourceArn": TOPIC,
    "SubscriptionArn": f"{TOPIC}:teas",
    "Protocol": "sqs",
    "Endpoint": f"arn:aws:sqs:{REGION}:shop:orders",
    "Name": "others",
    "MaxResults": 5,
    "MessageBody": "a",
    "Message": "a",
    "Id": "1",
    "ReceiptHandle": "x",
    "DataType": "String",
    "StringValue": "x",
    "Key": "a",
    "Value": "b",
}
"""Good values, of parameters that are not the bad one."""
OF_TOPIC = ("DisplayName", "Policy", "DeliveryPolicy", "FifoTopic", "ContentBasedDeduplication")
OF_SUBSCRIPTION = (
    *("FilterPolicy", "FilterPolicyScope", "RawMessageDelivery", "RedrivePolicy"),
    *("DeliveryPolicy", "ReplayPolicy"),
)
SINGLE = {"SetTopicAttributes": OF_TOPIC, "SetSubscriptionAttributes": OF_SUBSCRIPTION}
NAMED = {"CreateTopic": OF_TOPIC, "Subscribe": OF_SUBSCRIPTION, **SINGLE}
"""Names of attributes that SNS's model does not have."""
ENDPOINTS = ("http://10.0.0.1/", "http://", "http://a b/", "http://u:p@x.example/", "http://a/#f")
FILTERS = ('{"a": [{"prefix": 1}]}', '{"$or": 1}', '{"a": [{"wildcard": "*"}]}', '{"a": {"b": 1}}')


def to(queue: str) -> str:
    """A RedrivePolicy to a queue; SNS ignores the count."""
    target = {"deadLetterTargetArn": f"arn:aws:sqs:{REGION}:shop:{queue}", "maxReceiveCount": 3}
    return json.dumps(target)


def by_hand() -> Made:
    """Calls whose parameters are well-formed, and which the core refuses."""
    for queue in ("none", "orders", "others"):
        policy = {"RedrivePolicy": to(queue)}
        for name in ("orders", "others", "dead"):
            url = {"QueueUrl": f"{URL}/shop/{name}"}
            yield "SetQueueAttributes", {**url, "Attributes": policy}
        url = {"Protocol": "http", "Endpoint": "http://x.example"}
        yield "Subscribe", {"TopicArn": TOPIC, **url, "Attributes": policy}
    for endpoint in ENDPOINTS:
        yield "Subscribe", {"TopicArn": TOPIC, "Protocol": "http", "Endpoint": endpoint}
    for text in FILTERS:
        named = {"AttributeName": "FilterPolicy", "AttributeValue": text}
        yield "SetSubscriptionAttributes", {"SubscriptionArn": f"{TOPIC}:teas", **named}


def calls_of(service: str) -> Made:
    """Each action with each of its parameters bad."""
    model = session().client(service, region_name=REGION).meta.service_model
    for action in model.operation_names:
        shape = model.operation_model(action).input_shape
        for name, member in shape.members.items():
            for value in bad_values(member):
                yield action, {**good(shape), name: value}
        for name in NAMED.get(action, ()):
            for value in BAD["string"]:
                one = {"AttributeName": name, "AttributeValue": value}
                more = one if action in SINGLE else {"Attributes": {name: value}}
                yield action, {**good(shape), **more}
    yield from by_hand()


def bad_values(shape: Any) -> Iterator[Any]:
    """Bad values of a parameter, and values with a bad member."""
    yield from BAD.get(shape.type_name, ())
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            yield from ({**good(shape), name: value} for value in bad_values(member))
    elif shape.type_name == "list":
        yield from ([value] for value in bad_values(shape.member))
    elif shape.type_name == "map":
        known = getattr(shape.key, "enum", ()) or ("a", "x" * 300, "ü ")
        yield from ({key: value} for key in known for value in bad_values(shape.value))


def good(shape: Any) -> dict[str, Any]:
    """The members of a structure, with good values as far as they are known."""
    return {name: GIVEN[name] for name in shape.members if name in GIVEN}


def formed(value: Any, *, named: bool = True) -> Any:
    """A value as SNS's forms have it. named: its members are the entries of a map."""
    if isinstance(value, list):
        return {"member": {str(n): formed(each, named=False) for n, each in enumerate(value, 1)}}
    if not isinstance(value, dict):
        return "" if value is None else str(value)
    if not named or "DataType" in value:
        return {name: formed(each) for name, each in value.items()}
    entries = [{"key": key, "value": formed(each)} for key, each in value.items()]
    return {"entry": {str(n): each for n, each in enumerate(entries, 1)}} if entries else ""


@pytest.fixture
def call(world: World) -> Call:
    """A call of an account with queues, dead letters, a topic and a subscription."""
    shop = world.client("shop")
    for name in ("dead", "others"):
        shop.put(f"/queues/{name}", {})
    shop.put("/queues/orders", {"dead_letter": {"queue": "dead", "max_receives": 3}})
    shop.put("/topics/drinks", {})
    shop.put("/topics/drinks/subscriptions/teas", {"protocol": "queue", "endpoint": "orders"})
    return Call(
        core=world.core,
        id="r",
        method="POST",
        path="/",
        query="",
        headers={},
        body=b"",
        source=None,
        left_seconds=lambda: 30,
    )


def check(text: str, action: str, members: Mapping[str, Any]) -> None:
    """The refusal has no native name that its caller did not write."""
    given = json.dumps(members, default=str)
    leaked = [name for name in NATIVE.findall(text) if name not in given]
    assert not leaked, (action, members, text)


def is_refused(
    action: str,
    members: Mapping[str, Any],
    ask: Callable[[], Any],
    shown: Callable[..., SnsError | SqsError],
) -> bool:
    """Checks the texts of a call's errors. Returns True if it is refused as a whole."""
    try:
        answer = ask() or {}
    except Exception as error:
        told = shown(action, error)
        assert told.status != 500, (action, members)
        check(told.message, action, members)
        return True
    for each in answer.get("Failed", ()):
        check(each["Message"], action, members)
    return False


CALLER = Caller(account="shop", key_id="k", admin=False)


def test_refusals_of_sqs_name_its_own_parameters(call: Call) -> None:
    count = 0
    for action, members in calls_of("sqs"):
        if action not in sqs_calls.ACTIONS:
            continue
        asked = SqsAsked(call=call, caller=CALLER, region=REGION, members=members)
        ask = partial(sqs_calls.ACTIONS[action], asked)
        count += is_refused(action, members, ask, partial(sqs_shown, call))

    assert count > 500


def test_refusals_of_sns_name_its_own_parameters(call: Call) -> None:
    count = 0
    for action, members in calls_of("sns"):
        if action not in sns_calls.ACTIONS:
            continue
        form = {name: formed(value) for name, value in members.items()}
        asked = SnsAsked(call=call, caller=CALLER, region=REGION, members=form)
        ask = partial(sns_calls.function_of(action), asked)
        count += is_refused(action, members, ask, partial(sns_shown, call))

    assert count > 500


def test_refusals_of_emq_name_its_own_parameters(world: World, key: Key) -> None:
    emq, queue = Emq(world, key), (1, "shop/q")
    emq.queue("createQueue", (1, "q"))
    attributes = fields((8, {"a": "v" * 300}))

    with pytest.raises(RefusedError, match="userAttributes: must be"):
        emq.queue("setQueueAttribute", queue, (2, attributes))
    with pytest.raises(RefusedError, match=r"'priority: is allowed only"):
        emq.message("sendMessage", queue, (2, "a"), (7, 3))


def test_a_bad_token_of_a_page_is_named(sqs: Any, sns: Any, arn: str, url: str) -> None:
    calls: list[tuple[str, Any, dict[str, Any]]] = [
        ("InvalidParameter", sns.list_topics, {}),
        ("InvalidParameter", sns.list_subscriptions, {}),
        ("InvalidParameter", sns.list_subscriptions_by_topic, {"TopicArn": arn}),
        ("InvalidParameterValue", sqs.list_queues, {"MaxResults": 5}),
        ("InvalidParameterValue", sqs.list_dead_letter_source_queues, {"QueueUrl": url}),
    ]
    for code, ask, given in calls:
        with pytest.raises(sqs.exceptions.ClientError, match="NextToken") as error:
            ask(NextToken="x", **given)
        assert error.value.response["Error"]["Code"] == code
