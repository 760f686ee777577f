"""ARNs of topics, subscriptions and queues, and the core's names of the same.

An account that is a number, as in ARNs of the service that a program comes from, is the caller's
own: no account here has such a name. A subscription that SNS's calls made has a UUID of its
protocol and its endpoint, so that to subscribe twice makes one; the core's name of it is
`sns-<UUID>`. One that was made natively is named by its own name.
"""

from __future__ import annotations

import re

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.names import (
    ACCOUNT_NAME,
    QUEUE_NAME,
    SUBSCRIPTION_NAME,
    TOPIC_NAME,
    check_name,
)
from cirrusmq.model.notification import OWN_PREFIX, is_uuid, own_part, topic_arn, uuid_of
from cirrusmq.model.topic import Subscription
from cirrusmq_dialects.sns.errors import SnsError, invalid

SQS, LAMBDA, URLS = "sqs", "lambda", ("http", "https")
"""Protocols of subscriptions."""
_NUMBER = re.compile(r"[0-9]+", re.ASCII)


def new_topic_name(name: str) -> str:
    """Returns the name for a new topic. Raises SnsError InvalidParameter."""
    try:
        return check_name("Topic Name", name, TOPIC_NAME)
    except InvalidParameter as error:
        raise invalid(error.detail) from error


def queue_arn(region: str, account: str, name: str) -> str:
    """The ARN of a queue, in the region that the caller signs for."""
    return f"arn:aws:sqs:{region}:{account}:{name}"


def subscription_arn(region: str, subscription: Subscription) -> str:
    """The ARN of a subscription: its topic's, and its own part."""
    topic = topic_arn(region, subscription.account, subscription.topic)
    return f"{topic}:{own_part(subscription.name)}"


def topic_ref(parameter: str, arn: str, account: str) -> str:
    """Returns the topic in an ARN as the core's callers name it. Raises SnsError."""
    parts = _parts(parameter, arn)
    if len(parts) != 6 or parts[:3] != ["arn", "aws", "sns"]:
        raise invalid(f"{parameter} Reason: must be the ARN of a topic.")
    return _ref(parts[5], parts[4], account)


def subscription_ref(arn: str, account: str) -> tuple[str, str]:
    """The topic in a subscription's ARN, as `topic_ref`, and the core's name of it."""
    topic, _, own = arn.rpartition(":")
    parts = _parts("SubscriptionArn", arn)
    if len(parts) != 7:
        raise invalid("SubscriptionId" if len(parts) == 6 else "SubscriptionArn")
    name = f"{OWN_PREFIX}{own}" if is_uuid(own) else own
    try:
        check_name("SubscriptionArn", name, SUBSCRIPTION_NAME)
    except InvalidParameter as error:
        raise SnsError("NotFound", "Subscription does not exist") from error
    return topic_ref("SubscriptionArn", topic, account), name


def is_queue_arn(arn: str) -> bool:
    """Returns True if a text has the form of a queue's ARN."""
    parts = arn.split(":")
    return len(parts) == 6 and parts[:3] == ["arn", "aws", "sqs"]


def own_queue(parameter: str, arn: str, account: str) -> str:
    """SQS's name of a queue of the topic's account in its ARN; InvalidParameter for others."""
    parts = arn.split(":")
    if parts[4] != account and not _NUMBER.fullmatch(parts[4]):
        raise invalid(f"{parameter} Reason: must be a queue of the topic's account.")
    try:
        return check_name(parameter, parts[5], QUEUE_NAME)
    except InvalidParameter as error:
        raise invalid(error.detail) from error


def function_in(arn: str) -> tuple[str, str]:
    """The ARN of a function up to `:function:`, and its name behind, perhaps with a version.

    Region and account are not compared: the deployment lists the functions by their names.
    Raises SnsError InvalidParameter.
    """
    prefix, _, function = arn.partition(":function:")
    parts = prefix.split(":")
    if len(parts) != 5 or parts[:3] != ["arn", "aws", "lambda"] or not 0 < len(function) <= 256:
        raise invalid("Lambda endpoint ARN")
    return prefix, function


def new_subscription_name(protocol: str, endpoint: str) -> str:
    """The core's name of a subscription that is to be made."""
    return f"{OWN_PREFIX}{uuid_of(f'{protocol} {endpoint}')}"


def _parts(parameter: str, arn: str) -> list[str]:
    """Returns the parts of an ARN. Raises SnsError InvalidParameter if they are too few."""
    parts = arn.split(":")
    if len(parts) < 6:
        told = f"An ARN must have at least 6 elements, not {len(parts)}"
        raise invalid(f"{parameter} Reason: {told}")
    return parts


def _ref(name: str, owner: str, account: str) -> str:
    try:
        check_name("topic", name, TOPIC_NAME)
        if owner == account or _NUMBER.fullmatch(owner):
            return name
        return f"{check_name('account', owner, ACCOUNT_NAME)}:{name}"
    except InvalidParameter as error:
        raise SnsError("NotFound", "Topic does not exist") from error
