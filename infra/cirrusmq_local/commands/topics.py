"""`cirrusmq topic …`: topics, and the traces of their messages."""

from __future__ import annotations

from typing import Annotated

import typer

from cirrusmq_local.commands.arguments import (
    DATA,
    Attributes,
    Data,
    Exact,
    Json,
    Prefix,
    Topic,
    Yes,
    ask,
    read_attributes,
    read_changes,
)
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_json, print_listing, print_record, print_table
from cirrusmq_local.commands.summaries import print_changed, print_made

topics = typer.Typer()
_COLUMNS = ("name", "filter", "max_message_bytes", "created_at")
_TRACE_COLUMNS = (
    "subscription",
    "state",
    "attempts",
    "next_attempt_at",
    "last_error",
    "dead_letter_queue",
)
_ATTEMPT_COLUMNS = ("subscription", "number", "at", "status", "error")
_SUBSCRIPTION_COLUMNS = ("name", "protocol", "endpoint", "mode", "state", "last_error")


@topics.command("create")
def create(
    name: Topic,
    attribute: Attributes = None,
    exact: Exact = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Make a topic, or check that it exists with these attributes."""
    attributes = read_attributes(attribute)
    made = connect(data).create_topic(name, attributes, exact=exact)
    print_made("topic", name, made, attributes, as_json)


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
    # The listing has no state, so each subscription is read.
    names = [each["name"] for each in client.list_subscriptions(name)]
    subscriptions = [client.show_subscription(name, each) for each in names]
    if as_json:
        print_json(topic | {"subscriptions": subscriptions})
        return
    print_record(topic, as_json)
    if subscriptions:
        rows = [[each.get(column) for column in _SUBSCRIPTION_COLUMNS] for each in subscriptions]
        print_table(_SUBSCRIPTION_COLUMNS, rows, title="subscriptions")


@topics.command("change")
def change(
    name: Topic, attribute: Attributes = None, as_json: Json = False, data: Data = DATA
) -> None:
    """Change some of a topic's attributes; null removes one."""
    changes = read_changes(attribute)
    changed = connect(data).change_topic(name, changes)
    print_changed("topic", name, changed, changes, as_json)


@topics.command("trace")
def trace(
    name: Topic,
    message_id: Annotated[str, typer.Argument(help="Msg-…")],
    body: Annotated[bool, typer.Option("--body", help="With its body.")] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show a published message's state at each subscription, and the attempts at URLs."""
    traced = connect(data).trace(name, message_id, body=body)
    if as_json:
        print_json(traced)
        return
    if "message" in traced:
        print_record(traced["message"], as_json)
    rows = [[each.get(column) for column in _TRACE_COLUMNS] for each in traced["deliveries"]]
    print_table(_TRACE_COLUMNS, rows, title=f"{message_id}, sent {traced['sent_at']}")
    if "trace_id" in traced:
        print(f"trace id: {traced['trace_id']}")
    attempts = [
        [each["subscription"], *(made.get(column) for column in _ATTEMPT_COLUMNS[1:])]
        for each in traced["deliveries"]
        for made in each.get("history", [])
    ]
    if attempts:
        print_table(_ATTEMPT_COLUMNS, attempts, title="latest attempts")


@topics.command("delete")
def delete(name: Topic, yes: Yes = False, data: Data = DATA) -> None:
    """Delete a topic and its subscriptions."""
    ask(f"Delete {name} and its subscriptions?", yes)
    connect(data).delete_topic(name)
