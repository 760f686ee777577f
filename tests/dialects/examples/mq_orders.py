"""A program for RocketMQ over HTTP: its endpoint and key come from its environment."""

from __future__ import annotations

import os

from mq_http_sdk.mq_client import MQClient
from mq_http_sdk.mq_consumer import Message
from mq_http_sdk.mq_exception import MQServerException
from mq_http_sdk.mq_producer import TopicMessage

client = MQClient(os.environ["MQ_ENDPOINT"], os.environ["ACCESS_KEY"], os.environ["SECRET_KEY"])
consumer = client.get_consumer("MQ_INST_1", "orders", "GID_orders", "drink")
producer = client.get_producer("MQ_INST_1", "orders")


def consume(seconds: int) -> list[Message]:
    found: list[Message] = []
    try:
        found = consumer.consume_message(16, seconds)
    except MQServerException as error:
        if error.type != "MessageNotExist":
            raise
    return found


consume(1)  # a group begins with its first consume
for drink in ("coffee", "tea"):
    message = TopicMessage(drink, "drink")
    message.put_property("cups", "2")
    print("sent", producer.publish_message(message).message_id)
got = 0
while got < 2:
    for message in consume(10):
        print("got", message.get_property("cups"), message.message_body)
        consumer.ack_message([message.receipt_handle])
        got += 1
client.close_connection()
