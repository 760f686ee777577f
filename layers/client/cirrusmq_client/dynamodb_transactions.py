"""Exactly-once effects in DynamoDB: the consumer's writes and the record in one transaction."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from cirrusmq_client.effect_keys import former_names
from cirrusmq_client.exactly_once import (
    KEEP_SECONDS,
    AlreadyConsumed,
    check_keep_seconds,
    writes_nothing,
)

logger = logging.getLogger("cirrusmq_client")
TABLE = "cirrusmq_consumed"
ITEMS = 100
"""Maximum items of a transaction."""
TRIES = 6
PAUSE_SECONDS = 0.05
_PASSING = {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}

Writes = list[dict[str, Any]]
"""A handler's writes: at most 99 items of TransactItems (`{"Put": …}`, `{"Update": …}`)."""


class DynamoDBTransactions:
    """Keeps records in a table with the keys `message` and `consumer_group`, and TTL `expires_at`.

    Handlers get a list and append their writes; nothing is written before they return.

    `client`: boto3's low-level DynamoDB client. `keep_seconds`: life of a record, at least the
    longest time over which a message may be delivered again.
    """

    def __init__(self, client: Any, table: str = TABLE, keep_seconds: int = KEEP_SECONDS) -> None:
        self._client, self._table = client, table
        self._keep_seconds = check_keep_seconds(keep_seconds)
        self._may_read = True

    def create_table(self) -> None:
        """Creates the table, on demand and with TTL, if it does not exist."""
        try:
            self._client.create_table(
                TableName=self._table,
                AttributeDefinitions=[
                    {"AttributeName": name, "AttributeType": "S"}
                    for name in ("message", "consumer_group")
                ],
                KeySchema=[
                    {"AttributeName": "message", "KeyType": "HASH"},
                    {"AttributeName": "consumer_group", "KeyType": "RANGE"},
                ],
                BillingMode="PAY_PER_REQUEST",
            )
        except self._client.exceptions.ResourceInUseException:
            return
        self._client.get_waiter("table_exists").wait(TableName=self._table)
        self._client.update_time_to_live(
            TableName=self._table,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires_at"},
        )

    def run(self, key: str, group: str, work: Callable[[Writes], object]) -> object:
        """Collects the work's writes and writes them with the record; see `Transactions`."""
        return self.run_together([key], group, lambda _, writes: work(writes))

    def run_together(
        self, keys: Sequence[str], group: str, work: Callable[[frozenset[str], Writes], object]
    ) -> object:
        """Collects the work's writes and writes them with the records; see `Transactions`.

        Raises ValueError above 100 items in a transaction, which include a record for each message.
        """
        had = self._had_before(keys, group)
        left = [key for key in keys if key not in had]
        while left:
            writes: Writes = []
            result = work(frozenset(left), writes)
            if writes_nothing(result):
                return result
            if len(left) + len(writes) > ITEMS:
                count = f"{len(left)} records and {len(writes)} writes"
                raise ValueError(f"a transaction has at most {ITEMS} items, not {count}")
            known = self._write([*(self._record(key, group) for key in left), *writes], len(left))
            if not known:
                return result
            left = [key for place, key in enumerate(left) if place not in known]
        raise AlreadyConsumed

    def _had_before(self, keys: Sequence[str], group: str) -> frozenset[str]:
        """Returns the keys with a record by an earlier release.

        Such a record exists before the message arrives, so no transaction needs to check for it.
        """
        had: set[str] = set()
        for name, named in former_names(keys).items() if self._may_read else ():
            item = self._find(name, group)
            if item is not None:
                consumed_at = int(item["expires_at"]["N"]) - self._keep_seconds
                had.update(key for key in named if key.is_of(name, consumed_at))
        return frozenset(had)

    def _find(self, name: str, group: str) -> dict[str, Any] | None:
        wanted = {"message": {"S": name}, "consumer_group": {"S": group}}
        try:
            answer = self._client.get_item(TableName=self._table, Key=wanted, ConsistentRead=True)
        except Exception as error:
            code = getattr(error, "response", {}).get("Error", {}).get("Code")
            if code != "AccessDeniedException":
                raise
            # Earlier releases needed only the permission to write.
            self._may_read = False
            logger.warning(
                "records of earlier releases in %s are not looked for: its role lacks GetItem",
                self._table,
            )
            return None
        found: dict[str, Any] | None = answer.get("Item")
        return found

    def _record(self, key: str, group: str) -> dict[str, Any]:
        expires_at = int(time.time()) + self._keep_seconds
        return {
            "Put": {
                "TableName": self._table,
                "Item": {
                    "message": {"S": key},
                    "consumer_group": {"S": group},
                    "expires_at": {"N": str(expires_at)},
                },
                "ConditionExpression": "attribute_not_exists(message)",
            }
        }

    def _write(self, items: Writes, records: int) -> frozenset[int]:
        """Writes all items or none. Returns the indexes of records that exist already."""
        for tried in range(1, TRIES + 1):
            try:
                self._client.transact_write_items(TransactItems=items)
            except self._client.exceptions.TransactionCanceledException as error:
                reasons = [
                    reason.get("Code") for reason in error.response.get("CancellationReasons", ())
                ]
                known = frozenset(
                    place
                    for place, reason in enumerate(reasons[:records])
                    if reason == "ConditionalCheckFailed"
                )
                if known:
                    return known
                passing = set(reasons) - {"None", None} <= _PASSING
                if not passing or tried == TRIES:
                    raise
                time.sleep(random.uniform(0, PAUSE_SECONDS * 2**tried))
            else:
                break
        return frozenset()
