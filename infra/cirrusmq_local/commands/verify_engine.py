"""`cirrusmq verify --engine`: the embedded engine beside a DynamoDB that is named."""

from __future__ import annotations

import json
import os
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cirrusmq_local.commands import prices
from cirrusmq_local.commands.arguments import ask
from cirrusmq_local.commands.console import fail, tell
from cirrusmq_local.plurals import counted

AWS = "aws"
MAX_ROUNDS = 200
SHOWN = 5
_CHARACTERS = 1_000


def compare(
    where: str, *, minutes: float, wide: bool, seed: int, out: Path, max_dollars: float, yes: bool
) -> dict[str, Any]:
    """Plays rounds on both for some minutes at most. Returns the comparison as plain values.

    where: `aws`, by the credentials and region of the environment; or the URL of a DynamoDB that
    answers calls of tables and of streams. Asks first, with the price; exits if it is too high.
    """
    from cirrusmq_local.verifying.beside_engine import OPERATIONS
    from cirrusmq_local.verifying.drawn_operations import MAX_UNITS

    operations = MAX_ROUNDS * (OPERATIONS + 2)
    units = operations * MAX_UNITS
    dollars = units * prices.WRITE_UNITS_PER_MILLION / prices.MILLION
    place = "the account of your AWS credentials" if where == AWS else where
    said = (
        f"at most {operations} operations on a new table, {units} write units, ${dollars:.2f}, in"
        f" {place}, for {counted(minutes, 'minute')} at most"
    )
    tell(said)
    if dollars > max_dollars:
        fail(f"${dollars:.2f} is more than --max-dollars {max_dollars:g}", "raise it")
    ask("Go on?", yes)
    out.mkdir(parents=True, exist_ok=True)
    told = _compare(where, minutes, wide, seed, out)
    return {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "place": where,
        **json.loads(json.dumps(told.as_dict(), default=str)),
    }


def page(told: dict[str, Any]) -> str:
    """The comparison in words, with its first differences."""
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(told["operations"].items()))
    lines = [
        f"{counted(told['rounds'], 'round')}, seed {told['seed']}: {kinds}",
        f"{told['refused']} refused by both; units of {told['units_compared']} answers and"
        f" {told['stream_records']} stream records compared",
        f"{counted(len(told['differences']), 'difference')}",
    ]
    for each in told["differences"][:SHOWN]:
        lines.append(f"\n{each['kind']} of {each['method']}, round {each['round']}:")
        for name in ("request", "ours", "theirs"):
            shown = json.dumps(each[name], ensure_ascii=False)[:_CHARACTERS]
            lines.append(f"  {name}: {shown}")
    return "\n".join(lines)


def clients(where: str) -> tuple[Any, Any, Any]:
    """A session, and its clients of tables and of streams."""
    import boto3

    session = boto3.Session()
    if where == AWS:
        return session, session.client("dynamodb"), session.client("dynamodbstreams")
    # An emulator needs no credentials: they are not looked for in the network. An account's may
    # come from there.
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    given: dict[str, Any] = {"endpoint_url": where}
    if session.region_name is None:
        given["region_name"] = "us-east-1"
    if session.get_credentials() is None:
        # Emulators take any.
        given |= {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    return session, session.client("dynamodb", **given), session.client("dynamodbstreams", **given)


def _compare(where: str, minutes: float, wide: bool, seed: int, out: Path) -> Any:
    from botocore.exceptions import BotoCoreError, ClientError

    from cirrusmq_local.verifying import beside_engine
    from cirrusmq_local.verifying.journal import Journal

    table = f"verify-{secrets.token_hex(4)}"
    journal = Journal(out / f"undo-{table.removeprefix('verify-')}.jsonl")
    ends = time.monotonic() + 60 * minutes
    try:
        session, tables, streams = clients(where)
        engine = beside_engine.engine_of(table)
        ours = beside_engine.client_of(engine, session)
        number = journal.note({"kind": "table", "table": table, "where": where})
        try:
            beside_engine.create_table(tables, table)
            beside = beside_engine.BesideEngine(tables, ours, engine, table, seed, wide)
            told = beside.play(MAX_ROUNDS, until=lambda: time.monotonic() > ends)
            expected = engine.stream_position(table)
            beside.compare_streams(beside_engine.read_changes(streams, tables, table, expected))
            return told
        finally:
            beside_engine.remove_table(tables, table)
            journal.done(number)
            engine.close()
    except (BotoCoreError, ClientError, RuntimeError) as error:
        fail(f"{where}: {error}", "is it a DynamoDB, and may these credentials make a table?")


def remove(step: dict[str, Any]) -> None:
    """Removes the table of a run that ended early."""
    from cirrusmq_local.verifying.beside_engine import remove_table

    remove_table(clients(step["where"])[1], step["table"])
