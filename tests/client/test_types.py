"""A type checker sees the library, from any folder, and what is wrong in a call of it."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

from cirrusmq_client import Message
from cirrusmq_client.messages import MessageFields
from cirrusmq_client.options import ConsumerOptions, Options
from cirrusmq_client.transactions import BaseTransaction, TransactionOptions

PROGRAM = """\
from cirrusmq_client import Client, Consumer, Producer, Received

client = Client()
client.create_queue("orders", {"visibility_timeout_seconds": 60, "dead_letter": {"queue": "dead"}})
client.create_queue("orders", {"visibility_timout_seconds": 60})  # wrong
client.create_queue("orders", {"partitions": "four"})  # wrong
client.create_queue("orders", {"retry": {"policy": "custom", "waits": [1, 2.5]}})
client.create_queue("orders", {"retry": {"policy": "exponental"}})  # wrong
client.create_topic("news", {"filter": "routing_key"})
client.create_subscription("news", "some", {"protocol": "pull", "filter": {"tags": ["paid"]}})
client.create_subscription("news", "some", {"protocol": "pull", "filter": {"tagz": ["a"]}})  # wrong
client.create_subscription("news", "hook", {"protocol": "https"})  # wrong
client.change_queue("orders", {"dead_letter": {"max_receives": 3}})  # wrong
producer = Producer(client)
producer.send("orders", "tea", tags=["drinks"], group="table 7")
producer.send("orders", "tea", tag=["drinks"])  # wrong
producer.publish("news", "tea", delay_seconds="5")  # wrong
producer.send_soon("orders", 5)  # wrong


def handle(message: Received) -> None:
    print(message.txt)  # wrong


async def handle_later(message: Received) -> None: ...


Consumer("orders", handle, workers=3)
Consumer("orders", handle, worker=3)  # wrong
Consumer("orders", handle, wait_seconds="2")  # wrong
Consumer("orders", handle_later)  # wrong
"""


def test_mistakes_in_calls_are_seen_outside_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir=.cache", "shop.py"]

    run = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )

    seen = {int(line) for line in re.findall(r"^shop\.py:(\d+): error", run.stdout, re.M)}
    lines = enumerate(PROGRAM.splitlines(), 1)
    assert seen == {number for number, line in lines if line.endswith("# wrong")}, run.stdout


def test_the_types_of_keywords_have_what_is_taken() -> None:
    fields = {each.name for each in dataclasses.fields(Message)} - {"body"}
    assert set(MessageFields.__annotations__) == fields
    options = {each.name for each in dataclasses.fields(Options)} - {"batches"}
    assert set(ConsumerOptions.__annotations__) == options
    taken = inspect.signature(BaseTransaction.__init__).parameters.values()
    keywords = {each.name for each in taken if each.kind is inspect.Parameter.KEYWORD_ONLY}
    assert set(TransactionOptions.__annotations__) == keywords
