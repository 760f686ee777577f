"""`cirrusmq tail`: follows a queue or a topic without leasing messages.

A topic has a log, so no message of it is missed. A queue has no log: the command polls its
active messages, and misses a message that is received between two polls.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Annotated

import typer

from cirrusmq_client import Client, Queue, Received, Subscription
from cirrusmq_client.errors import QueueNotFound, TopicNotFound
from cirrusmq_client.sources import Source
from cirrusmq_client.times import just_before
from cirrusmq_local.commands import completion
from cirrusmq_local.commands.arguments import DATA, Data, Json, read_source, read_time
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import fail, print_json, tell
from cirrusmq_local.commands.messages import message_line

LOOK_SECONDS = 1.0
"""Seconds between two polls; more if a poll takes longer."""
LOOK_MESSAGES = 1_000
"""Maximum number of messages that a poll of a queue reads: each 16 are a call."""
KNOWN_MESSAGES = 100_000
"""Number of ids that are kept, so that a returning message is not shown again."""
_LOG_PAGE = 100


def tail(
    name: Annotated[
        str,
        typer.Argument(
            metavar="QUEUE|TOPIC|TOPIC/GROUP",
            help="A queue, a topic, or a group.",
            autocompletion=completion.logs,
        ),
    ],
    topic: Annotated[
        bool, typer.Option("--topic", help="The topic, if a queue has the same name.")
    ] = False,
    since: Annotated[
        str | None, typer.Option(help="Also messages since this time: 2026-11-20T08:00:00Z.")
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Print messages as they arrive, one on each line, until Ctrl-C; none is leased.

    For a topic: messages that match any subscription, some seconds after they are published. For a
    queue: messages that are active at a poll, once a second. It misses messages that are received
    sooner.
    """
    began = None if since is None else read_time("--since", since)
    client = connect(data)
    # Ctrl-C ends following; it is not an error.
    with contextlib.suppress(KeyboardInterrupt):
        for message in _found(client, name, topic, began or _now(client)):
            if as_json:
                print_json(dict(message.json))
            else:
                print(message_line(message), flush=True)


def logged(client: Client, log: str | Subscription, since: datetime) -> Iterator[Received]:
    """Yield messages of a topic's log that were published at or after a time, without an end."""
    after = just_before(since)
    while True:
        messages, after = client.read_log(log, after, _LOG_PAGE)
        yield from messages
        if not messages:
            time.sleep(LOOK_SECONDS)


def active(client: Client, source: Source, since: datetime) -> Iterator[Received]:
    """Yield messages that became active at or after a time, each once, without an end."""
    known: dict[tuple[str, str], None] = {}
    told = False
    while True:
        looked = time.monotonic()
        passed = list(islice(client.peek_all(source), LOOK_MESSAGES))
        for message in sorted(passed, key=lambda each: each.id):
            # An id may occur twice: as dead letters of two receivers.
            name = message.id, str(message.json.get("dead_letter"))
            if name in known or _active_since(message) < since:
                continue
            known[name] = None
            if len(known) > KNOWN_MESSAGES:
                del known[next(iter(known))]
            yield message
        if len(passed) == LOOK_MESSAGES and not told:
            tell(f"more than {LOOK_MESSAGES:,} messages are active: some that come are not seen")
            told = True
        time.sleep(max(LOOK_SECONDS, time.monotonic() - looked))


def _found(client: Client, name: str, topic: bool, since: datetime) -> Iterator[Received]:
    source = read_source(name)
    if topic:
        return logged(client, name, since)
    if isinstance(source, Subscription):
        shown = client.show_subscription(source.topic, source.name)
        broadcasts = shown.get("mode") == "broadcasting"
        return (logged if broadcasts else active)(client, source, since)
    return _queue_or_topic(client, source, since)


def _queue_or_topic(client: Client, queue: Queue, since: datetime) -> Iterator[Received]:
    try:
        client.peek(queue)
    except QueueNotFound:
        pass
    else:
        return active(client, queue, since)
    try:
        client.read_log(queue.name, limit=1)
    except TopicNotFound:
        fail(
            f"there is no queue and no topic {queue.name}",
            "cirrusmq queue list and cirrusmq topic list show what there is",
        )
    return logged(client, queue.name, since)


def _active_since(message: Received) -> datetime:
    return message.visible_at or message.sent_at


def _now(client: Client) -> datetime:
    return datetime.fromisoformat(client.health()["time"])
