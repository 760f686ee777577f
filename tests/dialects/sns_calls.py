"""Calls of SNS, and of SQS for its queues, that many tests make by boto3's clients."""

from __future__ import annotations

from typing import Any

from tests.dialects.conftest import REGION


def make_queue(sqs: Any, name: str = "orders", **attributes: str) -> str:
    """The URL of a new queue, FIFO if its name says so."""
    kind = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
    made: str = sqs.create_queue(QueueName=name, Attributes={**kind, **attributes})["QueueUrl"]
    return made


def subscribe(sns: Any, arn: str, endpoint: str = "orders", **attributes: str) -> str:
    """The ARN of a subscription: of a URL, or of a queue by its name or its ARN."""
    protocol = endpoint.partition(":")[0] if "://" in endpoint else "sqs"
    if ":" not in endpoint:
        endpoint = f"arn:aws:sqs:{REGION}:shop:{endpoint}"
    given = {"Attributes": attributes, "ReturnSubscriptionArn": True}
    made = sns.subscribe(TopicArn=arn, Protocol=protocol, Endpoint=endpoint, **given)
    found: str = made["SubscriptionArn"]
    return found


def change(sns: Any, subscription: str, name: str, value: str) -> None:
    """Set an attribute of a subscription."""
    sns.set_subscription_attributes(
        SubscriptionArn=subscription, AttributeName=name, AttributeValue=value
    )


def shown(sns: Any, subscription: str) -> dict[str, str]:
    """The attributes of a subscription."""
    found = sns.get_subscription_attributes(SubscriptionArn=subscription)
    attributes: dict[str, str] = found["Attributes"]
    return attributes
