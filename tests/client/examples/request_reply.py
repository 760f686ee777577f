"""Asks a question and waits for the reply, which a consumer gives."""

from __future__ import annotations

from cirrusmq_client import Client, Consumer, Message, Received, Reply

client = Client()
client.create_queue("sums")


def add(message: Received) -> Reply:
    return Reply(str(sum(map(int, message.text.split("+")))))


with Consumer("sums", add, client=client, wait_seconds=1):
    print(client.ask("sums", Message("2+2"), seconds=30).text, flush=True)
