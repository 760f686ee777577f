"""One write of one item, in two steps: check, then write.

The steps are separate so that a transaction can check all its items before it changes any, and so
that a refused write has written nothing to a commit that it shares.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import msgspec

from cirrusmq_local.engine.capacity import write_units
from cirrusmq_local.engine.conditions import Test
from cirrusmq_local.engine.errors import ConditionFailedError, InvalidRequestError
from cirrusmq_local.engine.keys import Key
from cirrusmq_local.engine.schema import Table
from cirrusmq_local.engine.store import Transaction
from cirrusmq_local.engine.values import MAX_ITEM_BYTES
from cirrusmq_local.engine.wire import Item, Values, decode_item, encode_item

_SQLITE_MAX = 2**63 - 1


class Image(msgspec.Struct, frozen=True):
    """An item as stored in its table; `size` in bytes, `expires` in epoch seconds."""

    data: bytes
    size: int
    expires: int | None


class Write(msgspec.Struct, frozen=True):
    """A write of a checked request.

    `change` makes the new image (None: no item) from the old item's bytes; for a check, which
    changes nothing, `change` is None.
    """

    table: Table
    key: Key
    change: Callable[[bytes | None], Image | None] | None
    condition: Test | None
    values: Values
    item_on_failure: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """The old and the new image of a write, and its units outside a transaction."""

    write: Write
    old: bytes | None
    new: Image | None
    units: float

    @property
    def old_item(self) -> Item | None:
        """The item before the write, or None."""
        return None if self.old is None else decode_item(self.old)

    @property
    def new_item(self) -> Item | None:
        """The item after the write, or None."""
        return None if self.new is None else decode_item(self.new.data)


def make_image(table: Table, item: Item, size: int, too_large: str) -> Image:
    """Returns a canonical item's image. Raises InvalidRequestError (`too_large`) above 400 KB."""
    if size > MAX_ITEM_BYTES:
        raise InvalidRequestError(too_large)
    return Image(encode_item(item), size, _expiry(table, item))


def look(transaction: Transaction, write: Write) -> Outcome:
    """Reads the item, checks the condition and returns the outcome; does not write.

    Raises ConditionFailedError, which has the units of the attempt, and InvalidRequestError.
    """
    row = transaction.connection.execute(write.table.select, write.key).fetchone()
    old_size, old = (0, None) if row is None else row
    if write.condition is not None:
        item = {} if old is None else decode_item(old)
        if not write.condition(item, write.values):
            shown = item if write.item_on_failure and item else None
            raise ConditionFailedError(shown, write_units(old_size))
    if write.change is None:
        return Outcome(write, old, None, write_units(old_size))
    new = write.change(old)
    return Outcome(write, old, new, write_units(max(old_size, 0 if new is None else new.size)))


def do(transaction: Transaction, outcome: Outcome, *, by_service: bool = False) -> None:
    """Writes the outcome of `look`, and records the change."""
    write, old, new = outcome.write, outcome.old, outcome.new
    if write.change is None or old == (None if new is None else new.data):
        # As in DynamoDB, the stream does not show a write that changed nothing.
        return
    table, connection = write.table, transaction.connection
    if new is None:
        connection.execute(table.delete, write.key)
    else:
        statement = table.insert if old is None else table.replace
        connection.execute(statement, (new.size, new.expires, new.data, *write.key))
    spec = table.spec
    if not spec.stream and not spec.point_in_time_recovery:
        return
    # Without a stream the new image is not recorded: an export takes it from the table.
    recorded = new.data if new is not None and spec.stream else None
    cursor = connection.execute(
        table.record, (transaction.now_ms, *write.key, by_service, old, recorded)
    )
    transaction.sequences[spec.name] = cursor.lastrowid or 0


def _expiry(table: Table, item: Item) -> int | None:
    value = item.get(table.spec.ttl_attribute) if table.spec.ttl_attribute else None
    if value is None or "N" not in value:
        return None
    number = value["N"]
    # A canonical number of digits alone is an integer.
    seconds = int(number) if number.isdigit() else int(Decimal(number))
    return seconds if abs(seconds) <= _SQLITE_MAX else None
