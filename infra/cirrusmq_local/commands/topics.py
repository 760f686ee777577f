"""`cirrusmq topic …`, `cirrusmq publish` and `cirrusmq subscribe`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from cirrusmq_client import Message
from cirrusmq_client.batches import split
from cirrusmq_local.commands import arguments
from cirrusmq_local.commands.arguments import (
    DATA,
    Attributes,
    Data,
    Json,
    OnlySql,
    OnlyTags,
    Prefix,
    Topic,
    Yes,
    ask,
    check_single,
    read_attributes,
    read_filter,
    read_json,
    read_texts,
)
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_json, print_listing, print_record, print_table
from cirrusmq_local.commands.following import follow
from cirrusmq_local.commands.messages import read_bodies

RoutingKey = Annotated[str | None, typer.Option(help="For topics that filter by routing key.")]
Named = Annotated[str, typer.Argument(help="The subscription's name.")]

topics = typer.Typer(no_args_is_help=True, help="Make and show topics.")
_COLUMNS = ("name", "filter", "max_message_bytes", "created_at")
_TRACE_COLUMNS = (
    "subscription",
    "state",
    "attempts",
    "next_attempt_at",
    "last_error",
    "dead_letter_queue",
)
_SUBSCRIPTION_COLUMNS = ("name", "protocol", "endpoint", "mode", "state", "last_error")


@topics.command("create")
def create(
    name: Topic, attribute: Attributes = None, as_json: Json = False, data: Data = DATA
) -> None:
    """Make a topic, or see that it is there with exactly these attributes."""
    attributes = read_attributes(attribute)
    print_record(connect(data).create_topic(name, attributes), as_json)


@topics.command("list")
def list_topics(prefix: Prefix = "", as_json: Json = False, data: Data = DATA) -> None:
    """List the account's topics."""
    found = list(connect(data).list_topics(prefix))
    print_listing(
        found, _COLUMNS, as_json, "no topics: make one with: cirrusmq topic create <name>"
    )


@topics.command("show")
def show_topic(name: Topic, as_json: Json = False, data: Data = DATA) -> None:
    """Show a topic's attributes, counts and subscriptions."""
    client = connect(data)
    topic = client.show_topic(name)
    # The listing has no state: each is asked for it.
    names = [each["name"] for each in client.list_subscriptions(name)]
    subscriptions = [client.show_subscription(name, each) for each in names]
    if as_json:
        print_json(topic | {"subscriptions": subscriptions})
        return
    print_record(topic, as_json)
    if subscriptions:
        rows = [[each.get(column) for column in _SUBSCRIPTION_COLUMNS] for each in subscriptions]
        print_table(_SUBSCRIPTION_COLUMNS, rows, title="subscriptions")


