"""What a call of the store touches: whether two calls of different clients may change places.

    A  UpdateItem Q#1 a ──┐                    A  UpdateItem Q#1 a ──┐
    B  GetItem    Q#1 b   │ independent        B  Query Q#1 a..c     │ dependent, also if
       either order leads to the same          B sees the write of A, or not there is no a yet

A conditional write reads its item, and is a write either way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_LAST = "\U0010ffff"
_RANGES: dict[str, Callable[[Sequence[str]], tuple[str, str]]] = {
    "": lambda _: ("", _LAST),
    "begins_with(sk, {})": lambda given: (given[0], given[0] + _LAST),
    "sk BETWEEN {} AND {}": lambda given: (given[0], given[1]),
    "sk > {}": lambda given: (given[0], _LAST),
    "sk >= {}": lambda given: (given[0], _LAST),
    "sk < {}": lambda given: ("", given[0]),
}
"""Key conditions behind that of the partition -> first and last sort key."""


class Touched(NamedTuple):
    """A range of sort keys in a partition that a call reads or writes."""

    table: str
    pk: str
    first: str
    last: str
    writes: bool

    def meets(self, other: Touched) -> bool:
        """Whether one of the two writes what the other one touches."""
        return (
            (self.writes or other.writes)
            and (self.table, self.pk) == (other.table, other.pk)
            and self.first <= other.last
            and other.first <= self.last
        )


Footprint = tuple[Touched, ...]


def footprint(operation: str, request: Mapping[str, Any]) -> Footprint:
    """All that a call touches. Raises KeyError for an operation or a condition not known here."""
    return tuple(_TOUCHED[operation](request))


def meet(one: Footprint, other: Footprint) -> bool:
    """Whether two calls depend on each other."""
    return any(each.meets(against) for each in one for against in other)


def _item(request: Mapping[str, Any], key: Mapping[str, Any], *, writes: bool) -> Touched:
    pk, sk = key["pk"]["S"], key.get("sk", {"S": ""})["S"]
    return Touched(request["TableName"], pk, sk, sk, writes)


def _get(request: Mapping[str, Any]) -> Iterator[Touched]:
    yield _item(request, request["Key"], writes=False)


def _write(request: Mapping[str, Any]) -> Iterator[Touched]:
    yield _item(request, request["Key"], writes=True)


def _put(request: Mapping[str, Any]) -> Iterator[Touched]:
    yield _item(request, request["Item"], writes=True)


def _batch_get(request: Mapping[str, Any]) -> Iterator[Touched]:
    for table, asked in request["RequestItems"].items():
        for key in asked["Keys"]:
            yield _item({"TableName": table}, key, writes=False)


def _transact(request: Mapping[str, Any]) -> Iterator[Touched]:
    for part in request["TransactItems"]:
        ((verb, write),) = part.items()
        key = write["Item"] if verb == "Put" else write["Key"]
        yield _item(write, key, writes=verb != "ConditionCheck")


def _query(request: Mapping[str, Any]) -> Iterator[Touched]:
    values = request["ExpressionAttributeValues"]
    condition = request["KeyConditionExpression"]
    names = re.findall(r":\w+", condition)
    partition, *others = [values[name]["S"] for name in names]
    shape = re.sub(r":\w+", "{}", condition).removeprefix("pk = {}").removeprefix(" AND ")
    first, last = _RANGES[shape](others)
    yield Touched(request["TableName"], partition, first, last, writes=False)


_TOUCHED = {
    "GetItem": _get,
    "BatchGetItem": _batch_get,
    "Query": _query,
    "PutItem": _put,
    "UpdateItem": _write,
    "DeleteItem": _write,
    "TransactWriteItems": _transact,
}
