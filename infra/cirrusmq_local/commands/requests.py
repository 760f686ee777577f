"""`cirrusmq ask` and `cirrusmq reply`: a message that asks for a reply, and its reply."""

from __future__ import annotations

from typing import Annotated

import typer

from cirrusmq_client import Message, Received
from cirrusmq_local.commands import arguments
from cirrusmq_local.commands.arguments import DATA, Data, Json, read_texts
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_json, show


def ask(
    queue: arguments.Queue,
    body: Annotated[str, typer.Argument(help="The message's body.")],
    seconds: Annotated[
        int, typer.Option(help="Seconds to wait for the reply.", min=1, max=43_200)
    ] = 30,
    attribute: arguments.MessageAttributes = None,
    group: arguments.Group = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Send a message and print the reply to it."""
    message = Message(body, attributes=read_texts(attribute), group=group)
    reply = connect(data).ask(queue, message, seconds)
    shown = Message(reply.body, attributes=reply.attributes).to_json()
    if as_json:
        print_json({"replied_at": reply.replied_at, **shown})
    else:
        print(show(shown.get("body", f"base64:{shown.get('body_base64')}")))


def reply(
    queue: arguments.Queue,
    message_id: Annotated[str, typer.Argument(help="The message's id.")],
    receipt: Annotated[str, typer.Argument(help="Its receipt, as receive --json prints it.")],
    body: Annotated[str, typer.Argument(help="The reply's body.")],
    attribute: arguments.MessageAttributes = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Reply to a message that asks for it, and delete the message."""
    message = Received({"id": message_id, "receipt": receipt})
    replied_at = connect(data).reply(queue, message, body, read_texts(attribute))
    print_json({"replied_at": replied_at}) if as_json else print(replied_at)
