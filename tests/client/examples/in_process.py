"""Send, receive and delete a message in this process, where the service allows it."""

from __future__ import annotations

from cirrusmq_client import Client, InProcess, Message

with Client(in_process=InProcess(look_seconds=0.09)) as client:
    client.send("orders", [Message("order 1")])
    for message in client.receive("orders", wait_seconds=20):
        print(message.text)
        client.delete("orders", [message.receipt])
