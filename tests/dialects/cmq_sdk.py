"""Tencent's SDK of CMQ, unmodified: on a service that runs, or on the one in memory."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from tests.dialects.conftest import URL, Key
from tests.dialects.connection import Connection

from cirrusmq_local.testing import World

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    pytest.importorskip("mailcap", reason="the SDK imports it, and Python 3.13 has none")
Account = import_module("cmq.account").Account
CMQServerException = import_module("cmq.cmq_exception").CMQServerException
# It makes a file in the working directory where its logger has no handler.
logging.getLogger("CMQ_python_sdk").addHandler(logging.NullHandler())
WAYS = [("POST", "sha1"), ("GET", "sha256")]
"""How it can send and sign."""
_queue, _topic = import_module("cmq.queue"), import_module("cmq.topic")
_subscription = import_module("cmq.subscription")
CLASSES = [Account, _queue.Queue, _topic.Topic, _subscription.Subscription]


def account_of(world: World, key: Key, way: tuple[str, str] = WAYS[0]) -> Any:
    """The SDK's account as any program makes it, whose calls end in the world."""
    account = signing(Account(URL, key.id, key.secret), way)
    account.get_client().http.conn = Connection(world)
    return account


def signing(account: Any, way: tuple[str, str]) -> Any:
    """The account, which sends and signs in this way."""
    account.get_client().set_method(way[0])
    account.set_sign(way[1])
    return account


def act(account: Any, action: str, **params: Any) -> dict[str, Any]:
    """A call that the SDK has no method for, or no parameter; it signs and sends it."""
    client = account.get_client()
    answer = client.request(action, params)
    client.check_status(answer)
    told: dict[str, Any] = json.loads(answer.data)
    return told


def queue_meta(**attributes: Any) -> Any:
    """Attributes of a queue, the SDK's own defaults among them."""
    return _with(_queue.QueueMeta(), attributes)


def topic_meta(**attributes: Any) -> Any:
    """Attributes of a topic."""
    return _with(_topic.TopicMeta(), attributes)


def subscription_meta(**attributes: Any) -> Any:
    """Attributes of a subscription."""
    return _with(_subscription.SubscriptionMeta(), attributes)


def message(body: str, *tags: str) -> Any:
    """A message to send."""
    return _queue.Message(body, list(tags))


def refusal(make: Callable[..., object], *given: Any, **named: Any) -> tuple[int, int]:
    """The code and the module of a call that is refused."""
    try:
        make(*given, **named)
    except CMQServerException as error:
        module, paren, _ = error.message.removeprefix("(").partition(")")
        assert paren
        return error.code, int(module)
    raise AssertionError("it was not refused")


def _with(meta: Any, attributes: dict[str, Any]) -> Any:
    for name, value in attributes.items():
        assert hasattr(meta, name)
        setattr(meta, name, value)
    return meta
