"""CirrusMQ's client library: calls, producers and consumers.

`SqlTransactions` and `DynamoDBTransactions` are in separate modules, so that only their users need
SQLAlchemy or boto3; so are the classes for asyncio, which the other classes do not load.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from cirrusmq_client.aws_lambda import batch_response, exactly_once
from cirrusmq_client.backoff import Backoff
from cirrusmq_client.client import Client
from cirrusmq_client.connection import Connection, find_connection
from cirrusmq_client.consumer import Consumer
from cirrusmq_client.dynamodb_transactions import DynamoDBTransactions
from cirrusmq_client.errors import CirrusMQError, ReplyTimedOut
from cirrusmq_client.exactly_once import AlreadyConsumed, ExactlyOnce
from cirrusmq_client.in_process import InProcess
from cirrusmq_client.lingering import NotSent
from cirrusmq_client.messages import Message, Received
from cirrusmq_client.options import Batches
from cirrusmq_client.outcomes import Undecided
from cirrusmq_client.producer import PartlySent, Producer
from cirrusmq_client.progress import CallbackProgress, FileProgress, NoProgress
from cirrusmq_client.results import Ack, BatchResult, DeadLetter, HandlerResult, Reply, Retry
from cirrusmq_client.sources import Queue, Subscription
from cirrusmq_client.tracing import Tracing
from cirrusmq_client.transactions import TakenOver, Transaction

if TYPE_CHECKING:
    from cirrusmq_client.async_client import AsyncClient
    from cirrusmq_client.async_consumer import AsyncConsumer
    from cirrusmq_client.async_producer import AsyncProducer
    from cirrusmq_client.sql_decisions import SqlDecisions
    from cirrusmq_client.sql_transactions import SqlTransactions

__all__ = [
    "Ack",
    "AlreadyConsumed",
    "AsyncClient",
    "AsyncConsumer",
    "AsyncProducer",
    "Backoff",
    "BatchResult",
    "Batches",
    "CallbackProgress",
    "CirrusMQError",
    "Client",
    "Connection",
    "Consumer",
    "DeadLetter",
    "DynamoDBTransactions",
    "ExactlyOnce",
    "FileProgress",
    "HandlerResult",
    "InProcess",
    "Message",
    "NoProgress",
    "NotSent",
    "PartlySent",
    "Producer",
    "Queue",
    "Received",
    "Reply",
    "ReplyTimedOut",
    "Retry",
    "SqlDecisions",
    "SqlTransactions",
    "Subscription",
    "TakenOver",
    "Tracing",
    "Transaction",
    "Undecided",
    "batch_response",
    "exactly_once",
    "find_connection",
]

__version__ = "0.1.0"
"""Version of the service with which this library was made."""

_LATER = {
    "AsyncClient": "async_client",
    "AsyncConsumer": "async_consumer",
    "AsyncProducer": "async_producer",
    "SqlDecisions": "sql_decisions",
    "SqlTransactions": "sql_transactions",
}
"""Classes whose modules are imported at their first use."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(name)
    return getattr(import_module(f"cirrusmq_client.{_LATER[name]}"), name)
