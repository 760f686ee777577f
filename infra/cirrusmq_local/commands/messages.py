"""`cirrusmq send` and `cirrusmq receive`."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from cirrusmq_client import Client, Message, Received
from cirrusmq_client.sources import Source
from cirrusmq_local.commands import arguments, completion
from cirrusmq_local.commands.arguments import (
    DATA,
    Data,
    Json,
    check_single,
    read_source,
    read_texts,
)
from cirrusmq_local.commands.bodies import Bodies
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
    """Send messages; prints their ids. Of standard input each line is one; empty ones are not."""
    check_single(body, deduplication_id)
    attributes = read_texts(attribute)
    client = connect(data)

    def make(text: str) -> Message:
        return Message(
            text,
            tags=tag or (),
            attributes=attributes,
            delay_seconds=delay_seconds,
            group=group,
            deduplication_id=deduplication_id,
        )

    for sent in Bodies(body, make).each(partial(client.send, queue)):
        print_json(asdict(sent)) if as_json else print(sent.id, flush=True)


def receive(
    source: arguments.Source,
    most: Annotated[int, typer.Option("--max", help="At most so many.", min=1, max=16)] = 1,
    wait_seconds: Annotated[
        float | None, typer.Option(help="Wait so long for one.", min=0, max=30)
    ] = None,
    receiver: Annotated[
        str | None,
        typer.Option(help="An independent receiver.", autocompletion=completion.receivers),
    ] = None,
    follow: Annotated[bool, typer.Option(help="Go on until Ctrl-C.")] = False,
    delete: Annotated[bool, typer.Option(help="Delete what was printed.")] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Receive messages: one line each. They are delivered again later unless deleted."""
    wanted = read_source(source, receiver)
    client = connect(data)
    if not follow:
        _receive_once(client, wanted, most, wait_seconds, delete, as_json)
        return
    waits = FOLLOW_WAIT_SECONDS if wait_seconds is None else wait_seconds
    # Ctrl-C is how following ends, not a failure.
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            _receive_once(client, wanted, 16, waits, delete, as_json)


def message_line(message: Received) -> str:
    """A message in one line; of a dead letter also its reason."""
    note = message.dead_letter
    dead = "" if note is None else f"{show(note['reason'])} in {show(note['source_queue'])}  "
    return f"{message.id}  {message.json['sent_at']}  {dead}{show_body(message)}"


def show_body(message: Received) -> str:
    """A body for a terminal."""
    return show(message.json.get("body", f"base64:{message.json.get('body_base64')}"))


def _receive_once(
    client: Client,
    source: Source,
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
            print(message_line(message), flush=True)
    if delete and messages:
        outcome = client.delete(source, [message.receipt for message in messages])
        for failed in outcome.failed:
            print(f"cirrusmq: not deleted: {show(failed.detail)}", file=sys.stderr)
