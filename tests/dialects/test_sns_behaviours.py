"""What others have recorded of SNS, as programs of boto3 here: see `sns_behaviours.md`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.dialects.conftest import REGION, Key, client_of
from tests.dialects.sns_calls import change, make_queue, shown, subscribe
from tests.dialects.test_sns_fifo import drain
from tests.dialects.test_sns_topics import code
from tests.dialects.test_sqs_letters import TRACE

from cirrusmq_local.testing import Client, World

UNTYPED = {"attr": {"StringValue": "value"}}


@pytest.fixture
def queue(sqs: Any) -> str:
    return make_queue(sqs, "orders")


@pytest.fixture
def unchecked(world: World, key: Key) -> Any:
    """A client of SNS that checks no parameter itself."""
    return client_of(world, key, "sns", parameter_validation=False)


def refusal(call: Any, **given: Any) -> str:
    """The words of a refusal."""
    with pytest.raises(ClientError) as refused:
        call(**given)
    error = refused.value.response["Error"]
    found: str = error["Message"]
    if found.startswith("Invalid parameter: "):
        assert error["Code"] == "InvalidParameter"
    return found


def bodies(world: World, sqs: Any, url: str) -> list[str]:
    return [each["Body"] for each in drain(world, sqs, url)]


class TestTopics:
    def test_a_fifo_topic_keeps_its_signature_version(self, sns: Any) -> None:
        attributes = {"DisplayName": "Tea", "SignatureVersion": "2", "FifoTopic": "true"}
        made = sns.create_topic(Name="tea.fifo", Attributes=attributes)["TopicArn"]
        found = sns.get_topic_attributes(TopicArn=made)["Attributes"]
        assert found.items() >= {**attributes, "ContentBasedDeduplication": "false"}.items()
        given = {"Name": "green", "Attributes": {"SignatureVersion": "3"}}
        assert "SignatureVersion: must be 1 or 2" in refusal(sns.create_topic, **given)

    @pytest.mark.parametrize("arn", ["", "drinks", "drinks:1", "arn:aws:sns:eu-central-1:drinks"])
    def test_an_arn_has_six_elements(self, unchecked: Any, arn: str) -> None:
        count = len(arn.split(":"))
        told = f"Reason: An ARN must have at least 6 elements, not {count}"
        calls = {
            unchecked.get_topic_attributes: {},
            unchecked.publish: {"Message": "a"},
            unchecked.subscribe: {"Protocol": "https", "Endpoint": "https://a.example"},
        }
        for call, given in calls.items():
            found = refusal(call, TopicArn=arn, **given)
            assert found == f"Invalid parameter: TopicArn {told}"

    def test_the_keys_of_tags_differ(self, sns: Any, arn: str) -> None:
        tags = [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "1"}]
        told = "Invalid parameter: Duplicated keys are not allowed."
        assert refusal(sns.tag_resource, ResourceArn=arn, Tags=tags) == told
        assert refusal(sns.create_topic, Name="tea", Tags=tags) == told

    def test_a_topic_is_found_by_some_of_its_tags(self, sns: Any) -> None:
        tags = [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
        made = sns.create_topic(Name="tea", Tags=tags)["TopicArn"]
        for some in (tags, tags[:1], []):
            assert sns.create_topic(Name="tea", Tags=some)["TopicArn"] == made
        told = "Invalid parameter: Tags Reason: Topic already exists with different tags"
        for other in ({"Key": "a", "Value": "2"}, {"Key": "c", "Value": "3"}):
            assert refusal(sns.create_topic, Name="tea", Tags=[*tags[1:], other]) == told
        sns.delete_topic(TopicArn=made)
        sns.create_topic(Name="tea", Tags=[{"Key": "a", "Value": "2"}])

    def test_a_name_has_1_to_256_letters_digits_hyphens_and_underscores(
        self, sns: Any, unchecked: Any
    ) -> None:
        assert sns.create_topic(Name="a" * 256)["TopicArn"].endswith("a" * 256)
        for name in ("a" * 257, *(f"bad{odd}name" for odd in ":;!@|^% ")):
            assert refusal(sns.create_topic, Name=name).startswith("Invalid parameter: Topic Name")
        assert code(unchecked.create_topic, Name="") == "InvalidParameter"

    def test_a_standard_topic_may_be_made_with_fifotopic_false(self, sns: Any) -> None:
        made = sns.create_topic(Name="tea", Attributes={"FifoTopic": "false"})["TopicArn"]
        assert "FifoTopic" not in sns.get_topic_attributes(TopicArn=made)["Attributes"]
        given = {"AttributeName": "FifoTopic", "AttributeValue": "false"}
        assert code(sns.set_topic_attributes, TopicArn=made, **given) == "InvalidParameter"


class TestPublishing:
    @pytest.mark.parametrize(
        ("message", "told"),
        [
            ('{"sqs": "a"}', "No default entry in JSON message body"),
            ('{"default": "a"} }', "JSON message body failed to parse"),
            ('{"default": {"a": 1}}', "No default entry in JSON message body"),
        ],
    )
    def test_a_structure_has_a_default_text(
        self, sns: Any, arn: str, message: str, told: str
    ) -> None:
        given = {"TopicArn": arn, "Message": message, "MessageStructure": "json"}
        assert refusal(sns.publish, **given) == f"Invalid parameter: Message Structure - {told}"

    def test_of_a_structure_the_texts_count_and_the_last_of_two_keys(
        self, world: World, sns: Any, sqs: Any, arn: str, queue: str
    ) -> None:
        subscribe(sns, arn, "orders", RawMessageDelivery="true")
        for message in ('{"default": "a", "default": "b"}', '{"default": "c", "sqs": {"d": 1}}'):
            sns.publish(TopicArn=arn, Message=message, MessageStructure="json")
        assert sorted(bodies(world, sqs, queue)) == ["b", "c"]

    @pytest.mark.parametrize(
        ("attributes", "told"),
        [
            (
                {"attr": {"DataType": "String", "StringValue": ""}},
                "The message attribute 'attr' must contain non-empty message attribute value for"
                " message attribute type 'String'.",
            ),
            (
                {"attr": {"DataType": "Number"}},
                "The message attribute 'attr' must contain non-empty message attribute value for"
                " message attribute type 'Number'.",
            ),
            (
                {"attr": {"DataType": "String", "BinaryValue": b"123"}},
                "The message attribute 'attr' with type 'String' must use field 'String'.",
            ),
            (
                {"attr": {"DataType": "Binary", "StringValue": "123"}},
                "The message attribute 'attr' with type 'Binary' must use field 'Binary'.",
            ),
            (
                {"attr": {"DataType": "Text", "StringValue": "123"}},
                "The message attribute 'attr' has an invalid message attribute type, the set of"
                " supported type prefixes is Binary, Number, and String.",
            ),
            (
                {"a" * 257: {"DataType": "String", "StringValue": "123"}},
                "Length of message attribute name must be less than 256 bytes.",
            ),
            (
                {"a^*?": {"DataType": "String", "StringValue": "123"}},
                "Invalid non-alphanumeric character '#x5E' was found in the message attribute"
                " name. Can only include alphanumeric characters, hyphens, underscores, or dots.",
            ),
            (
                {".abc": {"DataType": "String", "StringValue": "123"}},
                "Invalid message attribute name starting with character '.' was found.",
            ),
            (
                {"abc.": {"DataType": "String", "StringValue": "123"}},
                "Invalid message attribute name ending with character '.' was found.",
            ),
            (
                {"a..bc": {"DataType": "String", "StringValue": "123"}},
                "Message attribute name can not have successive '.' character.",
            ),
        ],
    )
    def test_refused_attributes_are_told_in_the_words_of_sns(
        self, unchecked: Any, arn: str, attributes: dict[str, Any], told: str
    ) -> None:
        given = {"TopicArn": arn, "Message": "a", "MessageAttributes": attributes}
        assert refusal(unchecked.publish, **given) == told
        assert code(unchecked.publish, **given) == "ParameterValueInvalid"
        entries = [{"Id": "1", "Message": "a", "MessageAttributes": attributes}]
        batch = {"TopicArn": arn, "PublishBatchRequestEntries": entries}
        assert refusal(unchecked.publish_batch, **batch) == told

    def test_an_attribute_has_a_type(self, unchecked: Any, arn: str) -> None:
        given = {"TopicArn": arn, "Message": "a", "MessageAttributes": UNTYPED}
        assert code(unchecked.publish, **given) == "ValidationError"
        assert "'messageAttributes.attr.member.dataType'" in refusal(unchecked.publish, **given)
        entries = [
            {"Id": "1", "Message": "a"},
            {"Id": "2", "Message": "b", "MessageAttributes": UNTYPED},
        ]
        told = refusal(unchecked.publish_batch, TopicArn=arn, PublishBatchRequestEntries=entries)
        at = "publishBatchRequestEntries.2.member.messageAttributes.attr.member.dataType"
        assert told.endswith(f"'{at}' failed to satisfy constraint: Member must not be null")

    def test_a_type_may_have_any_words_behind_its_dot(
        self, world: World, sns: Any, sqs: Any, arn: str, queue: str
    ) -> None:
        subscribe(sns, arn, "orders", RawMessageDelivery="true")

        def publish(kind: str) -> None:
            attributes = {"attr": {"DataType": kind, "StringValue": "value"}}
            sns.publish(TopicArn=arn, Message="a", MessageAttributes=attributes)

        for odd in ("String.", "Stringprefixed"):
            assert code(publish, kind=odd) == "ParameterValueInvalid"
        for kind in ("String.prefixed", "String.  prefixed."):
            publish(kind)
        world.settle()
        received = sqs.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )["Messages"]
        kinds = {each["MessageAttributes"]["attr"]["DataType"] for each in received}
        assert kinds == {"String.prefixed", "String.  prefixed."}

    def test_the_size_of_a_message_has_its_attributes(self, sns: Any, arn: str) -> None:
        attributes = {"attr1": {"DataType": "Number", "StringValue": "1"}}
        most = 262_144 - len("attr1" + "Number" + "1")
        given = {"TopicArn": arn, "MessageAttributes": attributes}
        told = "Invalid parameter: Message too long"
        assert refusal(sns.publish, Message="a" * (most + 1), **given) == told
        sns.publish(Message="a" * most, **given)

    def test_refused_batches_are_told_in_the_words_of_sns(self, sns: Any) -> None:
        fifo = {"Name": "tea.fifo", "Attributes": {"FifoTopic": "true"}}
        made = sns.create_topic(**fifo)["TopicArn"]

        def told(*entries: dict[str, Any]) -> str:
            listed = [{"Message": "a", **each} for each in entries]
            return refusal(sns.publish_batch, TopicArn=made, PublishBatchRequestEntries=listed)

        assert told({"Id": "1"}) == (
            "Invalid parameter: The MessageGroupId parameter is required for FIFO topics"
        )
        assert told(*({"Id": str(n)} for n in range(11))) == (
            "The batch request contains more entries than permissible."
        )
        assert told({"Id": "1"}, {"Id": "1"}) == (
            "Two or more batch entries in the request have the same Id."
        )
        assert told({"Id": "1", "MessageGroupId": "g"}) == (
            "Invalid parameter: The topic should either have ContentBasedDeduplication enabled or"
            " MessageDeduplicationId provided explicitly"
        )
        half = "a" * 131_073
        given = {"MessageGroupId": "g", "Message": half}
        assert told(
            *({"Id": each, "MessageDeduplicationId": each, **given} for each in "ab")
        ).startswith("The length of all the messages put together is more than the limit.")

    def test_a_calls_trace_comes_to_the_queue(
        self, world: World, sns: Any, sqs: Any, arn: str, queue: str
    ) -> None:
        def add(request: Any, **_: Any) -> None:
            request.headers["X-Amzn-Trace-Id"] = TRACE

        subscribe(sns, arn, "orders")
        sns.meta.events.register("before-sign.sns", add)
        sns.publish(TopicArn=arn, Message="a")
        entries = [{"Id": "b", "Message": "b"}]
        sns.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
        found = drain(world, sqs, queue)
        assert [each["Attributes"]["AWSTraceHeader"] for each in found] == [TRACE] * 2
        assert "MessageAttributes" not in json.loads(found[0]["Body"])

    def test_a_batch_of_messages_of_all_kinds(
        self, world: World, sns: Any, sqs: Any, arn: str, queue: str
    ) -> None:
        subscribe(sns, arn, "orders", RawMessageDelivery="true")
        cups = {"cups": {"DataType": "Number", "StringValue": "99.12"}}
        entries = [
            {"Id": "1", "Message": "one", "Subject": "s", "MessageAttributes": cups},
            {"Id": "2", "Message": "two", "Subject": "s"},
            {"Id": "3", "Message": "three"},
            {"Id": "4", "Message": '{"default": "x", "sqs": "four"}', "MessageStructure": "json"},
        ]
        answer = sns.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
        assert [each["Id"] for each in answer["Successful"]] == ["1", "2", "3", "4"]
        world.settle()
        given = {"MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
        found = sqs.receive_message(QueueUrl=queue, **given)["Messages"]
        attributes = {each["Body"]: each.get("MessageAttributes") for each in found}
        assert attributes == {"one": cups, "two": None, "three": None, "four": None}

    def test_a_fifo_topic_takes_a_structure_by_its_target(self, sns: Any) -> None:
        flags = {"FifoTopic": "true", "ContentBasedDeduplication": "true"}
        made = sns.create_topic(Name="tea.fifo", Attributes=flags)["TopicArn"]
        message = {"Message": '{"default": "{}"}', "MessageStructure": "json"}
        sent = sns.publish(TargetArn=made, MessageGroupId="123", **message)
        assert sent["MessageId"]

    def test_a_late_subscriber_gets_only_later_messages(
        self, world: World, sns: Any, sqs: Any, arn: str, queue: str
    ) -> None:
        sns.publish(TopicArn=arn, Message="before")
        world.settle()
        subscribe(sns, arn, "orders", RawMessageDelivery="true")
        sns.publish(TopicArn=arn, Message="after")
        assert bodies(world, sqs, queue) == ["after"]


class TestSubscriptions:
    def test_refused_endpoints_are_told_in_the_words_of_sns(
        self, sns: Any, sqs: Any, arn: str, queue: str
    ) -> None:
        make_queue(sqs, "other.fifo")

        def told(protocol: str, endpoint: str) -> str:
            given = {"TopicArn": arn, "Protocol": protocol, "Endpoint": endpoint}
            return refusal(sns.subscribe, **given)

        assert told("test-protocol", "a@b.example") == (
            "Invalid parameter: Amazon SNS does not support this protocol string: test-protocol"
        )
        assert told("sqs", queue) == "Invalid parameter: SQS endpoint ARN"
        assert told("sqs", "unknown") == "Invalid parameter: SQS endpoint ARN"
        assert told("sqs", f"arn:aws:sqs:{REGION}:shop:other.fifo") == (
            "Invalid parameter: Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be"
            " subscribed to standard SNS topics"
        )

    def test_a_subscription_is_found_by_some_of_its_attributes(
        self, sns: Any, arn: str, queue: str
    ) -> None:
        made = subscribe(sns, arn, "orders", RawMessageDelivery="True")
        by_attributes = {"FilterPolicyScope": "MessageAttributes"}
        raw = {"RawMessageDelivery": "true"}
        for some in (raw, raw | by_attributes, {}, by_attributes):
            assert subscribe(sns, arn, "orders", **some) == made
        told = "Invalid parameter: Attributes Reason: Subscription already exists with different"
        endpoint = f"arn:aws:sqs:{REGION}:shop:orders"
        given = {"TopicArn": arn, "Protocol": "sqs", "Endpoint": endpoint}
        other = {"RawMessageDelivery": "false", "FilterPolicyScope": "MessageBody"}
        assert refusal(sns.subscribe, **given, Attributes=other) == f"{told} attributes"

    def test_attributes_and_refused_ones_are_told_in_the_words_of_sns(
        self, sns: Any, arn: str, queue: str
    ) -> None:
        given = {
            "TopicArn": arn,
            "Protocol": "sqs",
            "Endpoint": f"arn:aws:sqs:{REGION}:shop:orders",
        }
        attributes = {"FilterPolicyScope": "MessageBody", "FilterPolicy": ""}
        odd = {**attributes, "RawMessageDelivery": "odd"}
        assert refusal(sns.subscribe, **given, Attributes=odd) == (
            "Invalid parameter: Attributes Reason: RawMessageDelivery: Invalid value [odd]. Must be"
            " true or false."
        )
        raw = {**attributes, "RawMessageDelivery": "TrUe"}
        made = sns.subscribe(**given, Attributes=raw, ReturnSubscriptionArn=True)["SubscriptionArn"]
        found = shown(sns, made)
        assert found["RawMessageDelivery"] == "true"
        assert "FilterPolicy" not in found
        assert "FilterPolicyScope" not in found
        assert found["SubscriptionPrincipal"] == "arn:aws:iam::shop:root"
        for name, value, told in (
            ("Odd", "a", "AttributeName"),
            ("RawMessageDelivery", "", "RawMessageDelivery: Invalid value []. Must be true or"),
            ("RedrivePolicy", '{"deadLetterTargetArn": "odd"}', "RedrivePolicy: deadLetterTarget"),
            ("RedrivePolicy", "{odd}", "RedrivePolicy: failed to parse JSON."),
            ("FilterPolicy", "{odd}", "FilterPolicy: failed to parse JSON."),
            ("FilterPolicy", '{"a": [{"odd": true}]}', "FilterPolicy: "),
            ("FilterPolicyScope", "Odd", "FilterPolicyScope: Invalid value [Odd]. Please use"),
        ):
            whole = {"SubscriptionArn": made, "AttributeName": name, "AttributeValue": value}
            found_text = refusal(sns.set_subscription_attributes, **whole)
            assert found_text.startswith(f"Invalid parameter: {told}")

    def test_arns_of_no_subscription_are_refused(self, unchecked: Any, arn: str) -> None:
        for name in ("odd", "arn:aws:sns:us-east-1:odd"):
            count = len(name.split(":"))
            assert refusal(unchecked.unsubscribe, SubscriptionArn=name) == (
                "Invalid parameter: SubscriptionArn Reason: An ARN must have at least 6 elements,"
                f" not {count}"
            )
        assert refusal(unchecked.unsubscribe, SubscriptionArn=arn) == (
            "Invalid parameter: SubscriptionId"
        )
        assert code(unchecked.unsubscribe) == "InvalidParameter"

    def test_a_policy_of_attributes_has_no_objects(self, sns: Any, arn: str, queue: str) -> None:
        made = subscribe(sns, arn, "orders")
        nested = json.dumps({"object": {"key": [{"prefix": "auto-"}]}})
        given = {"SubscriptionArn": made, "AttributeName": "FilterPolicy", "AttributeValue": nested}
        assert refusal(sns.set_subscription_attributes, **given).endswith(
            "Filter policy scope MessageAttributes does not support nested filter policy"
        )
        change(sns, made, "FilterPolicyScope", "MessageBody")
        assert "FilterPolicyScope" not in shown(sns, made)
        change(sns, made, "FilterPolicy", nested)
        assert shown(sns, made)["FilterPolicyScope"] == "MessageBody"

    def test_a_fifo_queues_dead_letters_go_to_a_fifo_queue(self, sns: Any, sqs: Any) -> None:
        given = {"Name": "tea.fifo", "Attributes": {"FifoTopic": "true"}}
        topic = sns.create_topic(**given)["TopicArn"]
        for name in ("orders", "orders.fifo", "dead", "dead.fifo"):
            make_queue(sqs, name)
        standard, fifo = (
            json.dumps({"deadLetterTargetArn": f"arn:aws:sqs:{REGION}:shop:{name}"})
            for name in ("dead", "dead.fifo")
        )
        loose, strict = (subscribe(sns, topic, name) for name in ("orders", "orders.fifo"))
        change(sns, loose, "RedrivePolicy", standard)
        change(sns, strict, "RedrivePolicy", fifo)
        told = (
            "RedrivePolicy: must use a FIFO queue as DLQ for a FIFO Subscription to a FIFO Topic."
        )
        whole = {"AttributeName": "RedrivePolicy", "AttributeValue": standard}
        found = refusal(sns.set_subscription_attributes, SubscriptionArn=strict, **whole)
        assert found == f"Invalid parameter: {told}"
        sns.unsubscribe(SubscriptionArn=strict)
        with pytest.raises(ClientError, match="must use a FIFO queue"):
            subscribe(sns, topic, "orders.fifo", RedrivePolicy=standard)

    def test_too_large_filter_policies_are_refused(self, sns: Any, arn: str, queue: str) -> None:
        many = [f"value{n}" for n in range(151)]
        source = ["a", "b", "c", "d"]
        alternatives = [{"a": [*source, "e", "f"]}, {"b": source, "$or": [{"c": source}] * 2}]
        for policy in (
            {"key": many},
            {"key1": many[:100], "key2": many[:51]},
            {f"key{n}": ["a"] for n in range(6)},
            {"source": source, "$or": alternatives},
            {"key": "value"},
        ):
            with pytest.raises(ClientError, match="FilterPolicy") as refused:
                subscribe(sns, arn, "orders", FilterPolicy=json.dumps(policy))
            assert refused.value.response["Error"]["Code"] == "InvalidParameter", policy

    @pytest.mark.parametrize(
        "condition",
        [
            ["value"],
            {"odd": True},
            {"suffix": "a", "prefix": "b"},
            {"suffix": 100},
            {"suffix": ["a", "b"]},
            {"numeric": ["=", "000"]},
            {"numeric": [">", 3, "<", 1]},
            {"numeric": [">", 20, "<="]},
            {"numeric": [">", 20, "<", 30, "<", 50]},
            {"exists": None},
            {"anything-but": {"odd": None}},
        ],
    )
    def test_invalid_conditions_are_refused(
        self, sns: Any, arn: str, queue: str, condition: object
    ) -> None:
        policy = json.dumps({"key": [condition]})
        with pytest.raises(ClientError, match="FilterPolicy"):
            subscribe(sns, arn, "orders", FilterPolicy=policy)
        assert sns.list_subscriptions()["Subscriptions"] == []

    def test_a_body_is_filtered_by_names_with_dots_lists_and_alternatives(
        self, world: World, sns: Any, sqs: Any, arn: str, queue: str
    ) -> None:
        made = subscribe(sns, arn, "orders", RawMessageDelivery="true")
        change(sns, made, "FilterPolicyScope", "MessageBody")

        def passing(policy: object, *sent: object) -> list[object]:
            change(sns, made, "FilterPolicy", json.dumps(policy))
            for each in sent:
                sns.publish(TopicArn=arn, Message=json.dumps(each))
            found = bodies(world, sqs, queue)
            return [each for each in sent if json.dumps(each) in found]

        deep = [
            {"a": {"b": {"c": "v"}}},
            {"a.b.c": "v"},
            {"a.b": {"c": "v"}},
            {"a": {"b.c": "v"}},
        ]
        assert passing({"a.b.c": ["v"]}, *deep, {"a": {"b": {"c": "w"}}}) == deep
        routes = [{"headers": {"to": each}} for each in (["q3"], ["q1"], ["q1", "q2"], "q2")]
        assert passing({"headers": {"to": ["q1"]}}, *routes) == routes[1:3]
        key, name = {"key": [{"prefix": "auto-"}]}, [{"prefix": "Created:"}]
        good, bad = (
            {"Records": [{"object": [[{"key": "auto-1"}]], "name": each}, {"name": "x"}]}
            for each in ("Created:Put", "Removed:Delete")
        )
        assert passing({"Records": {"object": key, "name": name}}, good, bad) == [good]
        either = {"$or": [{"metric": ["cpu"]}, {"space": ["ec2"]}], "detail": {"scope": ["s"]}}
        some = [
            {"metric": "cpu", "detail": {"scope": "s"}},
            {"space": "ec2", "detail": {"scope": "s"}},
        ]
        assert passing(either, *some, {"metric": "cpu"}, {"detail": {"scope": "s"}}) == some
        assert passing(either, "text") == []

    def test_attributes_are_filtered_by_presence_and_lists(
        self, world: World, sns: Any, sqs: Any, arn: str, queue: str
    ) -> None:
        made = subscribe(sns, arn, "orders", RawMessageDelivery="true")

        def passing(policy: object, **sent: dict[str, tuple[str, str]]) -> list[str]:
            change(sns, made, "FilterPolicy", json.dumps(policy) if policy else "")
            for body, attributes in sent.items():
                typed = {
                    name: {"DataType": kind, "StringValue": value}
                    for name, (kind, value) in attributes.items()
                }
                sns.publish(TopicArn=arn, Message=body, MessageAttributes=typed)
            return sorted(bodies(world, sqs, queue))

        store = {"store": ("Number", "99")}
        other = {"other": ("Number", "99")}
        array = {"store": ("String.Array", '["value1", "value2"]')}
        apart = {"store": ("String.Array", '["value3"]')}
        none: dict[str, tuple[str, str]] = {}
        assert passing({"store": [{"exists": True}]}, a=store, b=other) == ["a"]
        assert passing({"store": [{"exists": False}]}, a=store, b=other) == ["b"]
        assert passing({"store": ["value1"]}, a=array, b=apart) == ["a"]
        assert passing(None, a=none, b=other) == ["a", "b"]
        batch = [
            {
                "Id": each,
                "Message": each,
                "MessageAttributes": {"n": {"DataType": "Number", "StringValue": each}},
            }
            for each in ("99", "111")
        ]
        change(sns, made, "FilterPolicy", '{"n": [{"numeric": [">", 0, "<=", 100]}]}')
        sns.publish_batch(TopicArn=arn, PublishBatchRequestEntries=batch)
        assert bodies(world, sqs, queue) == ["99"]


class TestQueuesThatEnd:
    def test_a_subscription_ends_with_its_queue(
        self, world: World, sns: Any, sqs: Any, arn: str, queue: str
    ) -> None:
        subscribe(sns, arn, "orders")
        other = sns.create_topic(Name="tea")["TopicArn"]
        subscribe(sns, other, "orders")
        sqs.delete_queue(QueueUrl=queue)
        assert sns.list_subscriptions()["Subscriptions"] == []
        sns.publish(TopicArn=arn, Message="to nobody")
        world.settle()

    def test_a_publish_under_way_goes_to_the_remaining_queues(
        self, world: World, sns: Any, sqs: Any, arn: str, queue: str
    ) -> None:
        """It chose its recipients before the queue ended, and has copied to none of them yet."""
        kept = make_queue(sqs, "kept")
        for name in ("orders", "kept"):
            subscribe(sns, arn, name)
        sns.publish(TopicArn=arn, Message="tea")
        sqs.delete_queue(QueueUrl=queue)
        world.settle()
        assert len(bodies(world, sqs, kept)) == 1
        again = make_queue(sqs, "orders")
        subscribe(sns, arn, "orders")
        world.settle()
        assert bodies(world, sqs, again) == []

    def test_a_queue_stays_if_its_messages_would_be_dead_letters(
        self, sns: Any, sqs: Any, arn: str, queue: str
    ) -> None:
        make_queue(sqs, "dead")
        made = subscribe(sns, arn, "orders")
        policy = json.dumps({"deadLetterTargetArn": f"arn:aws:sqs:{REGION}:shop:dead"})
        change(sns, made, "RedrivePolicy", policy)
        assert code(sqs.delete_queue, QueueUrl=queue) == "InvalidAttributeValue"
        assert shown(sns, made)["SubscriptionArn"] == made

    def test_a_queue_stays_if_it_has_another_use(
        self, sns: Any, sqs: Any, shop: Client, arn: str, queue: str
    ) -> None:
        subscribe(sns, arn, "orders")
        native = {"protocol": "queue", "endpoint": "orders"}
        assert shop.put("/topics/drinks/subscriptions/mine", native).status == 201
        assert code(sqs.delete_queue, QueueUrl=queue) == "InvalidAttributeValue"
        assert len(sns.list_subscriptions()["Subscriptions"]) == 2
        shop.delete("/topics/drinks/subscriptions/mine")
        source = {"dead_letter": {"queue": "orders", "max_receives": 2}}
        assert shop.put("/queues/source", source).status == 201
        assert code(sqs.delete_queue, QueueUrl=queue) == "InvalidAttributeValue"
        assert len(sns.list_subscriptions()["Subscriptions"]) == 1
        shop.delete("/queues/source")
        sqs.delete_queue(QueueUrl=queue)
