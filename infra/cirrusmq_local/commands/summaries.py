"""Prints a resource after a change on one line: name, important attributes, command to show all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cirrusmq_local.commands.console import print_json, show
from cirrusmq_local.plurals import counted

_SPANS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_MADE = {
    "queue": ("visibility_timeout_seconds", "message_retention_seconds", "ordered", "fair"),
    "topic": ("filter", "partitions"),
    "subscription": ("protocol", "endpoint", "filter"),
    "receiver": ("start", "filter"),
}
"""Attributes in the line of each kind, besides the given attributes."""


def print_made(
    kind: str, name: str, made: Mapping[str, Any], given: Mapping[str, Any], as_json: bool
) -> None:
    """Print a new resource: its line, and the secret if it has one; in JSON all attributes."""
    if as_json:
        print_json(made)
        return
    others = [_stated(made, each) for each in given if each not in _MADE[kind]]
    print(f"{kind} {name}: {', '.join([*_sentence(kind, made), *others])}{_more(kind, name)}")
    if "secret" in made:
        print(f"secret {made['secret']} (cirrusmq topic secret {_words(name)})")
    if "dead_letter_error" in made:
        print(f"dead-letter queue {show(made['dead_letter_error'])}")


def print_changed(
    kind: str, name: str, changed: Mapping[str, Any], given: Mapping[str, Any], as_json: bool
) -> None:
    """Print a resource after a change: the given attributes; in JSON all attributes."""
    if as_json:
        print_json(changed)
    else:
        now = ", ".join(_stated(changed, each) for each in given)
        print(f"{kind} {name}: {now}{_more(kind, name)}")


def _sentence(kind: str, made: Mapping[str, Any]) -> Iterator[str]:
    match kind:
        case "queue":
            yield from (each for each in ("ordered", "fair") if made.get(each))
            yield f"visibility timeout {_span(made['visibility_timeout_seconds'])}"
            yield f"kept {_span(made['message_retention_seconds'])}"
        case "topic":
            yield f"filter {made['filter']}"
            yield counted(made["partitions"], "partition")
        case "receiver":
            yield f"start {made['start']}"
        case "subscription":
            target = show(made.get("endpoint", ""))
            yield {
                "queue": f"to queue {target}",
                "http": f"posts to {target}",
                "pull": "consumers pull",
            }[made["protocol"]]
    if isinstance(made.get("filter"), dict):
        yield _stated(made, "filter")


def _stated(record: Mapping[str, Any], name: str) -> str:
    """Return an attribute of the answer; a missing member is null."""
    value = record.get(name)
    return f"{name} {'null' if value is None else show(value)}"


def _more(kind: str, name: str) -> str:
    command = {
        "queue": "queue show",
        "topic": "topic show",
        "receiver": "queue receiver",
        "subscription": "topic show-subscription",
    }[kind]
    return f" (cirrusmq {command} {_words(name)})"


def _words(name: str) -> str:
    """Return topic/subscription as two words, for a command."""
    return name.replace("/", " ")


def _span(seconds: float) -> str:
    """Return a duration in the largest whole unit: 4 days."""
    unit, name = next((each for each in _SPANS if not seconds % each[0]), _SPANS[-1])
    return counted(seconds / unit, name)
