"""kombu's fanout exchanges, which are topics of SNS, on the running service."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.messaging import Consumer, Producer
from kombu.transport.SQS import Transport
from tests.dialects.test_kombu import OPTIONS, broker


@pytest.fixture
def connection(running: dict[str, Any]) -> Iterator[Any]:
    """As kombu's own documentation makes one."""
    options = {**OPTIONS, "supports_fanout": True}
    with Connection(broker(running), transport_options=options) as made:
        yield made


def test_each_queue_of_a_fanout_gets_what_is_published(connection: Any) -> None:
    name = uuid.uuid4().hex
    exchange = Exchange(f"news-{name}", type="fanout")
    queues = [Queue(f"{each}-{name}", exchange=exchange) for each in ("teas", "milks")]
    got: dict[str, list[Any]] = {queue.name: [] for queue in queues}

    def note(body: Any, message: Any) -> None:
        got[message.delivery_info["sqs_queue"].rpartition("/")[2]].append(body)
        message.ack()

    with Consumer(connection.channel(), queues=queues, callbacks=[note], accept=["json"]):
        Producer(connection.channel(), exchange=exchange).publish({"cups": 2})
        ends = time.monotonic() + 30
        while not all(got.values()) and time.monotonic() < ends:
            connection.drain_events(timeout=30)
    assert list(got.values()) == [[{"cups": 2}], [{"cups": 2}]]


def test_celery_leaves_its_remote_control_out_on_sqs() -> None:
    """Its worker asks the transport for `fanout`, and kombu's of SQS names `direct` alone.

    So `celery inspect` reaches no worker, on AWS neither. Once this fails, try it.
    """
    assert "fanout" not in Transport.implements.exchange_type
