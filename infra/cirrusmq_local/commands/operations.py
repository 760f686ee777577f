"""`cirrusmq operation …`: long operations and their progress."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any, Literal

import typer

from cirrusmq_local.commands import completion
from cirrusmq_local.commands.arguments import DATA, MAX, Data, Json, Most
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_listing, print_record
from cirrusmq_local.commands.following import follow

operations = typer.Typer(no_args_is_help=True, help="Show the progress of long operations.")
_COLUMNS = ("id", "kind", "of", "state", "done", "started_at", "key_id", "detail")


@operations.callback()
def _group() -> None:
    """Show purges, rewinds, redrives, and backfills of receivers."""


@operations.command("list")
def list_operations(
    state: Annotated[
        Literal["running", "succeeded", "failed"] | None,
        typer.Option(help="Only operations in this state."),
    ] = None,
    kind: Annotated[
        Literal["purge", "rewind", "redrive", "backfill", "replay"] | None,
        typer.Option(help="Only operations of this kind."),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(help="Only operations on this queue.", autocompletion=completion.queues),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            help="Only operations on this topic's subscriptions.", autocompletion=completion.topics
        ),
    ] = None,
    limit: Most = MAX,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """List the account's operations of the last seven days, the newest first."""
    found = connect(data).list_operations(state=state, kind=kind, queue=queue, topic=topic)
    listed = list[Mapping[str, Any]](islice(found, limit))
    if not as_json:
        listed = [{**each, "of": _place(each)} for each in listed]
    print_listing(listed, _COLUMNS, as_json, "no operations")


def _place(operation: Mapping[str, Any]) -> str:
    """The queue and receiver, or the topic and subscription."""
    names = ("queue", "receiver", "topic", "subscription")
    return "/".join(operation[name] for name in names if name in operation)


@operations.command("show")
def show_operation(
    operation: Annotated[str, typer.Argument(help="Op-…")],
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it ends; exits with 1 if it failed.")
    ] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show the progress of an operation, up to 7 days after its start."""
    client = connect(data)
    if wait:
        follow(client, operation, as_json)
    else:
        print_record(client.show_operation(operation), as_json)
