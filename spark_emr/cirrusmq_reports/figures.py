"""The names of the figures of a resource in a backlog report."""

from __future__ import annotations

RECEIVE_RANGES = ((0, 0), (1, 1), (2, 2), (3, 5), (6, 10), (11, 100), (101, None))
"""Receive counts of a histogram's columns: from, to (both included)."""
SIZE_RANGES = (
    (0, 256), (257, 1_024), (1_025, 4_096), (4_097, 16_384), (16_385, 65_536), (65_537, None),
)  # fmt: skip
"""Bytes of a histogram's columns: from, to (both included)."""
PERCENTILES = (50, 95, 99)


def range_name(name: str, low: int, high: int | None) -> str:
    """Name of a histogram's column: `receives_3_5`, `size_65537_up`, `receives_1`."""
    if low == high:
        return f"{name}_{low}"
    return f"{name}_{low}_{'up' if high is None else high}"


RECEIVE_COLUMNS = tuple(range_name("receives", *bounds) for bounds in RECEIVE_RANGES)
SIZE_COLUMNS = tuple(range_name("size", *bounds) for bounds in SIZE_RANGES)
COUNTS = ("active", "inactive", "delayed", "rewindable", "dead", "expired", "bytes")
DEAD_REASONS = ("max_receives", "max_age", "retries", "expired", "too_large", "consumer")
"""Reasons by the service for a dead letter; any text of a consumer counts as OTHER_REASON."""
OTHER_REASON = "other"
REASON_COLUMNS = tuple(f"dead_{reason}" for reason in (*DEAD_REASONS, OTHER_REASON))
AGES = ("oldest_age_seconds", *(f"p{percent}_age_seconds" for percent in PERCENTILES))
FIGURES = (
    *COUNTS,
    *AGES,
    *REASON_COLUMNS,
    *RECEIVE_COLUMNS,
    *SIZE_COLUMNS,
    "hottest_partition",
    "hottest_partition_share",
    "retrying",
    "probe_age_seconds",
)
