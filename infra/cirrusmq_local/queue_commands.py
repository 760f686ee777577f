"""`cirrusmq queue …`: queues, and the long work on them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cirrusmq_local.calls import Service, connect
from cirrusmq_local.console import fail, print_json, print_table, show

POLL_SECONDS = (0.1, 2.0)

Name = Annotated[str, typer.Argument(help="The queue's name.")]
Data = Annotated[Path, typer.Option(help="Folder of the service's connection.json.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DATA = Path(".local")

queues = typer.Typer(no_args_is_help=True, help="Make, show and change queues.")


@queues.command("create")
def create(
    name: Name,
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            "--attribute",
            "-a",
            help="name=value, the value in JSON: -a delay_seconds=5. May be repeated.",
        ),
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Make a queue, or see that it is there with exactly these attributes."""
    attributes = dict(_attribute(text) for text in attribute or [])
    _show_one(connect(data).call("PUT", queue_path(name), attributes), as_json)


@queues.command("list")
def list_queues(
    prefix: Annotated[str, typer.Option(help="Only names that begin so.")] = "",
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """List the account's queues."""
    service = connect(data)
    found: list[dict[str, Any]] = []
    query = {"prefix": prefix} if prefix else {}
    while True:
        page = service.call("GET", "/queues", query=query)
        found += page["queues"]
        if "cursor" not in page:
            break
        query = query | {"cursor": page["cursor"]}
    if as_json:
        print_json(found)
    elif found:
        columns = [name for name in found[0] if not isinstance(found[0][name], dict | list)]
        print_table(columns, [[queue.get(name) for name in columns] for queue in found])
    else:
        print("no queues: make one with: cirrusmq queue create <name>")


@queues.command("show")
def show_queue(name: Name, as_json: Json = False, data: Data = DATA) -> None:
    """Show a queue's attributes and counts."""
    _show_one(connect(data).call("GET", queue_path(name)), as_json)


@queues.command("delete")
def delete(name: Name, yes: Yes = False, data: Data = DATA) -> None:
    """Delete a queue and all its messages."""
    _ask(f"Delete {name} and all its messages?", yes)
    connect(data).call("DELETE", queue_path(name))


@queues.command("purge")
def purge(name: Name, yes: Yes = False, as_json: Json = False, data: Data = DATA) -> None:
    """Remove every message sent before now."""
    _ask(f"Remove all messages of {name}?", yes)
    service = connect(data)
    _follow(service, service.call("POST", queue_path(name) + "/purge", {}), as_json)


@queues.command("rewind")
def rewind(
    name: Name,
    to: Annotated[str, typer.Option(help="Time of sending: 2026-11-20T08:00:00Z.")],
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Make deleted messages that were sent at or after a time active again."""
    service = connect(data)
    _follow(service, service.call("POST", queue_path(name) + "/rewind", {"to": to}), as_json)


@queues.command("redrive")
def redrive(
    name: Name,
    to: Annotated[
        str | None, typer.Option(help="A queue; else back to each message's source.")
    ] = None,
    max_messages: Annotated[int | None, typer.Option(help="At most so many.", min=1)] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Send a dead-letter queue's messages back."""
    service = connect(data)
    wanted = {"to": to, "max_messages": max_messages}
    body = {key: value for key, value in wanted.items() if value is not None}
    _follow(service, service.call("POST", queue_path(name) + "/redrive", body), as_json)


def queue_path(name: str) -> str:
    """The path of a queue, whatever its name holds."""
    return f"/queues/{quote(name, safe='')}"


def _attribute(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter(f"{text}: must be name=value", param_hint="--attribute")
    try:
        return name, json.loads(value)
    except ValueError:
        # A description need not be quoted twice.
        return name, value


def _ask(question: str, yes: bool) -> None:
    if not yes and not typer.confirm(question):
        fail("nothing was done")


def _show_one(queue: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(queue)
    else:
        print_table(["attribute", "value"], list(queue.items()))


def _follow(service: Service, started: dict[str, Any], as_json: bool) -> None:
    """Show an operation's progress until it ends."""
    pause, longest = POLL_SECONDS
    path = f"/operations/{quote(started['operation'], safe='')}"
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("waiting")
        operation = service.call("GET", path)
        while operation["state"] == "running":
            progress.update(task, description=f"{operation['kind']}: {operation['done']} messages")
            time.sleep(pause)
            pause = min(2 * pause, longest)
            operation = service.call("GET", path)
    if as_json:
        print_json(operation)
    elif operation["state"] == "succeeded":
        detail = f": {show(operation['detail'])}" if operation.get("detail") else ""
        print(f"{operation['kind']} done, {operation['done']} messages{detail}")
    if operation["state"] == "failed":
        fail(f"{operation['kind']} failed: {show(operation.get('detail'))}")
