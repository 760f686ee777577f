"""Arguments and options that several commands take."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from cirrusmq_client import Queue as SourceQueue
from cirrusmq_client import Subscription
from cirrusmq_client.sources import Source as MessageSource
from cirrusmq_local.commands import completion
from cirrusmq_local.commands.console import fail

Queue = Annotated[str, typer.Argument(help="The queue's name.", autocompletion=completion.queues)]
Topic = Annotated[str, typer.Argument(help="The topic's name.", autocompletion=completion.topics)]
Source = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE|TOPIC/GROUP",
        help="A queue, or a group that pulls from a topic.",
        autocompletion=completion.sources,
    ),
]
Data = Annotated[
    Path, typer.Option(help="Folder of the service's connection.json.", readable=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact", help="If it exists, attributes that are not given must have their defaults."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Prefix = Annotated[str, typer.Option(help="Only names with this prefix.")]
Bodies = Annotated[
    list[str] | None,
    typer.Argument(help="Bodies, one for each message. Without any: the lines of standard input."),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="May be repeated.")]
Group = Annotated[str | None, typer.Option(help="Messages of a group keep their order.")]
DeduplicationId = Annotated[
    str | None, typer.Option(help="Sent once within 5 minutes; for a single body.")
]
MessageAttributes = Annotated[
    list[str] | None, typer.Option("--attribute", "-a", help="name=value. May be repeated.")
]
Attributes = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute",
        "-a",
        help="name=value, the value in JSON: -a delay_seconds=5. May be repeated.",
    ),
]
OnlyTags = Annotated[
    list[str] | None,
    typer.Option("--tag", help="Only messages with this tag. May be repeated."),
]
OnlySql = Annotated[
    str | None, typer.Option("--sql", help="Only messages for which this condition is true.")
]
Most = Annotated[int, typer.Option("--max", help="Maximum number; the newest are shown.", min=1)]
DATA, MAX = Path(".local"), 100


def read_attributes(texts: list[str] | None) -> Any:
    """`name=value` options, the values in JSON."""
    return {name: _value(value) for name, value in map(read_pair, texts or [])}


def with_attributes(chosen: dict[str, Any], texts: list[str] | None) -> Any:
    """Return the attributes that options chose, and `-a name=value`; no name may be in both."""
    given: dict[str, Any] = read_attributes(texts)
    for name in given:
        if chosen.get(name) is not None:
            raise typer.BadParameter(
                f"{name} is given by another option, too", param_hint="--attribute"
            )
    return {name: value for name, value in chosen.items() if value is not None} | given


def read_changes(texts: list[str] | None) -> Any:
    """Return `read_attributes`, with at least one attribute."""
    if not texts:
        raise typer.BadParameter("name what to change: -a name=value", param_hint="--attribute")
    return read_attributes(texts)


def read_source(text: str, receiver: str | None = None) -> MessageSource:
    """A queue, or an independent receiver of it; with a slash: a topic's group."""
    topic, slash, group = text.partition("/")
    if not slash:
        return SourceQueue(text, receiver)
    if receiver is not None:
        raise typer.BadParameter("is for queues", param_hint="--receiver")
    return Subscription(topic, group)


def read_texts(texts: list[str] | None) -> dict[str, str | bytes]:
    """`name=value` options, the values as they are."""
    return dict(map(read_pair, texts or []))


def read_moment(text: str) -> str | int:
    """Parse a time, or seconds since the epoch."""
    return int(text) if text.isascii() and text.isdigit() else text


def read_time(option: str, text: str) -> datetime:
    """Parse a time, in UTC if it names no zone, or seconds since the epoch."""
    try:
        if text.isascii() and text.isdigit():
            return datetime.fromtimestamp(int(text), UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        raise typer.BadParameter("must be an RFC 3339 time", param_hint=option) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_json(option: str, text: str | None) -> Any:
    """Parse an option in JSON. Returns None if it is not given."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        raise typer.BadParameter(f"{text}: must be JSON", param_hint=option) from None


def read_filter(
    tags: list[str] | None,
    binding_keys: list[str] | None,
    sql: str | None,
    policy: str | None = None,
    body_policy: str | None = None,
) -> dict[str, Any] | None:
    """Return a filter of these options, or None without any. `policy`, `body_policy`: JSON."""
    wanted = {
        "tags": tags,
        "binding_keys": binding_keys,
        "policy": read_json("--policy", policy),
        "body_policy": read_json("--body-policy", body_policy),
        "sql": sql,
    }
    given = {name: value for name, value in wanted.items() if value}
    if len(given.keys() - {"sql"}) > 1:
        raise typer.BadParameter(
            "give one of --tag, --binding-key, --policy and --body-policy", param_hint="filter"
        )
    return given or None


def check_single(
    bodies: list[str] | None, key: str | None, option: str = "--deduplication-id"
) -> None:
    """A deduplication id, or a key by which a message replaces another one, is for one body."""
    if key is not None and len(bodies or []) != 1:
        raise typer.BadParameter("needs exactly one body", param_hint=option)


def ask(question: str | Callable[[], str], yes: bool) -> None:
    """Continue only if the user agrees. Without a terminal it does not ask.

    `question` may be a function, because some questions need a call of the service.
    """
    if yes or not sys.stdin.isatty():
        return
    if not typer.confirm(question if isinstance(question, str) else question()):
        fail("nothing was done")


def read_pair(text: str, option: str = "--attribute") -> tuple[str, str]:
    """A `name=value` option."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter(f"{text}: must be name=value", param_hint=option)
    return name, value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # A description need not be quoted twice.
        return text
