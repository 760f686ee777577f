"""`cirrusmq queue …`: queues, and the long work on them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cirrusmq_client import Queue as SourceQueue
from cirrusmq_local.commands.arguments import (
    DATA,
    Attributes,
    Data,
    Json,
    OnlySql,
    OnlyTags,
    Prefix,
    Queue,
    Yes,
    ask,
    read_attributes,
    read_filter,
    read_moment,
)
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_json, print_listing, print_record
from cirrusmq_local.commands.following import follow

_COLUMNS = (
    "name",
    "ordered",
    "fair",
    "message_retention_seconds",
    "visibility_timeout_seconds",
    "created_at",
)
Reason = Annotated[str | None, typer.Option(help="Dead letters of this reason.")]
SourceName = Annotated[
    str | None, typer.Option("--source", help="Dead letters of this queue, or topic.")
]
OfSubscription = Annotated[str | None, typer.Option(help="Dead letters of this subscription.")]
OlderThan = Annotated[int | None, typer.Option(help="Dead for so many seconds.", min=0)]
YoungerThan = Annotated[int | None, typer.Option(help="Dead for fewer seconds.", min=0)]
MessageId = Annotated[str, typer.Argument(help="Msg-…")]
Group = Annotated[str | None, typer.Option(help="Its group, in an ordered or a fair queue.")]
ReceiverName = Annotated[str, typer.Argument(help="The receiver's name.")]
Receiver = Annotated[str | None, typer.Option(help="An independent receiver.")]
queues = typer.Typer(no_args_is_help=True, help="Make, show and change queues.")


@queues.command("create")
def create(
    name: Queue,
    attribute: Attributes = None,
    fair: Annotated[bool, typer.Option("--fair", help="Each group has its turn.")] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Make a queue, or see that it is there with exactly these attributes."""
    attributes = read_attributes(attribute) | ({"fair": True} if fair else {})
    print_record(connect(data).create_queue(name, attributes), as_json)


@queues.command("list")
def list_queues(prefix: Prefix = "", as_json: Json = False, data: Data = DATA) -> None:
    """List the account's queues."""
    found = list(connect(data).list_queues(prefix))
    print_listing(
        found, _COLUMNS, as_json, "no queues: make one with: cirrusmq queue create <name>"
    )


@queues.command("show")
def show_queue(name: Queue, as_json: Json = False, data: Data = DATA) -> None:
    """Show a queue's attributes and counts."""
    print_record(connect(data).show_queue(name), as_json)


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
    """Take back a message that nobody has received, by its id."""
    connect(data).cancel(SourceQueue(name, receiver), message_id, group=group)


@queues.command("reschedule")
def reschedule(
    name: Queue,
    message_id: MessageId,
    delay_seconds: Annotated[int | None, typer.Option(help="Hidden for so long from now.")] = None,
    deliver_at: Annotated[
        str | None, typer.Option(help="When: 2026-11-20T08:00:00Z, or 1795161600 (unix).")
    ] = None,
    receiver: Receiver = None,
    group: Group = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Change when a message is due that nobody has received, by its id."""
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


@queues.command("purge")
def purge(name: Queue, yes: Yes = False, as_json: Json = False, data: Data = DATA) -> None:
    """Remove every message sent before now."""
    ask(f"Remove all messages of {name}?", yes)
    client = connect(data)
    follow(client, client.purge_queue(name), as_json)


@queues.command("rewind")
def rewind(
    name: Queue,
    to: Annotated[
        str, typer.Option(help="Time of sending: 2026-11-20T08:00:00Z, or 1795161600 (unix).")
    ],
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Make deleted messages that were sent at or after a time active again.

    They come in order of sending in a queue with one partition, and within the groups of an
    ordered queue; with several partitions in that of each of them.
    """
    client = connect(data)
    follow(client, client.rewind_queue(name, read_moment(to)), as_json)


@queues.command("export")
def export(
    name: Queue,
    reason: Reason = None,
    source: SourceName = None,
    subscription: OfSubscription = None,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    data: Data = DATA,
) -> None:
    """Print active messages, one JSON object a line; none is claimed.

    With an option, only dead letters that it selects.
    """
    wanted = _selected(reason, source, subscription, older_than, younger_than)
    for message in connect(data).peek_all(name, wanted):
        print_json(dict(message.json))


@queues.command("redrive")
def redrive(
    name: Queue,
    to: Annotated[
        str | None, typer.Option(help="A queue; else back to each message's source.")
    ] = None,
    max_messages: Annotated[int | None, typer.Option(help="At most so many.", min=1)] = None,
    message_id: Annotated[
        list[str] | None, typer.Option("--id", help="Only this message. May be repeated.")
    ] = None,
    reason: Reason = None,
    source: SourceName = None,
    subscription: OfSubscription = None,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Send a dead-letter queue's messages back, or any queue's to another one with --to."""
    wanted = _selected(reason, source, subscription, older_than, younger_than)
    client = connect(data)
    started = client.redrive_queue(
        name, to, max_messages, dead_letter=wanted or None, ids=message_id or None
    )
    follow(client, started, as_json)


@queues.command("add-receiver")
def add_receiver(
    name: Queue,
    receiver: ReceiverName,
    start: Annotated[
        str | None, typer.Option(help="latest, earliest (also what is in the queue), or a time.")
    ] = None,
    tag: OnlyTags = None,
    sql: OnlySql = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Add an independent receiver to a queue, and wait until it has what was sent before."""
    wanted = {"start": start, "filter": read_filter(tag, None, sql)}
    attributes = {key: value for key, value in wanted.items() if value is not None}
    client = connect(data)
    added = client.create_receiver(name, receiver, attributes)
    print_record(added, as_json)
    if "operation" in added and not as_json:
        follow(client, added["operation"], as_json)


@queues.command("receivers")
def list_receivers(name: Queue, as_json: Json = False, data: Data = DATA) -> None:
    """List a queue's independent receivers."""
    found = list(connect(data).list_receivers(name))
    print_listing(found, ("name", "start", "starts_at", "created_at"), as_json, "no receivers")


@queues.command("remove-receiver")
def remove_receiver(
    name: Queue, receiver: ReceiverName, yes: Yes = False, data: Data = DATA
) -> None:
    """Remove a receiver, and the messages that it has not received."""
    ask(f"Remove receiver {receiver} of {name}?", yes)
    connect(data).delete_receiver(name, receiver)


def _selected(
    reason: str | None,
    source: str | None,
    subscription: str | None,
    older_than: int | None,
    younger_than: int | None,
) -> dict[str, Any]:
    """The filter of dead letters that the options make."""
    given = {
        "reason": reason,
        "source_queue": source,
        "subscription": subscription,
        "older_than_seconds": older_than,
        "younger_than_seconds": younger_than,
    }
    return {key: value for key, value in given.items() if value is not None}
