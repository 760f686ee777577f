"""A program for SQS. It finds its service and its key in the environment, as boto3 does."""

from __future__ import annotations

import boto3

sqs = boto3.client("sqs")
url = sqs.create_queue(QueueName="orders", Attributes={"VisibilityTimeout": "60"})["QueueUrl"]
for drink in ("coffee", "tea"):
    sent = sqs.send_message(
        QueueUrl=url,
        MessageBody=drink,
        MessageAttributes={"cups": {"DataType": "Number", "StringValue": "2"}},
    )
    print("sent", sent["MessageId"])
left = 2
while left:
    answer = sqs.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=10,
        WaitTimeSeconds=5,
        MessageAttributeNames=["All"],
        MessageSystemAttributeNames=["ApproximateReceiveCount"],
    )
    for message in answer.get("Messages", []):
        cups = message["MessageAttributes"]["cups"]["StringValue"]
        print("got", cups, message["Body"])
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        left -= 1
