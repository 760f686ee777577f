"""Eventually consistent reads: a table as of a moment ago, without one's own last writes."""

from __future__ import annotations

from typing import Any

from cirrusmq_local.engine import Engine

Item = dict[str, Any]


def stale_query(engine: Engine, request: dict[str, Any], changes: int) -> dict[str, Any]:
    """A query's answer without the table's last `changes` changes.

    Of conditions on sort keys it knows BETWEEN, the one of parcels' readers.
    """
    table = request["TableName"]
    values = request["ExpressionAttributeValues"]
    pk, low, high = (values[name]["S"] for name in (":pk", ":after", ":until"))
    limit = request.get("Limit")
    found = engine.execute("Query", {k: v for k, v in request.items() if k != "Limit"})
    items = {item["sk"]["S"]: item for item in found["Items"]}
    behind = request.get("ExclusiveStartKey", {}).get("sk", {}).get("S", "")
    for sort_key, old in _undone(engine, table, pk, changes).items():
        if low <= sort_key <= high and sort_key > behind:
            if old is None:
                items.pop(sort_key, None)
            else:
                items[sort_key] = old
    shown = [items[sort_key] for sort_key in sorted(items)][:limit]
    answer = {**found, "Items": shown}
    if limit is not None and len(shown) == limit:
        answer["LastEvaluatedKey"] = {name: shown[-1][name] for name in ("pk", "sk")}
    return answer


def stale_batch_get(engine: Engine, request: dict[str, Any], changes: int) -> dict[str, Any]:
    """A BatchGetItem's answer without the last `changes` changes of its one table."""
    answer = engine.execute("BatchGetItem", request)
    ((table, wanted),) = request["RequestItems"].items()
    if wanted.get("ConsistentRead"):
        return answer
    found = {(item["pk"]["S"], item["sk"]["S"]): item for item in answer["Responses"][table]}
    for pk in {key["pk"]["S"] for key in wanted["Keys"]}:
        for sort_key, old in _undone(engine, table, pk, changes).items():
            if (pk, sort_key) in found:
                if old is None:
                    del found[pk, sort_key]
                else:
                    found[pk, sort_key] = old
    answer["Responses"][table] = list(found.values())
    return answer


def _undone(engine: Engine, table: str, pk: str, changes: int) -> dict[str, Item | None]:
    """Sort key -> the item before the last `changes` changes of the table, for changed items.

    None where there was no item.
    """
    newest = engine.stream_position(table)
    before: dict[str, Item | None] = {}
    for record in engine.read_stream(table, max(0, newest - changes), changes):
        if record.keys["pk"]["S"] == pk:
            before.setdefault(record.keys["sk"]["S"], record.old_image)
    return before
