"""Reads the rows of a frame one after the other, for any number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame

ROWS_AT_ONCE = 50_000
"""About 10 MB in the driver's Java, and 50 in its Python."""


def rows_in_order(frame: DataFrame, limit: int, *keys: str | Column) -> Iterator[dict[str, Any]]:
    """Yields the rows in the order of the keys; the driver holds about ROWS_AT_ONCE.

    `limit`: maximum number of rows. The driver gets one whole partition after the other, and
    `orderBy` would make as many as the exports need, not as the lines do: for 10,000 accounts
    four partitions had 1.6 million rows each, and the driver ran out of memory.
    """
    placed = frame.repartitionByRange(limit // ROWS_AT_ONCE + 1, *keys).sortWithinPartitions(*keys)
    for row in placed.toLocalIterator():
        yield row.asDict()
