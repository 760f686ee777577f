"""The embedded engine beside a DynamoDB: the same random operations on both, compared.

Compared are answers, errors, consumed units, items, and the order of each item's stream records.
Every round has its own partitions, so that a difference in one says nothing about the next.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from cirrusmq_local.engine import Engine, TableSpec, attach
from cirrusmq_local.verifying.drawn_operations import Operation, Operations
from cirrusmq_local.verifying.outcomes import call, canonical, same

OPERATIONS = 30
"""Operations of a round after its first batch."""
MAX_DIFFERENCES = 50
"""A run ends there: more differences have the same cause."""
_STREAM_SECONDS = 60.0
_STREAM_PAUSE = 1.0

Changes = dict[tuple[str, str], list[Any]]
"""Key of an item -> its stream records, in their order: [event, old image, new image]."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same on both."""

    round: int
    operation: int | None
    """Number in the round; None for the stream."""
    kind: str
    """`answer`, `units`, `items` or `stream`."""
    method: str
    request: Any
    ours: Any
    theirs: Any


@dataclass
class Comparison:
    """The sums of a run, and its differences."""

    seed: int
    wide: bool
    rounds: int = 0
    operations: dict[str, int] = field(default_factory=dict)
    """Method -> number."""
    refused: int = 0
    """Operations that both refused with the same code."""
    units_compared: int = 0
    write_units: float = 0.0
    read_units: float = 0.0
    stream_records: int = 0
    differences: list[Difference] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return asdict(self)


class BesideEngine:
    """Plays rounds on an engine in memory and on a DynamoDB.

    theirs: a client of that DynamoDB, whose table has the keys pk and sk, both texts.
    """

    def __init__(self, theirs: Any, ours: Any, engine: Engine, table: str, seed: int, wide: bool):
        self._theirs, self._ours, self._engine, self._table = theirs, ours, engine, table
        self._repaired: set[str] = set()
        """Partitions in which items were set by hand after a difference."""
        self.told = Comparison(seed, wide)

    def play(self, rounds: int, *, until: Callable[[], bool] = lambda: False) -> Comparison:
        """Plays rounds, at most `rounds`, and none after `until` is true."""
        for number in range(rounds):
            if until() or len(self.told.differences) >= MAX_DIFFERENCES:
                break
            self._round(number)
            self.told.rounds += 1
        return self.told

    def compare_streams(self, theirs: Changes) -> None:
        """Compares the records of each item, in their order."""
        ours = changes_of_engine(self._engine, self._table)
        for key in sorted({*ours, *theirs}):
            if key[0] in self._repaired:
                continue
            mine, other = ours.get(key, []), theirs.get(key, [])
            self.told.stream_records += len(mine)
            if not self.told.wide:
                other = [
                    each for each, after in pairwise([*other, None]) if not _is_half(each, after)
                ]
            if mine != other:
                number = int(key[0][1:])
                self._differs(number, None, "stream", ("stream", {"key": key}), mine, other)

    def _round(self, number: int) -> None:
        told = self.told
        drawn = Operations(self._table, told.seed, number, told.wide)
        for index in range(-1, OPERATIONS):
            operation = drawn.beginning() if index < 0 else drawn.operation()
            method, request = operation
            ours, our_units = call(self._ours, method, request)
            theirs, their_units = call(self._theirs, method, request)
            told.operations[method] = told.operations.get(method, 0) + 1
            self._count(method, our_units)
            equal = same(ours, theirs, wide=told.wide)
            told.refused += equal and "code" in ours
            if not equal:
                self._differs(number, index, "answer", operation, ours, theirs)
            elif told.wide and our_units is not None:
                told.units_compared += 1
                if our_units != their_units:
                    self._differs(number, index, "units", operation, our_units, their_units)
            if not equal or "code" in ours:
                self._compare_items(drawn, number, index, operation, equal)
        self._compare_items(drawn, number, OPERATIONS, ("query", {}), True)

    def _count(self, method: str, units: float | None) -> None:
        written = method.startswith(("put", "update", "delete")) or "write" in method
        if written:
            self.told.write_units += units or 0
        else:
            self.told.read_units += units or 0

    def _compare_items(
        self, drawn: Operations, number: int, index: int, operation: Operation, equal: bool
    ) -> None:
        """Compares the stored items, and makes them equal, so that the round goes on from there."""
        ours, theirs = (self._items(client, drawn) for client in (self._ours, self._theirs))
        if ours == theirs:
            return
        # moto leaves half an update behind that it refuses.
        if equal and (self.told.wide or "UpdateExpression" not in operation[1]):
            self._differs(number, index, "items", operation, ours, theirs)
        self._repaired.update(drawn.partitions)
        for place in drawn.places():
            key = {"TableName": self._table, "Key": place}
            item = self._ours.get_item(**key, ConsistentRead=True).get("Item")
            if item is None:
                self._theirs.delete_item(**key)
            else:
                self._theirs.put_item(TableName=self._table, Item=item)

    def _items(self, client: Any, drawn: Operations) -> list[Any]:
        found = []
        for partition in drawn.partitions:
            answer = client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :p",
                ExpressionAttributeValues={":p": {"S": partition}},
                ConsistentRead=True,
            )
            found += canonical(answer["Items"])
        return found

    def _differs(
        self,
        number: int,
        index: int | None,
        kind: str,
        operation: Operation,
        ours: Any,
        theirs: Any,
    ) -> None:
        told = Difference(number, index, kind, *operation, ours, theirs)
        self.told.differences.append(told)


