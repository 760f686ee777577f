"""A type checker sees the library, from any folder, and what is wrong in a call of it."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cirrusmq_client import Message
from cirrusmq_client.messages import MessageFields
from cirrusmq_client.options import ConsumerOptions, Options
from cirrusmq_client.transactions import BaseTransaction, TransactionOptions

PROGRAM = """\
from cirrusmq_client import Client, Consumer, Producer, Received

client = Client()
client.create_queue("orders", {"visibility_timeout_seconds": 60, "dead_letter": {"queue": "dead"}})
client.create_queue("orders", {"visibility_timout_seconds": 60})  # wrong: visibility_timout_seconds
client.create_queue("orders", {"partitions": "four"})  # wrong: partitions
client.create_queue("orders", {"retry": {"policy": "custom", "waits": [1, 2.5]}})
client.create_queue("orders", {"retry": {"policy": "exponental"}})  # wrong: retry
client.create_topic("news", {"filter": "routing_key"})
client.create_topic("news", {"fliter": "routing_key"})  # wrong: fliter
client.create_topic("news", fliter="routing_key")  # wrong: fliter
client.change_topic("news", {"partition": 4})  # wrong: partition
client.create_receiver("orders", "audit", {"strat": "latest"})  # wrong: strat
client.create_subscription("news", "some", {"protocol": "pull", "filter": {"tags": ["paid"]}})
client.create_subscription("n", "s", {"protocol": "pull", "filter": {"tagz": []}})  # wrong: filter
client.create_subscription("news", "hook", {"protocol": "https"})  # wrong: protocol
client.change_queue("orders", {"dead_letter": {"max_receives": 3}})  # wrong: dead_letter
producer = Producer(client)
producer.send("orders", "tea", tags=["drinks"], group="table 7")
producer.send("orders", "tea", tag=["drinks"])  # wrong: tag
producer.publish("news", "tea", delay_seconds="5")  # wrong: delay_seconds
producer.send_soon("orders", 5)  # wrong


def handle(message: Received) -> None:
    print(message.txt)  # wrong: txt


async def handle_later(message: Received) -> None: ...


Consumer("orders", handle, workers=3)
Consumer("orders", handle, worker=3)  # wrong: Consumer
Consumer("orders", handle, wait_seconds="2")  # wrong: Consumer
Consumer("orders", handle_later)  # wrong
"""


HANDLERS = """\
from datetime import timedelta
from typing import Any
from cirrusmq_client import Ack, AsyncClient, AsyncConsumer, Batches, Consumer, DeadLetter
from cirrusmq_client import BatchResult, ExactlyOnce, HandlerResult, Received, Retry
from cirrusmq_client import batch_response
def plain(message: Received) -> None: ...
def good(message: Received) -> HandlerResult:
    return Retry(after=timedelta(minutes=1)) if message.redeliveries else DeadLetter("no")
def many(messages: list[Received]) -> BatchResult:
    return [Ack() for _ in messages]
def flag(message: Received) -> bool:
    return True
def text(message: Received) -> str:
    return "done"
def kind(message: Received) -> type[Retry]:
    return Retry
async def later(message: Received) -> Retry | None:
    return None
async def later_many(messages: list[Received]) -> list[Ack | Retry]:
    return []
async def later_flag(message: Received) -> bool:
    return True
def once(message: Received, tools: Any) -> None: ...
async def once_later(message: Received, tools: Any) -> None: ...
client = AsyncClient()
store: Any = None
batches = Batches()
Consumer("orders", plain, workers=2)
Consumer("orders", good)
Consumer("orders", print)
Consumer("orders", many, batches=batches)
Consumer("orders", flag)  # wrong
Consumer("orders", text)  # wrong
Consumer("orders", kind)  # wrong
Consumer("orders", later)  # wrong
Consumer("orders", many)  # wrong
Consumer("orders", good, batches=batches)  # wrong
Consumer("orders", later_many, batches=batches)  # wrong
Consumer("orders", ExactlyOnce[Any](store, "shop")(once))
ExactlyOnce[Any](store, "shop")(once_later)  # wrong
AsyncConsumer("orders", later, client=client)
AsyncConsumer("orders", later_many, client=client, batches=batches)
AsyncConsumer("orders", later_flag, client=client)  # wrong
AsyncConsumer("orders", flag, client=client)  # wrong
batch_response(good)
batch_response(flag)  # wrong
batch_response(later)  # wrong
Retry(after="5")  # wrong
"""
"""Handlers that can work, and handlers that cannot."""


@pytest.mark.long
def test_mistakes_in_calls_are_seen_outside_of_the_repository(tmp_path: Path) -> None:
    programs = {"shop": PROGRAM, "handlers": HANDLERS}
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    files = [f"{name}.py" for name in programs]
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir=.cache", *files]

    run = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )

    found = re.findall(r"^(\w+)\.py:(\d+): error: (.*)", run.stdout, re.M)
    said = {(name, int(line)): text for name, line, text in found}
    wrong = {
        (name, number): line.partition("# wrong")[2].strip(": ")
        for name, text in programs.items()
        for number, line in enumerate(text.splitlines(), 1)
        if "# wrong" in line
    }
    assert set(said) == set(wrong), run.stdout
    # Each says what is wrong: the key, or the argument that has it.
    assert {place: said[place] for place, word in wrong.items() if word not in said[place]} == {}


def test_keyword_types_have_the_taken_fields() -> None:
    fields = {each.name for each in dataclasses.fields(Message)} - {"body"}
    assert set(MessageFields.__annotations__) == fields
    options = {each.name for each in dataclasses.fields(Options)} - {"batches"}
    assert set(ConsumerOptions.__annotations__) == options
    taken = inspect.signature(BaseTransaction.__init__).parameters.values()
    keywords = {each.name for each in taken if each.kind is inspect.Parameter.KEYWORD_ONLY}
    assert set(TransactionOptions.__annotations__) == keywords