@topics.command("secret")
def show_secret(
    name: Topic,
    subscription: Annotated[str, typer.Argument(help="The name of a subscription of a URL.")],
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show the secret that signs what a URL gets: a new one since the last turn-over."""
    shown = {"secret": connect(data).show_signing_secret(name, subscription)}
    print_record(shown, as_json)


@topics.command("trace")
def trace(
    name: Topic,
    message_id: Annotated[str, typer.Argument(help="Msg-…")],
    body: Annotated[bool, typer.Option("--body", help="With its body.")] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show a published message's state at each subscription."""
    traced = connect(data).trace(name, message_id, body=body)
    if as_json:
        print_json(traced)
        return
    if "message" in traced:
        print_record(traced["message"], as_json)
    rows = [[each.get(column) for column in _TRACE_COLUMNS] for each in traced["deliveries"]]
    print_table(_TRACE_COLUMNS, rows, title=f"{message_id}, sent {traced['sent_at']}")


@topics.command("pause")
def pause(name: Topic, subscription: Named, as_json: Json = False, data: Data = DATA) -> None:
    """Have a subscription's messages wait until it is resumed."""
    print_record(connect(data).pause_subscription(name, subscription), as_json)


@topics.command("resume")
def resume(name: Topic, subscription: Named, as_json: Json = False, data: Data = DATA) -> None:
    """Deliver a paused subscription's messages again."""
    print_record(connect(data).resume_subscription(name, subscription), as_json)


@topics.command("retry")
def retry_now(name: Topic, subscription: Named, data: Data = DATA) -> None:
    """Post what waits for its retry to a URL now, each message once."""
    connect(data).retry_now(name, subscription)


@topics.command("match")
def match(
    name: Topic,
    body: arguments.Bodies = None,
    tag: arguments.Tags = None,
    routing_key: RoutingKey = None,
    attribute: arguments.MessageAttributes = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show who would get messages; nothing is published."""
    attributes = read_texts(attribute)
    client = connect(data)
    messages = (
        Message(text, tags=tag or (), routing_key=routing_key, attributes=attributes)
        for text in read_bodies(body)
    )
    for batch in split(messages):
        for matched in client.match(name, batch):
            if as_json:
                print_json(matched)
            else:
                names = [each["name"] for each in matched["subscriptions"]]
                print(" ".join(names) or "(nobody)", flush=True)


@topics.command("rewind")
def rewind(
    name: Topic,
    subscription: Named,
    to: Annotated[str, typer.Option(help="Time of publishing: 2026-11-20T08:00:00Z.")],
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Give a group everything published at or after a time once more."""
    client = connect(data)
    follow(client, client.rewind_subscription(name, subscription, to), as_json)


@topics.command("delete")
def delete(name: Topic, yes: Yes = False, data: Data = DATA) -> None:
    """Delete a topic and its subscriptions."""
    ask(f"Delete {name} and its subscriptions?", yes)
    connect(data).delete_topic(name)


def publish(
    topic: Topic,
    body: arguments.Bodies = None,
    tag: arguments.Tags = None,
    routing_key: RoutingKey = None,
    attribute: arguments.MessageAttributes = None,
    group: arguments.Group = None,
    deduplication_id: arguments.DeduplicationId = None,
    delay_seconds: Annotated[
        int | None, typer.Option(help="Delivered so much later, below a day.")
    ] = None,
    deliver_at: Annotated[
        str | None, typer.Option(help="When: 2026-11-20T08:00:00Z, or 1795161600 (unix).")
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Publish messages; prints their ids, and how many subscriptions get each."""
    check_single(body, deduplication_id)
    attributes = read_texts(attribute)
    client = connect(data)
    messages = (
        Message(
            text,
            tags=tag or (),
            routing_key=routing_key,
            attributes=attributes,
            group=group,
            deduplication_id=deduplication_id,
            delay_seconds=delay_seconds,
            deliver_at=None if deliver_at is None else arguments.read_moment(deliver_at),
        )
        for text in read_bodies(body)
    )
    for batch in split(messages):
        for published in client.publish(topic, batch):
            if as_json:
                print_json(asdict(published))
            else:
                print(f"{published.id}  matched {published.matched}", flush=True)


def subscribe(
    topic: Topic,
    name: Annotated[str, typer.Argument(help="The subscription's name.")],
    queue: Annotated[str | None, typer.Option(help="Deliver to this queue.")] = None,
    url: Annotated[str | None, typer.Option(help="Deliver by HTTP to this URL.")] = None,
    tag: OnlyTags = None,
    binding_key: Annotated[
        list[str] | None, typer.Option(help="Only such routing keys. May be repeated.")
    ] = None,
    sql: OnlySql = None,
    broadcasting: Annotated[
        bool, typer.Option(help="Every consumer gets everything (pull alone).")
    ] = False,
    ordered: Annotated[bool, typer.Option(help="Groups keep their order (pull alone).")] = False,
    start: Annotated[
        str | None,
        typer.Option(help="latest, earliest or a time of the last 24 hours (pull alone)."),
    ] = None,
    retry: Annotated[str | None, typer.Option(help="The retry policy, in JSON.")] = None,
    invoke: Annotated[
        str | None,
        typer.Option(help='The function that gets the messages: {"function": "…"} (pull alone).'),
    ] = None,
    content_format: Annotated[
        str | None, typer.Option(help="json or simplified (URL alone).")
    ] = None,
    max_in_flight: Annotated[
        int | None, typer.Option(help="How many are posted at the same time (URL alone).")
    ] = None,
    rate: Annotated[
        int | None, typer.Option(help="How many are posted within a second at most (URL alone).")
    ] = None,
    dead_letter_queue: Annotated[
        str | None, typer.Option(help="Where undeliverable messages go.")
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Subscribe to a topic: a queue, a URL, or else consumers that pull.

    For a URL the answer holds the secret of its signatures: cirrusmq topic secret shows it again.
    """
    if queue is not None and url is not None:
        raise typer.BadParameter("is for subscriptions without --queue", param_hint="--url")
    protocol = "queue" if queue is not None else "http" if url is not None else "pull"
    wanted: dict[str, Any] = {
        "protocol": protocol,
        "endpoint": queue or url,
        "filter": read_filter(tag, binding_key, sql),
        "mode": "broadcasting" if broadcasting else None,
        "ordered": ordered or None,
        "start": start,
        "retry": read_json("--retry", retry),
        "invoke": read_json("--invoke", invoke),
        "content_format": content_format,
        "max_in_flight": max_in_flight,
        "rate": rate,
        "dead_letter_queue": dead_letter_queue,
    }
    attributes = {key: value for key, value in wanted.items() if value is not None}
    print_record(connect(data).create_subscription(topic, name, attributes), as_json)