def engine_of(table: str) -> Engine:
    """An engine in memory with the one table, and its stream."""
    return Engine(None, [TableSpec(table, stream=True)], now_ms=lambda: int(time.time() * 1_000))


def client_of(engine: Engine, session: Any) -> Any:
    """A client that the engine answers."""
    client = session.client("dynamodb", region_name="us-east-1")
    attach(engine, client)
    return client


def create_table(client: Any, table: str) -> None:
    """Makes the table, with its stream, and waits until it is there."""
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk")],
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    client.get_waiter("table_exists").wait(TableName=table)


def remove_table(client: Any, table: str) -> None:
    """Deletes the table; nothing happens if there is none."""
    try:
        client.delete_table(TableName=table)
    except client.exceptions.ResourceNotFoundException:
        return


def changes_of_engine(engine: Engine, table: str) -> Changes:
    """Each item's records in the engine."""
    found: Changes = defaultdict(list)
    for record in engine.read_stream(table, 0, engine.stream_position(table)):
        shown = {"Keys": record.keys, "OldImage": record.old_image, "NewImage": record.new_image}
        _add(found, record.event_name, shown)
    return dict(found)


def read_changes(streams: Any, tables: Any, table: str, expected: int) -> Changes:
    """Each item's records in a DynamoDB's stream.

    streams: a client of DynamoDB Streams. Reads until `expected` records came, for a minute at
    limit: a stream is behind its table, and never says that it is at its end.
    """
    arn = tables.describe_table(TableName=table)["Table"]["LatestStreamArn"]
    read: dict[str, str | None] = {}
    found: Changes = {}
    count, until = 0, time.monotonic() + _STREAM_SECONDS
    while count < expected and time.monotonic() < until:
        for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            if shard["ShardId"] not in read:
                begun = streams.get_shard_iterator(
                    StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
                )
                read[shard["ShardId"]] = begun["ShardIterator"]
        before = count
        for shard_id, iterator in read.items():
            if iterator is None:
                continue
            answer = streams.get_records(ShardIterator=iterator)
            read[shard_id] = answer.get("NextShardIterator")
            for record in answer["Records"]:
                _add(found, record["eventName"], record["dynamodb"])
            count += len(answer["Records"])
        if count == before:
            time.sleep(_STREAM_PAUSE)
    return found


def _is_half(record: Any, after: Any) -> bool:
    """True for moto's own record of the bare key, before the record of an inserting update."""
    return after is not None and record[0] == after[0] == "INSERT"


def _add(found: Changes, event: str, shown: Mapping[str, Any]) -> None:
    key = shown["Keys"]["pk"]["S"], shown["Keys"]["sk"]["S"]
    old, new = (canonical(shown.get(name) or None) for name in ("OldImage", "NewImage"))
    # DynamoDB writes no record for a write that changes nothing; moto does.
    if old != new:
        found.setdefault(key, []).append([event, old, new])
