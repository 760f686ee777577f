"""`cirrusmq send` and `cirrusmq receive`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

import typer

from cirrusmq_client import Client, Message, Queue, Received
from cirrusmq_client.batches import split
from cirrusmq_local.commands import arguments
from cirrusmq_local.commands.arguments import DATA, Data, Json, check_single, read_texts
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_json, show

FOLLOW_WAIT_SECONDS = 20.0


def send(
    queue: arguments.Queue,
    body: arguments.Bodies = None,
    tag: arguments.Tags = None,
    attribute: arguments.MessageAttributes = None,
    delay_seconds: Annotated[int | None, typer.Option(help="Hidden for so long.")] = None,
    group: arguments.Group = None,
    deduplication_id: arguments.DeduplicationId = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Send messages; prints their ids."""
    check_single(body, deduplication_id)
    attributes = read_texts(attribute)
    client = connect(data)
    messages = (
        Message(
            text,
            tags=tag or (),
            attributes=attributes,
            delay_seconds=delay_seconds,
            group=group,
            deduplication_id=deduplication_id,
        )
        for text in read_bodies(body)
    )
    for batch in split(messages):
        for sent in client.send(queue, batch):
            print_json(asdict(sent)) if as_json else print(sent.id, flush=True)


def receive(
    queue: arguments.Queue,
    most: Annotated[int, typer.Option("--max", help="At most so many.", min=1, max=16)] = 1,
    wait_seconds: Annotated[
        float | None, typer.Option(help="Wait so long for one.", min=0, max=30)
    ] = None,
    receiver: Annotated[str | None, typer.Option(help="An independent receiver.")] = None,
    follow: Annotated[bool, typer.Option(help="Go on until Ctrl-C.")] = False,
    delete: Annotated[bool, typer.Option(help="Delete what was printed.")] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Receive messages: one line each. They are delivered again later unless deleted."""
    client = connect(data)
    source = Queue(queue, receiver)
    if not follow:
        _receive_once(client, source, most, wait_seconds, delete, as_json)
        return
    waits = FOLLOW_WAIT_SECONDS if wait_seconds is None else wait_seconds
    # Ctrl-C is how following ends, not a failure.
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            _receive_once(client, source, 16, waits, delete, as_json)


def read_bodies(bodies: list[str] | None) -> Iterable[str]:
    """The bodies of the command, else the lines of standard input as they are read."""
    return bodies or (line.rstrip("\n") for line in sys.stdin)


def show_body(message: Received) -> str:
    """A body for a terminal."""
    return show(message.json.get("body", f"base64:{message.json.get('body_base64')}"))


def _receive_once(
    client: Client,
    source: Queue,
    most: int,
    wait_seconds: float | None,
    delete: bool,
    as_json: bool,
) -> None:
    messages = client.receive(source, most, wait_seconds=wait_seconds)
    for message in messages:
        if as_json:
            print_json(dict(message.json))
        else:
            line = f"{message.id}  {message.json['sent_at']}  {show_body(message)}"
            print(line, flush=True)
    if delete and messages:
        outcome = client.delete(source, [message.receipt for message in messages])
        for failed in outcome.failed:
            print(f"cirrusmq: not deleted: {show(failed.detail)}", file=sys.stderr)
