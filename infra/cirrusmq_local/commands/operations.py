"""`cirrusmq operation …`: long work, by its id."""

from __future__ import annotations

from typing import Annotated

import typer

from cirrusmq_local.commands.arguments import DATA, Data, Json
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_record
from cirrusmq_local.commands.following import follow

operations = typer.Typer(no_args_is_help=True, help="Show how far long work is.")


@operations.callback()
def _group() -> None:
    """Of purges, rewinds, redrives, and of receivers that begin with the backlog."""


@operations.command("show")
def show_operation(
    operation: Annotated[str, typer.Argument(help="Op-…")],
    wait: Annotated[
        bool, typer.Option("--wait", help="Until it ends; exits with 1 where it failed.")
    ] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show how far an operation is, up to 7 days after its end."""
    client = connect(data)
    if wait:
        follow(client, operation, as_json)
    else:
        print_record(client.show_operation(operation), as_json)
