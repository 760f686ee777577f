"""The hours that a stack has metered: its usage records, and the units that they stand for."""

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
"""Of the Usage table, in wire shape."""

MOVED_UNITS = {"dead_lettered": (4.0, 1.0), "rewound": (1.0, 0.5), "dropped": (1.0, 0.5)}
"""(write units, read units) of a message that is not sent, received or deleted but moved."""


class Event(NamedTuple):
    """What happened to some messages of one kind in one minute."""

    minute: int
    """Since the epoch."""
    kind: str
    messages: int
    bytes: int
    pushed: bool
    """Whether it was delivered to a URL."""


def events(items: Iterable[Item]) -> Iterator[Event]:
    """What the meter counted, without the hourly gauges of what is kept."""
    for item in items:
        for entry in item.get("records", {}).get("L", []):
            held = entry["M"]
            kind = held["kind"]["S"]
            if kind in ("kept", "rewindable"):
                continue
            numbers = [int(held[name]["N"]) for name in ("minute", "count", "bytes")]
            yield Event(numbers[0], kind, numbers[1], numbers[2], "attempts" in held)


def mean_size(found: Iterable[Event]) -> int:
    """Bytes of a message as it came in, in the mean."""
    came = [each for each in found if each.kind in ("sent", "published")]
    return sum(each.bytes for each in came) // max(1, sum(each.messages for each in came))


def units_by_minute(
    found: Iterable[Event], costs: Mapping[str, tuple[float, float]]
) -> dict[int, tuple[float, float]]:
    """(write units, read units) of each minute; `costs` are a message's of each kind.

    A later correction of the meter may have taken back more than its minute has: no less than 0.
    """
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for each in found:
        name = "posted" if each.kind == "delivered" and each.pushed else each.kind
        written, read = costs.get(name) or MOVED_UNITS.get(name) or (0.0, 0.0)
        sums[each.minute][0] += each.messages * written
        sums[each.minute][1] += each.messages * read
    return {minute: (max(0.0, held[0]), max(0.0, held[1])) for minute, held in sums.items()}


def from_machine(client: Client) -> Iterator[Item]:
    """The records of a stack on this machine, all changes until now counted."""
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
    """The records of a stack in an account, by a scan; exits with 1 where it is refused."""
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
