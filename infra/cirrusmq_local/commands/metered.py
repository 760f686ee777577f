"""Reads a stack's usage records, and converts them to units."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cirrusmq_client import Client
from cirrusmq_client.errors import NotFound
from cirrusmq_local.commands.console import fail

Item = Mapping[str, Any]
"""Items of the Usage table, in wire format."""

MOVED_UNITS = {"dead_lettered": (4.0, 1.0), "rewound": (1.0, 0.5), "dropped": (1.0, 0.5)}
"""(write units, read units) of a moved message, which is not sent, received or deleted."""


class Event(NamedTuple):
    """Usage of one kind in one minute."""

    minute: int
    """Since the epoch."""
    kind: str
    messages: int
    bytes: int
    pushed: bool
    """Return True if the usage is a delivery to a URL."""


def events(items: Iterable[Item]) -> Iterator[Event]:
    """Return the meter's counts, without the hourly gauges of kept messages."""
    for item in items:
        for entry in item.get("records", {}).get("L", []):
            held = entry["M"]
            kind = held["kind"]["S"]
            if kind in ("kept", "rewindable"):
                continue
            numbers = [int(held[name]["N"]) for name in ("minute", "count", "bytes")]
            yield Event(numbers[0], kind, numbers[1], numbers[2], "attempts" in held)


def mean_size(found: Iterable[Event]) -> int:
    """Return the mean size of an incoming message in bytes."""
    came = [each for each in found if each.kind in ("sent", "published")]
    return sum(each.bytes for each in came) // max(1, sum(each.messages for each in came))


def units_by_minute(
    found: Iterable[Event], costs: Mapping[str, tuple[float, float]]
) -> dict[int, tuple[float, float]]:
    """Return (write units, read units) of each minute. `costs`: units of a message by kind.

    A later correction of the meter may exceed its minute, so the result is at least 0.
    """
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for each in found:
        name = "posted" if each.kind == "delivered" and each.pushed else each.kind
        written, read = costs.get(name) or MOVED_UNITS.get(name) or (0.0, 0.0)
        sums[each.minute][0] += each.messages * written
        sums[each.minute][1] += each.messages * read
    return {minute: (max(0.0, held[0]), max(0.0, held[1])) for minute, held in sums.items()}


def from_machine(client: Client) -> Iterator[Item]:
    """Return the records of a stack on this machine, with all changes until now."""
    try:
        client.call("POST", "/local/run/meter")
        folder = Path(client.call("POST", "/local/export")["exports"]["Usage"])
    except NotFound:
        fail(
            "this service is not on one machine",
            "name its table of usage with --usage-table, which needs AWS credentials",
        )
    for path in sorted((folder / "data").glob("*.json.gz")):
        with gzip.open(path) as lines:
            for line in lines:
                yield msgspec.json.decode(line)["Item"]


def from_account(table: str) -> Iterator[Item]:
    """Return the records of a stack in an account, by a scan; exits with 1 if AWS rejects it."""
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        pages = boto3.client("dynamodb").get_paginator("scan")
        wanted = {
            "ProjectionExpression": "#records",
            "ExpressionAttributeNames": {"#records": "records"},
        }
        for page in pages.paginate(TableName=table, **wanted):
            yield from page["Items"]
    except (BotoCoreError, ClientError) as error:
        fail(str(error))
