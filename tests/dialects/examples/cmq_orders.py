"""A program for CMQ: its endpoint and key come from its environment."""

from __future__ import annotations

import os

from cmq.account import Account
from cmq.cmq_exception import CMQServerException
from cmq.queue import Message, QueueMeta

account = Account(os.environ["CMQ_ENDPOINT"], os.environ["SECRET_ID"], os.environ["SECRET_KEY"])
queue = account.get_queue("orders")
meta = QueueMeta()
meta.visibilityTimeout = 60
meta.pollingWaitSeconds = 5
queue.create(meta)
for drink in ("coffee", "tea"):
    print("sent", queue.send_message(Message(drink)).msgId)
while True:
    try:
        messages = queue.batch_receive_message(16)
    except CMQServerException as error:
        if error.code != 7000:
            raise
        break  # there is no message
    for message in messages:
        print("got", message.msgBody)
    queue.batch_delete_message([message.receiptHandle for message in messages])
