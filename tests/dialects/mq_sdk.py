"""Aliyun's SDK of RocketMQ over HTTP, unmodified, on the service in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mq_http_sdk.mq_client import MQClient
from mq_http_sdk.mq_exception import MQServerException
from mq_http_sdk.mq_producer import TopicMessage
from tests.dialects.conftest import URL, Key
from tests.dialects.connection import Connection

from cirrusmq_local.testing import World

INSTANCE = "MQ_INST_1"


def client_of(world: World, key: Key) -> Any:
    """The SDK's client as any program makes it, whose calls end in the world."""
    client = MQClient(URL, key.id, key.secret)
    client.http.conn = Connection(world)
    return client


def message(body: str, tag: str = "", **properties: str) -> Any:
    """A message to publish."""
    made = TopicMessage(body, tag)
    for name, value in properties.items():
        made.put_property(name, value)
    return made


def refusal(make: Callable[..., object], *given: Any) -> str:
    """The code of a call that is refused."""
    try:
        make(*given)
    except MQServerException as error:
        return str(error.type)
    raise AssertionError("it was not refused")
