"""Makes the client of a command, and has a hint for each error of the service."""

from __future__ import annotations

from pathlib import Path

from cirrusmq_client import Backoff, Client, find_connection
from cirrusmq_client.errors import CirrusMQError

# A user at a terminal prefers an early error to more retries.
TRIES = 3
_HINTS = {
    "NotReachable": "start the service with: cirrusmq up",
    "NoAnswer": "the call may have taken effect: check before you repeat it",
    "Unauthenticated": "check CIRRUSMQ_ACCESS_KEY_ID and CIRRUSMQ_SECRET, or connection.json",
    "Forbidden": "its owner grants access: cirrusmq queue grant, or cirrusmq topic grant",
    "QueueNotFound": "cirrusmq queue list shows all queues",
    "TopicNotFound": "cirrusmq topic list shows all topics",
    "SubscriptionNotFound": "cirrusmq topic show <topic> lists its subscriptions",
    "ReceiverNotFound": "cirrusmq queue receivers <queue> lists them",
    "ReplyTimedOut": "a consumer must reply: cirrusmq receive --json, then cirrusmq reply",
    "ScheduleNotFound": "cirrusmq schedule list shows the schedules there are",
    "GrantNotFound": "cirrusmq queue grants <queue>, or topic grants <topic>, lists them",
    "AlreadyExists": "change what differs (queue change, topic change), or choose another name",
    "MessageTooLarge": "send less at once, or make a queue with a higher max_message_bytes",
    "NotRewindable": "queues keep deleted messages for rewind_seconds, topics for a day",
    "ReportNotFound": "the report jobs write them: see Reports in the manual",
    "Throttled": "wait a moment and repeat",
    "Unavailable": "wait a moment and repeat",
}


def connect(data: Path) -> Client:
    """Return a client of the service in the environment, or else of the data folder's service."""
    return Client(find_connection(data), retry=Backoff(tries=TRIES))


def hint_for(error: CirrusMQError) -> str | None:
    """Return a hint for the user after an error, or None if the error has no hint."""
    return _HINTS.get(error.code)
