"""A program for EMQ: its endpoint and key come from its environment."""

from __future__ import annotations

import os

from emq.client.clientfactory import ClientFactory
from emq.message.ttypes import (
    DeleteMessageBatchRequest,
    DeleteMessageBatchRequestEntry,
    ReceiveMessageRequest,
    SendMessageRequest,
)
from emq.queue.ttypes import CreateQueueRequest, QueueAttribute
from rpc.auth.ttypes import Credential, UserType

credential = Credential(UserType.APP_SECRET, os.environ["SECRET_ID"], os.environ["SECRET_KEY"])
clients = ClientFactory(credential)
queues = clients.queue_client(os.environ["EMQ_ENDPOINT"])
messages = clients.message_client(os.environ["EMQ_ENDPOINT"])
attributes = QueueAttribute(invisibilitySeconds=60)
name = queues.createQueue(CreateQueueRequest("orders", attributes)).queueName
for drink in ("coffee", "tea"):
    print("sent", messages.sendMessage(SendMessageRequest(name, drink)).messageID)
asked = ReceiveMessageRequest(name, maxReceiveMessageWaitSeconds=5)
while received := messages.receiveMessage(asked):
    for message in received:
        print("got", message.messageBody)
    done = [DeleteMessageBatchRequestEntry(each.receiptHandle) for each in received]
    messages.deleteMessageBatch(DeleteMessageBatchRequest(name, done))
