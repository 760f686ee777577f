"""`cirrusmq publish`, and `cirrusmq topic match`, which tests filters."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from cirrusmq_client import Message
from cirrusmq_client.answers import MatchedMessage
from cirrusmq_local.commands import arguments
from cirrusmq_local.commands.arguments import DATA, Data, Json, Topic, check_single, read_texts
from cirrusmq_local.commands.bodies import Bodies
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_json

RoutingKey = Annotated[str | None, typer.Option(help="For topics that filter by routing key.")]
matching = typer.Typer()


@matching.command("match")
def match(
    name: Topic,
    body: arguments.Bodies = None,
    tag: arguments.Tags = None,
    routing_key: RoutingKey = None,
    attribute: arguments.MessageAttributes = None,
    filter: Annotated[str | None, typer.Option(help="In JSON: test this filter instead.")] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show which subscriptions would get messages, or test a filter; publishes nothing."""
    attributes, tried = read_texts(attribute), arguments.read_json("--filter", filter)
    client = connect(data)

    def make(text: str) -> Message:
        return Message(text, tags=tag or (), routing_key=routing_key, attributes=attributes)

    look = (
        partial(client.match, name) if filter is None else partial(client.try_filter, name, tried)
    )
    for matched in Bodies(body, make).each(look):
        if as_json:
            print_json(matched)
        else:
            print(_told(matched), flush=True)


def _told(matched: MatchedMessage) -> str:
    """Return the subscriptions that would get a message, or the result of the tested filter."""
    if "passes" in matched:
        return "passes" if matched["passes"] else f"does not pass: {matched['why_not']}"
    return " ".join(each["name"] for each in matched["subscriptions"]) or "(nobody)"


def publish(
    topic: Topic,
    body: arguments.Bodies = None,
    tag: arguments.Tags = None,
    routing_key: RoutingKey = None,
    attribute: arguments.MessageAttributes = None,
    group: arguments.Group = None,
    deduplication_id: arguments.DeduplicationId = None,
    delay_seconds: Annotated[
        int | None, typer.Option(help="Delay of the delivery, less than a day.")
    ] = None,
    deliver_at: Annotated[
        str | None,
        typer.Option(help="Time of delivery: 2026-11-20T08:00:00Z, or 1795161600 (unix)."),
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Publish messages; print their ids, and how many subscriptions get each."""
    check_single(body, deduplication_id)
    attributes = read_texts(attribute)
    client = connect(data)

    def make(text: str) -> Message:
        return Message(
            text,
            tags=tag or (),
            routing_key=routing_key,
            attributes=attributes,
            group=group,
            deduplication_id=deduplication_id,
            delay_seconds=delay_seconds,
            deliver_at=None if deliver_at is None else arguments.read_moment(deliver_at),
        )

    for published in Bodies(body, make).each(partial(client.publish, topic)):
        if as_json:
            print_json(asdict(published))
        else:
            print(f"{published.id}  matched {published.matched}", flush=True)
