"""The service for a command, and a hint for each refusal."""

from __future__ import annotations

from pathlib import Path

from cirrusmq_client import Backoff, Client, find_connection
from cirrusmq_client.errors import CirrusMQError

# A user at a terminal prefers an early error to more tries.
TRIES = 3
_HINTS = {
    "NotReachable": "start the service with: cirrusmq up",
    "NoAnswer": "the call may have taken effect: look before you repeat it",
    "Unauthenticated": "check CIRRUSMQ_ACCESS_KEY_ID and CIRRUSMQ_SECRET, or connection.json",
    "Forbidden": "its owner grants access: cirrusmq queue grant, or cirrusmq topic grant",
    "QueueNotFound": "cirrusmq queue list shows the queues there are",
    "TopicNotFound": "cirrusmq topic list shows the topics there are",
    "SubscriptionNotFound": "cirrusmq topic show <topic> lists its subscriptions",
    "ReceiverNotFound": "cirrusmq queue receivers <queue> lists them",
    "GrantNotFound": "cirrusmq queue grants <queue>, or topic grants <topic>, lists them",
    "AlreadyExists": "change what differs (queue change, topic change), or take another name",
    "MessageTooLarge": "send less at once, or make a queue with a higher max_message_bytes",
    "NotRewindable": "queues keep deleted messages for rewind_seconds, topics for a day",
    "ReportNotFound": "the report jobs write them: see Reports in the manual",
    "Throttled": "wait a moment and repeat",
    "Unavailable": "wait a moment and repeat",
}


def connect(data: Path) -> Client:
    """The service that the environment names, else the one with its data in the folder."""
    return Client(find_connection(data), retry=Backoff(tries=TRIES))


def hint_for(error: CirrusMQError) -> str | None:
    """A hint for the user after a refusal; None where there is none."""
    return _HINTS.get(error.code)
