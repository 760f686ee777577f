"""Shows an operation's progress until it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import typer

from cirrusmq_client import Client
from cirrusmq_local.commands.console import fail, make_progress, print_json, show
from cirrusmq_local.plurals import counted

Wait: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--wait/--no-wait", help="Show the progress until it ends, or print its id at once."
    ),
]


def begun(client: Client, started: str, wait: bool, as_json: bool) -> None:
    """Show an operation that a call began until it ends; else print its id."""
    if wait:
        follow(client, started, as_json)
    elif as_json:
        print_json({"operation": started})
    else:
        print(started)


def follow(client: Client, started: str, as_json: bool) -> None:
    """Show an operation's progress until it ends."""
    with make_progress() as progress:
        task = progress.add_task("waiting")
        for operation in client.watch_operation(started):
            progress.update(task, description=f"{operation['kind']}: {_done(operation)}")
    detail = show(operation.get("detail"))
    if as_json:
        print_json(operation)
    elif operation["state"] == "succeeded":
        told = f": {detail}" if detail else ""
        print(f"{operation['kind']} done, {_done(operation)}{told}")
    if operation["state"] == "failed":
        fail(f"{operation['kind']} failed: {detail}")


def _done(operation: Mapping[str, Any]) -> str:
    """Return how many messages an operation dealt with: 2 messages."""
    return counted(operation["done"], "message")
