"""The paths of reports, below one output folder.

```
usage/day=2026-11-20/*.parquet            hourly usage with charges
invoice_lines/month=2026-11/*.parquet
backlog/day=2026-11-20/at=…/*.parquet     one row a resource
summaries/billing/<account>.json          the answer of GET /reports/billing
summaries/backlog/<account>.json          the answer of GET /reports/backlog
billing.html, backlog.html                for a person to look at
```
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from pyspark.sql import DataFrame, SparkSession

from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.files import Files, escape_pattern
from cirrusmq_reports.session import without_rows

USAGE, INVOICE_LINES, BACKLOG = "usage", "invoice_lines", "backlog"
_NAME_SAFE = "()"
_MONTH = r"[1-9]\d{3}-(0[1-9]|1[0-2])"
_DAY = rf"day={_MONTH}-(0[1-9]|[12]\d|3[01])"
_PARTITIONS = {USAGE: _DAY, INVOICE_LINES: f"month={_MONTH}", BACKLOG: _DAY}


def write_partitions(frame: DataFrame, folder: str, *partitions: str) -> None:
    """Replace those partitions of a data set that `frame` has rows of, and leave the others.

    Files are staged beside the data set and moved into place when all are written.
    """
    writer = frame.repartition(*partitions).write.partitionBy(*partitions)
    writer.parquet(folder, mode="overwrite")


def read_partitions(session: SparkSession, files: Files, folder: str, schema: str) -> DataFrame:
    """A data set written before, without rows where there is none."""
    if not _partitions(files, folder):
        return without_rows(session, schema)
    return session.read.schema(schema).parquet(escape_pattern(folder))


def partition_values(files: Files, folder: str) -> set[str]:
    """The values of a data set's first partition column."""
    return {unquote(name.partition("=")[2]) for name in _partitions(files, folder)}


def summary_path(output: str, report: str, account: str) -> str:
    """The path of an account's summary of a report."""
    return f"{output}/summaries/{report}/{quote(account, safe=_NAME_SAFE)}.json"


def summarized_accounts(files: Files, output: str, report: str) -> set[str]:
    """The accounts that have a summary."""
    names = files.names(f"{output}/summaries/{report}")
    return {unquote(name.removesuffix(".json")) for name in names if name.endswith(".json")}


def check_places(files: Files, output: str, report: str, sets: Iterable[str]) -> None:
    """Raise BadInput if a file or folder blocks a path that a report is going to write.

    To be called first: found in the middle of writing, it would leave half of a report replaced.
    """
    data = [f"{output}/{name}" for name in sets]
    for folder in (output, *data, f"{output}/summaries", f"{output}/summaries/{report}"):
        if files.is_folder(folder) is False:
            raise BadInput(f"{folder}: a file, where the reports need a folder")
    for folder in data:
        _partitions(files, folder)
    _refuse_folder(files, _page_path(output, report))


def reports(
    files: Files, output: str, report: str, summaries: Mapping[str, Any], page: str
) -> dict[str, bytes]:
    """Path → content: the summary of each account, and the page. Raises BadInput."""
    contents = {
        summary_path(output, report, account): json.dumps(summary, indent=1).encode()
        for account, summary in summaries.items()
    }
    for path in contents:
        _refuse_folder(files, path)
    return {**contents, _page_path(output, report): page.encode()}


def _page_path(output: str, report: str) -> str:
    return f"{output}/{report}.html"


def _refuse_folder(files: Files, path: str) -> None:
    if files.is_folder(path):
        raise BadInput(f"{path}: a folder, where the reports need a file")


def _partitions(files: Files, folder: str) -> Sequence[str]:
    names = [name for name in files.names(folder) if "=" in name]
    pattern = re.compile(_PARTITIONS[folder.rpartition("/")[2]], re.ASCII)
    for name in names:
        if not pattern.fullmatch(name):
            raise BadInput(f"{folder}/{name}: not a part of a report's data")
    return names
