"""Where reports go, below one output folder.

```
usage/day=2026-11-20/*.parquet            hourly usage with charges
invoice_lines/month=2026-11/*.parquet
backlog/day=2026-11-20/at=…/*.parquet     one row a resource
summaries/billing/<account>.json          what GET /reports/billing answers
summaries/backlog/<account>.json          what GET /reports/backlog answers
billing.html, backlog.html                for a person to look at
```
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from pyspark.sql import DataFrame, SparkSession

from cirrusmq_reports.files import Files, escape_pattern

USAGE, INVOICE_LINES, BACKLOG = "usage", "invoice_lines", "backlog"
_NAME_SAFE = "()"


def write_partitions(frame: DataFrame, folder: str, *partitions: str) -> None:
    """Replace those partitions of a data set that `frame` has rows of, and leave the others.

    Files are staged beside the data set and moved into place when all are written.
    """
    writer = frame.repartition(*partitions).write.partitionBy(*partitions)
    writer.parquet(folder, mode="overwrite")


def read_partitions(session: SparkSession, files: Files, folder: str, schema: str) -> DataFrame:
    """A data set written before, without rows where there is none."""
    if not _partitions(files, folder):
        return session.createDataFrame([], schema)
    return session.read.schema(schema).parquet(escape_pattern(folder))


def partition_values(files: Files, folder: str) -> set[str]:
    """The values of a data set's first partition column."""
    return {unquote(name.partition("=")[2]) for name in _partitions(files, folder)}


def summary_path(output: str, report: str, account: str) -> str:
    """Where an account's summary of a report is."""
    return f"{output}/summaries/{report}/{quote(account, safe=_NAME_SAFE)}.json"


def summarized_accounts(files: Files, output: str, report: str) -> set[str]:
    """The accounts that have a summary."""
    names = files.names(f"{output}/summaries/{report}")
    return {unquote(name.removesuffix(".json")) for name in names if name.endswith(".json")}


def replace_reports(
    files: Files, output: str, report: str, summaries: Mapping[str, Any], page: str
) -> None:
    """Write the summary of each account, and the page, in place of the old ones."""
    contents = {
        summary_path(output, report, account): json.dumps(summary, indent=1).encode()
        for account, summary in summaries.items()
    }
    files.replace({**contents, f"{output}/{report}.html": page.encode()})


def _partitions(files: Files, folder: str) -> Sequence[str]:
    return [name for name in files.names(folder) if "=" in name]
