"""Long operations on queues: purge, rewind, redrive; and the export of messages."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from cirrusmq_local.commands import completion
from cirrusmq_local.commands.arguments import DATA, Data, Json, Queue, Yes, ask, read_moment
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import fail, print_json
from cirrusmq_local.commands.dead_letters import (
    OfReceiver,
    OfSubscription,
    OlderThan,
    Reason,
    SourceName,
    YoungerThan,
    chosen,
)
from cirrusmq_local.commands.following import Wait, begun

work = typer.Typer()


@work.command("purge")
def purge(
    name: Queue, yes: Yes = False, wait: Wait = True, as_json: Json = False, data: Data = DATA
) -> None:
    """Remove every message sent before now."""
    ask(f"Remove all messages of {name}?", yes)
    client = connect(data)
    begun(client, client.purge_queue(name), wait, as_json)


@work.command("wait-empty")
def wait_empty(
    name: Queue,
    timeout: Annotated[
        float, typer.Option(min=0, help="Seconds after which it stops waiting and exits with 1.")
    ] = 3_600.0,
    data: Data = DATA,
) -> None:
    """Wait until a queue is drained: no message is active, leased, waiting for a retry or delayed.

    It does not wait for the receivers, which have separate backlogs (`queue receivers`).
    """
    client = connect(data)
    until = time.monotonic() + timeout
    while True:
        counts = client.show_queue(name)["counts"]
        left = {state: counts[state] for state in ("active", "inactive", "delayed")}
        if not any(left.values()):
            print(f"{name} is empty")
            return
        if time.monotonic() >= until:
            told = ", ".join(f"{number} {state}" for state, number in left.items())
            fail(f"{name} is not empty: {told}")
        time.sleep(max(0.0, min(1.0, until - time.monotonic())))


@work.command("rewind")
def rewind(
    name: Queue,
    to: Annotated[
        str, typer.Option(help="Time of sending: 2026-11-20T08:00:00Z, or 1795161600 (unix).")
    ],
    wait: Wait = True,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Make deleted messages that were sent at or after a time active again.

    A queue with one partition, and each group of an ordered queue, delivers them in the order of
    sending. With several partitions, each partition keeps its order.
    """
    client = connect(data)
    begun(client, client.rewind_queue(name, read_moment(to)), wait, as_json)


@work.command("export")
def export(
    name: Queue,
    reason: Reason = None,
    source: SourceName = None,
    receiver: OfReceiver = None,
    subscription: OfSubscription = None,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    data: Data = DATA,
) -> None:
    """Print active messages, one JSON object on each line; none is leased.

    With an option, only the dead letters that it selects.
    """
    wanted = chosen(reason, source, receiver, subscription, older_than, younger_than)
    for message in connect(data).peek_all(name, wanted):
        print_json(dict(message.json))


@work.command("redrive")
def redrive(
    name: Queue,
    to: Annotated[
        str | None,
        typer.Option(
            help="A queue; without it, messages go back to their sources.",
            autocompletion=completion.queues,
        ),
    ] = None,
    max_messages: Annotated[
        int | None, typer.Option(help="Maximum number of messages.", min=1)
    ] = None,
    message_id: Annotated[
        list[str] | None, typer.Option("--id", help="Only this message. May be repeated.")
    ] = None,
    reason: Reason = None,
    source: SourceName = None,
    receiver: OfReceiver = None,
    subscription: OfSubscription = None,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    wait: Wait = True,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Send a dead-letter queue's messages back, or any queue's to another one with --to."""
    wanted = chosen(reason, source, receiver, subscription, older_than, younger_than)
    client = connect(data)
    started = client.redrive_queue(
        name, to, max_messages, dead_letter=wanted, ids=message_id or None
    )
    begun(client, started, wait, as_json)
