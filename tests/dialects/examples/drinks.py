"""A program for SNS and SQS, without a line that is for CirrusMQ."""

from __future__ import annotations

import boto3

sns, sqs = boto3.client("sns"), boto3.client("sqs")
topic = sns.create_topic(Name="drinks")["TopicArn"]
url = sqs.create_queue(QueueName="teas")["QueueUrl"]
named = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
sns.subscribe(
    TopicArn=topic,
    Protocol="sqs",
    Endpoint=named["Attributes"]["QueueArn"],
    Attributes={"RawMessageDelivery": "true", "FilterPolicy": '{"kind": ["tea"]}'},
)
kind = {"kind": {"DataType": "String", "StringValue": "tea"}}
sns.publish(TopicArn=topic, Message="a cup", MessageAttributes=kind)
(message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20, MessageAttributeNames=["All"])[
    "Messages"
]
print("got", message["Body"], message["MessageAttributes"]["kind"]["StringValue"])
sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
