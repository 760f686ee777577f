"""`cirrusmq queue …`: queues and their messages."""

from __future__ import annotations

from typing import Annotated

import typer

from cirrusmq_client import Queue as SourceQueue
from cirrusmq_local.commands import completion
from cirrusmq_local.commands.arguments import (
    DATA,
    Attributes,
    Data,
    Exact,
    Json,
    Prefix,
    Queue,
    Yes,
    ask,
    read_attributes,
    read_changes,
    read_moment,
)
from cirrusmq_local.commands.backlogs import MAX, counted_columns, with_counts
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_json, print_listing, print_record
from cirrusmq_local.commands.summaries import print_changed, print_made

_COLUMNS = (
    "name",
    "ordered",
    "fair",
    "message_retention_seconds",
    "visibility_timeout_seconds",
    "created_at",
)
MessageId = Annotated[str, typer.Argument(help="Msg-…")]
Group = Annotated[
    str | None, typer.Option(help="The message's group, in an ordered or a fair queue.")
]
Receiver = Annotated[
    str | None,
    typer.Option(help="An independent receiver.", autocompletion=completion.receivers),
]
queues = typer.Typer()


@queues.command("create")
def create(
    name: Queue,
    attribute: Attributes = None,
    fair: Annotated[
        bool, typer.Option("--fair", help="Deliver from the groups in turn (round robin).")
    ] = False,
    exact: Exact = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Make a queue, or check that it exists with these attributes."""
    attributes = read_attributes(attribute) | ({"fair": True} if fair else {})
    made = connect(data).create_queue(name, attributes, exact=exact)
    print_made("queue", name, made, attributes, as_json)


@queues.command("list")
def list_queues(
    prefix: Prefix = "",
    counts: Annotated[
        bool,
        typer.Option("--counts", help=f"Show the backlogs of the first {MAX}: a call for each."),
    ] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """List the account's queues."""
    client = connect(data)
    found = list(client.list_queues(prefix))
    empty = "no queues: make one with: cirrusmq queue create <name>"
    if not counts:
        print_listing(found, _COLUMNS, as_json, empty)
        return
    counted = with_counts(client, found)
    if as_json:
        print_json(counted)
    else:
        rows = [each | each.get("counts", {}) for each in counted]
        print_listing(rows, counted_columns(rows), as_json, empty)


@queues.command("show")
def show_queue(name: Queue, as_json: Json = False, data: Data = DATA) -> None:
    """Show a queue's attributes and counts."""
    print_record(connect(data).show_queue(name), as_json)


@queues.command("change")
def change(
    name: Queue, attribute: Attributes = None, as_json: Json = False, data: Data = DATA
) -> None:
    """Change some of a queue's attributes; null removes one."""
    changes = read_changes(attribute)
    changed = connect(data).change_queue(name, changes)
    print_changed("queue", name, changed, changes, as_json)


@queues.command("message")
def show_message(
    name: Queue,
    message_id: MessageId,
    receiver: Receiver = None,
    group: Group = None,
    body: Annotated[bool, typer.Option("--body", help="With its body.")] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show a message's state, by its id."""
    found = connect(data).look_up(SourceQueue(name, receiver), message_id, group=group, body=body)
    print_record(found, as_json)


@queues.command("cancel")
def cancel(
    name: Queue,
    message_id: MessageId,
    receiver: Receiver = None,
    group: Group = None,
    data: Data = DATA,
) -> None:
    """Cancel a message that no consumer has received, by its id."""
    connect(data).cancel(SourceQueue(name, receiver), message_id, group=group)


@queues.command("reschedule")
def reschedule(
    name: Queue,
    message_id: MessageId,
    delay_seconds: Annotated[
        int | None, typer.Option(help="Seconds from now until it is due.")
    ] = None,
    deliver_at: Annotated[
        str | None,
        typer.Option(help="Time when it is due: 2026-11-20T08:00:00Z, or 1795161600 (unix)."),
    ] = None,
    receiver: Receiver = None,
    group: Group = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Change the due time of a message that no consumer has received, by its id."""
    found = connect(data).reschedule(
        SourceQueue(name, receiver),
        message_id,
        delay_seconds=delay_seconds,
        deliver_at=None if deliver_at is None else read_moment(deliver_at),
        group=group,
    )
    print_record(found, as_json)


@queues.command("delete")
def delete(name: Queue, yes: Yes = False, data: Data = DATA) -> None:
    """Delete a queue and all its messages."""
    ask(f"Delete {name} and all its messages?", yes)
    connect(data).delete_queue(name)
