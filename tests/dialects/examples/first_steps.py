"""What boto3's own guide to SQS does first, on whatever endpoint and key the environment names."""

from __future__ import annotations

import boto3

sqs = boto3.resource("sqs")
queue = sqs.create_queue(QueueName="first-steps", Attributes={"DelaySeconds": "1"})
print("made", queue.attributes["DelaySeconds"], queue.url.rpartition("/")[2])

queue = sqs.get_queue_by_name(QueueName="first-steps")
print("listed", queue.url in [each.url for each in sqs.queues.all()])

author = {"Author": {"DataType": "String", "StringValue": "Ada"}}
print(
    "sent", queue.send_message(MessageBody="with an author", MessageAttributes=author)["MessageId"]
)
entries = [
    {"Id": "1", "MessageBody": "without one"},
    {"Id": "2", "MessageBody": "with one as well", "MessageAttributes": author},
]
print("failed", queue.send_messages(Entries=entries).get("Failed"))

left = 3
while left:
    for message in queue.receive_messages(
        MessageAttributeNames=["Author"], MaxNumberOfMessages=10, WaitTimeSeconds=10
    ):
        named = (message.message_attributes or {}).get("Author", {})
        print("got", message.body, "by", named.get("StringValue"))
        message.delete()
        left -= 1
queue.delete()
