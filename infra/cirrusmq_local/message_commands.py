"""`cirrusmq send` and `cirrusmq receive`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from cirrusmq.limits import BATCH_BYTES, BATCH_MESSAGES
from cirrusmq_local.calls import Service, connect
from cirrusmq_local.console import print_json, show
from cirrusmq_local.queue_commands import DATA, Data, Json, Name, queue_path

FOLLOW_WAIT_SECONDS = 20


def send(
    queue: Name,
    body: Annotated[
        list[str] | None,
        typer.Argument(help="Bodies, a message each. Without any: the lines of standard input."),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    attribute: Annotated[
        list[str] | None, typer.Option("--attribute", "-a", help="name=value. May be repeated.")
    ] = None,
    delay_seconds: Annotated[int | None, typer.Option(help="Hidden for so long.")] = None,
    group: Annotated[str | None, typer.Option(help="For ordered queues.")] = None,
    deduplication_id: Annotated[
        str | None, typer.Option(help="Sent once within 5 minutes; for a single body.")
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Send messages."""
    if deduplication_id is not None and len(body or []) != 1:
        raise typer.BadParameter("needs exactly one body", param_hint="--deduplication-id")
    common = {
        "tags": tag or None,
        "attributes": dict(_pair(text) for text in attribute or []) or None,
        "delay_seconds": delay_seconds,
        "group": group,
        "deduplication_id": deduplication_id,
    }
    given = {name: value for name, value in common.items() if value is not None}
    service = connect(data)
    for batch in _batches(body or (line.rstrip("\n") for line in sys.stdin)):
        messages = [{"body": text, **given} for text in batch]
        answer = service.call("POST", queue_path(queue) + "/messages", {"messages": messages})
        for sent in answer["messages"]:
            print_json(sent) if as_json else print(sent["id"])


def receive(
    queue: Name,
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
    """Receive messages: one line each. They come again later unless deleted."""
    service = connect(data)
    request: dict[str, Any] = {"max": 16 if follow else most}
    if follow and wait_seconds is None:
        wait_seconds = FOLLOW_WAIT_SECONDS
    if wait_seconds is not None:
        request["wait_seconds"] = wait_seconds
    if receiver is not None:
        request["receiver"] = receiver
    # Ctrl-C is how following ends, not a failure.
    with contextlib.suppress(KeyboardInterrupt) if follow else contextlib.nullcontext():
        while True:
            _receive_once(service, queue, request, delete, as_json)
            if not follow:
                return


def _receive_once(
    service: Service, queue: str, request: dict[str, Any], delete: bool, as_json: bool
) -> None:
    path = queue_path(queue) + "/messages"
    messages = service.call("POST", path + "/receive", request)["messages"]
    for message in messages:
        if as_json:
            print_json(message)
        else:
            print(f"{message['id']}  {message['sent_at']}  {_body(message)}", flush=True)
    if delete and messages:
        receipts = [message["receipt"] for message in messages]
        answer = service.call("POST", path + "/delete", {"receipts": receipts})
        for failed in answer["failed"]:
            print(f"cirrusmq: not deleted: {failed['detail']}", file=sys.stderr)


def _body(message: dict[str, Any]) -> str:
    if "body" in message:
        return show(message["body"])
    return f"base64:{message['body_base64']}"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter(f"{text}: must be name=value", param_hint="--attribute")
    return name, value


def _batches(bodies: Iterable[str]) -> Iterator[list[str]]:
    """Bodies in batches that one send takes."""
    batch: list[str] = []
    held = 0
    for body in bodies:
        size = len(body.encode(errors="replace"))
        # Half of the limit, for tags and attributes count too.
        if batch and (len(batch) == BATCH_MESSAGES or held + size > BATCH_BYTES // 2):
            yield batch
            batch, held = [], 0
        batch.append(body)
        held += size
    if batch:
        yield batch
