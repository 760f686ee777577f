"""`cirrusmq subscribe`, `cirrusmq unsubscribe`, and `cirrusmq topic …` for subscriptions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cirrusmq_client.answers import SubscriptionWithState
from cirrusmq_local.commands import completion
from cirrusmq_local.commands.arguments import (
    DATA,
    Attributes,
    Data,
    Exact,
    Json,
    OnlySql,
    OnlyTags,
    Topic,
    Yes,
    ask,
    read_changes,
    read_filter,
    read_json,
    with_attributes,
)
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_record
from cirrusmq_local.commands.following import Wait, begun
from cirrusmq_local.commands.summaries import print_changed, print_made

Named = Annotated[
    str, typer.Argument(help="The subscription's name.", autocompletion=completion.subscriptions)
]
subscriptions = typer.Typer()


@subscriptions.command("show-subscription")
def show_subscription(
    name: Topic, subscription: Named, as_json: Json = False, data: Data = DATA
) -> None:
    """Show a subscription's attributes, counts and state."""
    print_record(connect(data).show_subscription(name, subscription), as_json)


@subscriptions.command("change-subscription")
def change_subscription(
    name: Topic,
    subscription: Named,
    attribute: Attributes = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Change some of a subscription's attributes; null removes one."""
    changes = read_changes(attribute)
    changed = connect(data).change_subscription(name, subscription, changes)
    print_changed("subscription", f"{name}/{subscription}", changed, changes, as_json)


@subscriptions.command("confirm")
def confirm(
    name: Topic,
    subscription: Named,
    token: Annotated[
        str | None,
        typer.Option(
            help="The token that the endpoint got; without it, the endpoint gets a new one."
        ),
    ] = None,
    data: Data = DATA,
) -> None:
    """Confirm the endpoint of a URL."""
    connect(data).confirm_subscription(name, subscription, token)


@subscriptions.command("secret")
def show_secret(
    name: Topic,
    subscription: Annotated[
        str,
        typer.Argument(
            help="The name of a URL's subscription.", autocompletion=completion.subscriptions
        ),
    ],
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show the secret that signs posts to a URL: the new one after a rotation."""
    shown = {"secret": connect(data).show_signing_secret(name, subscription)}
    print_record(shown, as_json)


@subscriptions.command("pause")
def pause(name: Topic, subscription: Named, as_json: Json = False, data: Data = DATA) -> None:
    """Pause a subscription: its messages wait until it is resumed."""
    paused = connect(data).pause_subscription(name, subscription)
    print_changed("subscription", f"{name}/{subscription}", paused, {"paused": True}, as_json)


@subscriptions.command("resume")
def resume(name: Topic, subscription: Named, as_json: Json = False, data: Data = DATA) -> None:
    """Resume a paused subscription."""
    resumed = connect(data).resume_subscription(name, subscription)
    print_changed("subscription", f"{name}/{subscription}", resumed, {"paused": False}, as_json)


@subscriptions.command("retry")
def retry_now(name: Topic, subscription: Named, data: Data = DATA) -> None:
    """Post messages that wait for a retry to a URL now, each message once."""
    connect(data).retry_now(name, subscription)


@subscriptions.command("rewind")
def rewind(
    name: Topic,
    subscription: Named,
    to: Annotated[str, typer.Option(help="Time of publishing: 2026-11-20T08:00:00Z.")],
    wait: Wait = True,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Deliver again to a group all messages published at or after a time."""
    client = connect(data)
    begun(client, client.rewind_subscription(name, subscription, to), wait, as_json)


@subscriptions.command("redeliver")
def redeliver(
    name: Topic,
    subscription: Named,
    message_ids: Annotated[
        list[str], typer.Argument(help="Ids, as a publish and a trace show them.")
    ],
    wait: Wait = True,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Deliver messages of the last day again to a URL or a group."""
    client = connect(data)
    begun(client, client.redeliver(name, subscription, *message_ids), wait, as_json)


def subscribe(
    topic: Topic,
    name: Named,
    queue: Annotated[
        str | None,
        typer.Option(help="Deliver to this queue.", autocompletion=completion.queues),
    ] = None,
    url: Annotated[str | None, typer.Option(help="Deliver by HTTP to this URL.")] = None,
    tag: OnlyTags = None,
    binding_key: Annotated[
        list[str] | None, typer.Option(help="Only matching routing keys. May be repeated.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="Only messages that pass this filter policy, in JSON.")
    ] = None,
    body_policy: Annotated[
        str | None, typer.Option(help="Only messages whose body passes this policy, in JSON.")
    ] = None,
    sql: OnlySql = None,
    broadcasting: Annotated[
        bool, typer.Option(help="Every consumer gets every message (pull only).")
    ] = False,
    ordered: Annotated[bool, typer.Option(help="Groups keep their order (pull only).")] = False,
    start: Annotated[
        str | None,
        typer.Option(help="latest, earliest or a time of the last 24 hours (pull only)."),
    ] = None,
    retry: Annotated[str | None, typer.Option(help="The retry policy, in JSON.")] = None,
    invoke: Annotated[
        str | None,
        typer.Option(help='The function that gets the messages: {"function": "…"} (pull only).'),
    ] = None,
    content_format: Annotated[
        str | None, typer.Option(help="json or simplified (URL only).")
    ] = None,
    max_in_flight: Annotated[
        int | None, typer.Option(help="Maximum number of concurrent posts (URL only).")
    ] = None,
    rate: Annotated[
        int | None, typer.Option(help="Maximum number of posts in a second (URL only).")
    ] = None,
    keep_answers: Annotated[
        bool, typer.Option(help="Keep the answers of failed posts for a day (URL only).")
    ] = False,
    breaker: Annotated[
        str | None,
        typer.Option(help='Post nothing while most posts fail: {} or {"share": 0.5} (URL alone).'),
    ] = None,
    dead_letter_queue: Annotated[
        str | None,
        typer.Option(
            help="Queue for messages that cannot be delivered.", autocompletion=completion.queues
        ),
    ] = None,
    attribute: Attributes = None,
    exact: Exact = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Subscribe to a topic: a queue, a URL, or by default consumers that pull.

    For a URL the answer has the secret of its signatures: cirrusmq topic secret shows it again.
    """
    if queue is not None and url is not None:
        raise typer.BadParameter("is for subscriptions without --queue", param_hint="--url")
    protocol = "queue" if queue is not None else "http" if url is not None else "pull"
    wanted: dict[str, Any] = {
        "protocol": protocol,
        "endpoint": queue or url,
        "filter": read_filter(tag, binding_key, sql, policy, body_policy),
        "mode": "broadcasting" if broadcasting else None,
        "ordered": ordered or None,
        "start": start,
        "retry": read_json("--retry", retry),
        "invoke": read_json("--invoke", invoke),
        "content_format": content_format,
        "max_in_flight": max_in_flight,
        "rate": rate,
        "keep_answers": keep_answers or None,
        "breaker": read_json("--breaker", breaker),
        "dead_letter_queue": dead_letter_queue,
    }
    attributes = with_attributes(wanted, attribute)
    made = connect(data).create_subscription(topic, name, attributes, exact=exact)
    print_made("subscription", f"{topic}/{name}", made, attributes, as_json)


def unsubscribe(topic: Topic, name: Named, yes: Yes = False, data: Data = DATA) -> None:
    """Delete a subscription, and the messages that wait for it."""
    client = connect(data)
    ask(lambda: _question(client.show_subscription(topic, name)), yes)
    client.delete_subscription(topic, name)


def _question(shown: SubscriptionWithState) -> str:
    """Return the question, with the messages that would be lost. Queues and logs keep theirs."""
    named = f"Delete the subscription {shown['name']} of {shown['topic']}"
    if shown["protocol"] == "queue":
        return f"{named}? What it delivered to {shown.get('endpoint')} stays there."
    counts = shown.get("counts")
    if counts is None:
        return f"{named}? The topic's log keeps its messages."
    waiting = ", ".join(f"{counts[state]} {state}" for state in ("active", "inactive", "delayed"))
    return f"{named}, and lose the messages that wait for it ({waiting})?"
