"""DescribeTable."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cirrusmq_local.engine.core import Core
from cirrusmq_local.engine.requests import check_members
from cirrusmq_local.engine.tables import TableSpec


def describe_table(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does DescribeTable. It counts items and bytes, so a larger table takes longer."""
    check_members("DescribeTable", request, frozenset({"TableName"}), ("TableName",))
    table = core.table(request["TableName"])
    with core.store.reading() as connection:
        count, size = connection.execute(
            f"SELECT COUNT(*), COALESCE(SUM(size), 0) FROM {table.items}"
        ).fetchone()
        (created_ms,) = connection.execute(
            "SELECT created_ms FROM tables WHERE name = ?", (table.spec.name,)
        ).fetchone()
    described = _description(table.spec, count, size, created_ms)
    return {"Table": described | {"TableId": table_id(core, table.spec)}}


def table_id(core: Core, spec: TableSpec) -> str:
    """Returns a UUID made of the table's name and its data folder's id."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{core.folder_id}{spec.arn}"))


def _description(spec: TableSpec, count: int, size: int, created_ms: int) -> dict[str, Any]:
    kinds = ("HASH", "RANGE")
    description: dict[str, Any] = {
        "TableName": spec.name,
        "TableArn": spec.arn,
        "TableStatus": "ACTIVE",
        "CreationDateTime": datetime.fromtimestamp(created_ms / 1000, UTC),
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": tag} for name, tag in spec.key_types.items()
        ],
        "KeySchema": [
            {"AttributeName": name, "KeyType": kind}
            for name, kind in zip(spec.key_types, kinds, strict=False)
        ],
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
        "ProvisionedThroughput": {
            "NumberOfDecreasesToday": 0,
            "ReadCapacityUnits": 0,
            "WriteCapacityUnits": 0,
        },
        "ItemCount": count,
        "TableSizeBytes": size,
        "DeletionProtectionEnabled": False,
    }
    if spec.stream:
        description |= {
            "StreamSpecification": {
                "StreamEnabled": True,
                "StreamViewType": "NEW_AND_OLD_IMAGES",
            },
            "LatestStreamArn": f"{spec.arn}/stream/local",
            "LatestStreamLabel": "local",
        }
    return description
