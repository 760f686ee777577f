"""`cirrusmq tail`: following a queue or a topic without taking anything.

A topic has a log of what its subscriptions get, and nothing of it is missed. A queue has none: its
active messages are looked at again and again: one that is received between two looks is not seen.
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
"""Between two looks; longer where a look itself takes longer."""
LOOK_MESSAGES = 1_000
"""That a look at a queue passes at most: each 16 of them are a call."""
KNOWN_MESSAGES = 100_000
"""Whose ids are kept, so that one that comes back is not shown again."""
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
        bool, typer.Option("--topic", help="The topic, where a queue has its name, too.")
    ] = False,
    since: Annotated[
        str | None, typer.Option(help="Also what came since then: 2026-11-20T08:00:00Z.")
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Print messages as they come, one line each, until Ctrl-C; none is claimed.

    Of a topic all that a subscription gets, some seconds after they are published. Of a queue those
    that are active when it is looked at, once a second: one that is received sooner is not seen.
    """
    began = None if since is None else read_time("--since", since)
    client = connect(data)
    # Ctrl-C is how following ends, not a failure.
    with contextlib.suppress(KeyboardInterrupt):
        for message in _found(client, name, topic, began or _now(client)):
            if as_json:
                print_json(dict(message.json))
            else:
                print(message_line(message), flush=True)


def logged(client: Client, log: str | Subscription, since: datetime) -> Iterator[Received]:
    """The messages of a topic's log that were published at a time or later, without an end."""
    after = just_before(since)
    while True:
        messages, after = client.read_log(log, after, _LOG_PAGE)
        yield from messages
        if not messages:
            time.sleep(LOOK_SECONDS)


def active(client: Client, source: Source, since: datetime) -> Iterator[Received]:
    """Messages that became active at a time or later, each once, without an end."""
    known: dict[tuple[str, str], None] = {}
    told = False
    while True:
        looked = time.monotonic()
        passed = list(islice(client.peek_all(source), LOOK_MESSAGES))
        for message in sorted(passed, key=lambda each: each.id):
            # An id may be there twice: as dead letters of two receivers.
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
