"""The IAM policy of a process that calls the tables itself, for one or several queues.

It confines by `dynamodb:LeadingKeys` to the partitions of these queues, and by
`dynamodb:Attributes` to the attributes of a plain message. So no parcel can be written that names
another log record (`l`), an object (`y`) or another source (`m`, `d`), which the service would read
with its rights. The id in the keys changes if a queue is made again, and so must the policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ATTRIBUTES = ("pk", "sk", *"vkrfztxjpobw", "expires_at")
"""Attributes of a parcel that has its bodies; not among them `c d h i l m n s u y`, and no `g…`."""
RECORD_ATTRIBUTES = ("pk", "sk", *"txbp", "expires_at")
"""Attributes of a record with the bodies of a batch. Without a header (`h`) or a topic's mark
(`g`), `fan_out` and the meter pass it by."""
_KEYS, _NAMED = "dynamodb:LeadingKeys", "dynamodb:Attributes"
_READS = ("GetItem", "BatchGetItem")
_WRITES = ("PutItem", "UpdateItem", "DeleteItem")


def own_policy(
    account: str,
    queue_ids: Sequence[str],
    *,
    directory_arn: str,
    messages_arn: str,
    key_arn: str = "",
    region: str = "",
) -> dict[str, Any]:
    """The policy for queues of one account.

    key_arn: the key of KMS that encrypts the tables; without it none is named. region: of the key.
    """
    parcels = [f"Q#{each}#*" for each in queue_ids]
    records = [f"L#{each}#*" for each in queue_ids]
    marks = [f"H#{each}#*" for each in queue_ids]
    wake_ups = [f"W#{each}" for each in queue_ids]
    statements = [
        _statement(
            "ReadDocuments", directory_arn, ("GetItem",), keys=[f"A#{account}", "deployment"]
        ),
        _statement("ReadMessages", messages_arn, ("GetItem", "Query"), keys=parcels),
        _statement("WriteMessages", messages_arn, _WRITES, keys=parcels, attributes=ATTRIBUTES),
        _statement("ReadRecords", messages_arn, _READS, keys=records),
        _statement(
            "WriteRecords", messages_arn, ("PutItem",), keys=records, attributes=RECORD_ATTRIBUTES
        ),
        _statement("ShareMarks", messages_arn, (*_READS, "PutItem", "UpdateItem"), keys=marks),
        _statement("WakeReceivers", messages_arn, ("GetItem", "PutItem", "Query"), keys=wake_ups),
    ]
    if key_arn:
        statements.append(
            {
                "Sid": "DecryptTables",
                "Effect": "Allow",
                "Resource": key_arn,
                "Action": ["kms:Decrypt"],
                "Condition": {
                    "StringEquals": {"kms:ViaService": f"dynamodb.{region}.amazonaws.com"}
                },
            }
        )
    return {"Version": "2012-10-17", "Statement": statements}


def _statement(
    sid: str,
    resource: str,
    actions: Sequence[str],
    *,
    keys: Sequence[str],
    attributes: Sequence[str] = (),
) -> dict[str, Any]:
    condition: dict[str, Any] = {"ForAllValues:StringLike": {_KEYS: list(keys)}}
    if attributes:
        condition["ForAllValues:StringEquals"] = {_NAMED: list(attributes)}
    # With ForAllValues alone, a request without a key would be allowed.
    condition["Null"] = {_KEYS: "false"}
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Resource": resource,
        "Action": [f"dynamodb:{each}" for each in actions],
        "Condition": condition,
    }
