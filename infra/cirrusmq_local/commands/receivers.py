"""`cirrusmq queue …` for independent receivers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cirrusmq_local.commands import completion
from cirrusmq_local.commands.arguments import (
    DATA,
    Attributes,
    Data,
    Exact,
    Json,
    OnlySql,
    OnlyTags,
    Queue,
    Yes,
    ask,
    read_changes,
    read_filter,
)
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_listing, print_record
from cirrusmq_local.commands.following import follow
from cirrusmq_local.commands.summaries import print_changed, print_made

ReceiverName = Annotated[
    str, typer.Argument(help="The receiver's name.", autocompletion=completion.receivers)
]
OfReceiver = Annotated[
    str | None,
    typer.Option(
        "--receiver", help="An independent receiver.", autocompletion=completion.receivers
    ),
]
receivers = typer.Typer()


@receivers.command("add-receiver")
def add_receiver(
    name: Queue,
    receiver: ReceiverName,
    start: Annotated[
        str | None,
        typer.Option(help="latest, earliest (also the messages in the queue), or a time."),
    ] = None,
    tag: OnlyTags = None,
    sql: OnlySql = None,
    exact: Exact = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Add an independent receiver to a queue, and wait until it has the older messages."""
    wanted = {"start": start, "filter": read_filter(tag, None, sql)}
    attributes: Any = {key: value for key, value in wanted.items() if value is not None}
    client = connect(data)
    added = client.create_receiver(name, receiver, attributes, exact=exact)
    print_made("receiver", f"{name}/{receiver}", added, attributes, as_json)
    if "operation" in added and not as_json:
        follow(client, added["operation"], as_json)


@receivers.command("change-receiver")
def change_receiver(
    name: Queue,
    receiver: ReceiverName,
    attribute: Attributes = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Change a receiver's attributes: -a receive_rate=100, labels or paused."""
    changes = read_changes(attribute)
    changed = connect(data).change_receiver(name, receiver, changes)
    print_changed("receiver", f"{name}/{receiver}", changed, changes, as_json)


@receivers.command("pause")
def pause(
    name: Queue, receiver: OfReceiver = None, as_json: Json = False, data: Data = DATA
) -> None:
    """Pause deliveries of a queue, or of one of its receivers; sends still work."""
    _set_paused(name, receiver, True, as_json, data)


@receivers.command("resume")
def resume(
    name: Queue, receiver: OfReceiver = None, as_json: Json = False, data: Data = DATA
) -> None:
    """Resume deliveries."""
    _set_paused(name, receiver, False, as_json, data)


def _set_paused(name: str, receiver: str | None, paused: bool, as_json: bool, data: Path) -> None:
    client, changes = connect(data), {"paused": paused}
    if receiver is None:
        changed = client.change_queue(name, {"paused": paused})
        print_changed("queue", name, changed, changes, as_json)
    else:
        of_receiver = client.change_receiver(name, receiver, {"paused": paused})
        print_changed("receiver", f"{name}/{receiver}", of_receiver, changes, as_json)


@receivers.command("receivers")
def list_receivers(name: Queue, as_json: Json = False, data: Data = DATA) -> None:
    """List a queue's independent receivers."""
    found = list(connect(data).list_receivers(name))
    print_listing(found, ("name", "start", "starts_at", "created_at"), as_json, "no receivers")


@receivers.command("remove-receiver")
def remove_receiver(
    name: Queue, receiver: ReceiverName, yes: Yes = False, data: Data = DATA
) -> None:
    """Remove a receiver, and the messages that it has not received."""
    ask(f"Remove receiver {receiver} of {name}?", yes)
    connect(data).delete_receiver(name, receiver)


@receivers.command("receiver")
def show_receiver(
    name: Queue, receiver: ReceiverName, as_json: Json = False, data: Data = DATA
) -> None:
    """Show a receiver's attributes and counts."""
    print_record(connect(data).show_receiver(name, receiver), as_json)
