"""`cirrusmq bench`: a load test of a queue at any URL, with percentiles and costs.

With `--advise` it loads nothing: it compares two ways to pay for a stack's tables.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from typing import Annotated, Any

import typer

from cirrusmq_client import Backoff, Client, find_connection
from cirrusmq_local.commands.arguments import DATA, Attributes, Data, Json, read_attributes
from cirrusmq_local.commands.calls import TRIES
from cirrusmq_local.commands.console import fail, make_progress, print_json, print_table, tell
from cirrusmq_local.commands.load import STAMP_BYTES, Load, Outcome
from cirrusmq_local.plurals import counted

BATCH_BYTES = 4_194_304
TABLE_BATCH_BYTES = 262_144
"""Maximum of a send without a bucket for large messages."""
PARTITIONS = 4
"""Default number of a queue's partitions."""
_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def bench(
    url: Annotated[
        str | None,
        typer.Argument(help="URL of the service, with the key of CIRRUSMQ_ACCESS_KEY_ID."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long to send.", min=1, max=86_400)] = 10.0,
    rate: Annotated[
        float | None,
        typer.Option(help="Messages a second; without it, as many as possible.", min=0.1),
    ] = None,
    size: Annotated[
        int, typer.Option("--bytes", help="Bytes of each body.", min=STAMP_BYTES, max=BATCH_BYTES)
    ] = 100,
    batch: Annotated[int, typer.Option(help="Messages in a send.", min=1, max=16)] = 16,
    producers: Annotated[int, typer.Option(help="Threads that send.", min=1, max=256)] = 2,
    consumers: Annotated[int, typer.Option(help="Threads that receive.", min=1, max=256)] = 2,
    attribute: Attributes = None,
    advise: Annotated[
        bool,
        typer.Option(help="Load nothing: show by metered hours which Capacity is cheaper."),
    ] = False,
    usage_table: Annotated[
        str | None,
        typer.Option(help="For --advise in an account: the output UsageTable; needs credentials."),
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Make a queue, load it, and delete it. Exits with 1 if a message was lost."""
    # These take longer to import than most other commands to run.
    if advise:
        from cirrusmq_local.commands.advising import print_advice

        print_advice(usage_table, batch, data, as_json)
        return
    if usage_table is not None:
        raise typer.BadParameter("is for --advise", param_hint="--usage-table")
    if batch * size > BATCH_BYTES:
        raise typer.BadParameter(
            f"at most {BATCH_BYTES // size} of so many bytes", param_hint="--batch"
        )
    attributes = {"max_message_bytes": max(TABLE_BATCH_BYTES, size)} | read_attributes(attribute)
    if attributes.get("ordered"):
        raise typer.BadParameter("ordered: a load has no groups", param_hint="--attribute")
    environment = dict(os.environ) if url is None else {**os.environ, "CIRRUSMQ_URL": url}
    # By the API alone: that is what the dollars are of.
    client = Client(find_connection(data, environment), retry=Backoff(tries=TRIES), direct=False)
    queue = f"bench-{uuid.uuid4().hex[:12]}"
    client.create_queue(queue, attributes)
    try:
        with make_progress() as progress:
            progress.add_task("sending and receiving", total=None)
            load = Load(client, queue, size=size, batch=batch, rate=rate)
            outcome = load.run(seconds, producers, consumers)
    finally:
        client.delete_queue(queue)
    from cirrusmq_local.commands.estimate import dollars, life_units

    units = life_units(size, batch, attributes)
    costs = dollars(outcome, units, int(attributes.get("partitions", PARTITIONS)))
    _show(client.url, outcome, units, costs, as_json)
    if outcome.lost:
        fail(f"answered as sent, and not received: {counted(outcome.lost, 'message')}")


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return percentiles in milliseconds; empty for an empty list."""
    ordered = sorted(seconds)
    return {
        name: round(1_000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)
        for name, share in _PERCENTILES.items()
        if ordered
    }


def _show(
    url: str,
    outcome: Outcome,
    units: tuple[float, float],
    costs: dict[str, float],
    as_json: bool,
) -> None:
    failed = Counter(code for calls in outcome.calls.values() for code in calls.failed)
    total = sum(costs.values())
    million = 1_000_000 * total / outcome.sent if outcome.sent else 0.0
    figures: dict[str, Any] = {
        "sent": outcome.sent,
        "sent_per_second": round(outcome.sent / outcome.seconds, 1),
        "deleted": outcome.deleted,
        "lost": outcome.lost,
        "repeated": outcome.repeated,
        "failed_calls": dict(failed),
        "write_units_per_message": round(units[0], 3),
        "read_units_per_message": round(units[1], 3),
        "dollars": round(total, 6),
        "dollars_per_million_messages": round(million, 2),
    }
    timed = {kind: calls.seconds for kind, calls in outcome.calls.items()}
    timed["from send to receive"] = outcome.delays
    if as_json:
        shown = {kind: percentiles(times) for kind, times in timed.items()}
        print_json({"url": url, **figures, "milliseconds": shown, "dollars_by_line": costs})
        return
    rows = [
        [kind, len(times), *percentiles(times).values()] for kind, times in timed.items() if times
    ]
    print_table(["milliseconds", "calls", *_PERCENTILES], rows, title=url)
    print_table(["figure", "value"], list(figures.items()))
    tell("dollars are an estimate: units by DynamoDB's rules, calls for as long as they took here")
