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


@pytest.mark.long
def test_mistakes_in_calls_are_seen_outside_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir=.cache", "shop.py"]

    run = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )

    found = re.findall(r"^shop\.py:(\d+): error: (.*)", run.stdout, re.M)
    said = {int(line): text for line, text in found}
    wrong = {
        number: line.partition("# wrong")[2].strip(": ")
        for number, line in enumerate(PROGRAM.splitlines(), 1)
        if "# wrong" in line
    }
    assert set(said) == set(wrong), run.stdout
    # Each says what is wrong: the key, or the argument that has it.
    assert {
        number: said[number] for number, word in wrong.items() if word not in said[number]
    } == {}


def test_the_types_of_keywords_have_what_is_taken() -> None:
    fields = {each.name for each in dataclasses.fields(Message)} - {"body"}
    assert set(MessageFields.__annotations__) == fields
    options = {each.name for each in dataclasses.fields(Options)} - {"batches"}
    assert set(ConsumerOptions.__annotations__) == options
    taken = inspect.signature(BaseTransaction.__init__).parameters.values()
    keywords = {each.name for each in taken if each.kind is inspect.Parameter.KEYWORD_ONLY}
    assert set(TransactionOptions.__annotations__) == keywords
