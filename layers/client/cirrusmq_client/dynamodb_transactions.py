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
"""Of a transaction."""
TRIES = 6
PAUSE_SECONDS = 0.05
_PASSING = {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}

Writes = list[dict[str, Any]]
"""A handler's writes: at most 99 items of TransactItems (`{"Put": …}`, `{"Update": …}`)."""


class DynamoDBTransactions:
    """Records in a table with the keys `message` and `consumer_group`; TTL in `expires_at`.

    `client` is boto3's low-level DynamoDB client. Handlers get a list and append their writes;
    nothing is written before they return.
    """

    def __init__(self, client: Any, table: str = TABLE, keep_seconds: int = KEEP_SECONDS) -> None:
        self._client, self._table = client, table
        self._keep_seconds = check_keep_seconds(keep_seconds)
        self._may_read = True

    def create_table(self) -> None:
        """Make the table, on demand and with TTL, where it is not there."""
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
        """Collect the work's writes and write them with the record; see `Transactions`."""
        return self.run_together([key], group, lambda _, writes: work(writes))

    def run_together(
        self, keys: Sequence[str], group: str, work: Callable[[frozenset[str], Writes], object]
    ) -> object:
        """Collect the work's writes and write them with the records; see `Transactions`.

        A transaction has at most 100 items, a record for each message among them: ValueError.
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
        """Keys that have a record of a release before this one.

        It is there before the message comes here, so no transaction has to look for it.
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
            # Writing was all that a role needed before.
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
        """Write all, or nothing: then the places of the first `records` that are there already."""
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
