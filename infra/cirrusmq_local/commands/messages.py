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
    read_pair,
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
    delay_seconds: Annotated[
        int | None, typer.Option(help="Seconds until it can be received.")
    ] = None,
    group: arguments.Group = None,
    priority: Annotated[
        int | None, typer.Option(help="In a queue with priorities; the highest comes first.", min=1)
    ] = None,
    deduplication_id: arguments.DeduplicationId = None,
    replace: Annotated[
        str | None,
        typer.Option(help="Takes the place of the message that waits under this key."),
    ] = None,
    replace_within_seconds: Annotated[
        int | None,
        typer.Option(help="Due at the latest so long after the first under the key.", min=1),
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Send messages and print their ids. Each line of standard input that is not empty is one."""
    check_single(body, deduplication_id)
    check_single(body, replace, "--replace")
    attributes = read_texts(attribute)
    client = connect(data)

    def make(text: str) -> Message:
        return Message(
            text,
            tags=tag or (),
            attributes=attributes,
            delay_seconds=delay_seconds,
            group=group,
            priority=priority,
            deduplication_id=deduplication_id,
            replace=replace,
            replace_within_seconds=replace_within_seconds,
        )

    for sent in Bodies(body, make).each(partial(client.send, queue)):
        print_json(asdict(sent)) if as_json else print(sent.id, flush=True)


def receive(
    source: arguments.Source,
    limit: Annotated[
        int, typer.Option("--max", help="Maximum number of messages.", min=1, max=16)
    ] = 1,
    wait_seconds: Annotated[
        float | None, typer.Option(help="Seconds to wait for a message.", min=0, max=30)
    ] = None,
    receiver: Annotated[
        str | None,
        typer.Option(help="An independent receiver.", autocompletion=completion.receivers),
    ] = None,
    group: Annotated[str | None, typer.Option(help="Only messages of this group.")] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="NAME=VALUE", help="Only messages with this attribute."),
    ] = None,
    follow: Annotated[bool, typer.Option(help="Continue until Ctrl-C.")] = False,
    delete: Annotated[bool, typer.Option(help="Delete the printed messages.")] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Receive messages, one on each line. They come again later, unless you delete them."""
    wanted = read_source(source, receiver)
    client = connect(data)
    printing = _Printing(client, wanted, delete, as_json)
    if where is not None:
        if follow or wait_seconds or group is not None:
            raise typer.BadParameter("waits for nothing, and has no group", param_hint="--where")
        printing.show_where(limit, *read_pair(where, "--where"))
        return
    if not follow:
        printing.show(limit, wait_seconds, group)
        return
    waits = FOLLOW_WAIT_SECONDS if wait_seconds is None else wait_seconds
    # Ctrl-C ends following; it is not an error.
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            printing.show(16, waits, group)


def message_line(message: Received) -> str:
    """Return a message as one line, with the reason of a dead letter."""
    note = message.dead_letter
    dead = "" if note is None else f"{show(note['reason'])} in {show(note['source_queue'])}  "
    return f"{message.id}  {message.json['sent_at']}  {dead}{show_body(message)}"


def show_body(message: Received) -> str:
    """Return a body for a terminal."""
    return show(message.json.get("body", f"base64:{message.json.get('body_base64')}"))


class _Printing:
    """Prints received messages, and deletes them if asked to."""

    def __init__(self, client: Client, source: Source, delete: bool, as_json: bool) -> None:
        self._client, self._source = client, source
        self._delete, self._as_json = delete, as_json

    def show(self, limit: int, wait_seconds: float | None, group: str | None) -> None:
        """Receive once."""
        self._print(
            self._client.receive(self._source, limit, wait_seconds=wait_seconds, group=group)
        )

    def show_where(self, limit: int, name: str, value: str) -> None:
        """Receive by an attribute until there are enough, or the scan has ended."""
        after: str | None = None
        seen_all = False
        while limit > 0 and not seen_all:
            found = self._client.receive_where(self._source, name, value, limit, after=after)
            self._print(found.messages)
            limit -= len(found.messages)
            # Without a key the queue is paused, or the next call would start at the beginning.
            seen_all, after = found.seen_all or found.after is None, found.after

    def _print(self, messages: list[Received]) -> None:
        for message in messages:
            if self._as_json:
                print_json(dict(message.json))
            else:
                print(message_line(message), flush=True)
        if self._delete and messages:
            receipts = [message.receipt for message in messages]
            for failed in self._client.delete(self._source, receipts).failed:
                print(f"cirrusmq: not deleted: {show(failed.detail)}", file=sys.stderr)
