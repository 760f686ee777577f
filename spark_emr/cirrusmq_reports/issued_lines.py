"""The lines of documents for `GET /reports/billing`, written once.

Each nightly run writes the accounts' open months, but only the totals of documents. A document's
lines never change, so they are in the folder of the run that issued it::

    runs/billing/<run that closed October>/lines/acme.json    {"INV-acme-000007": [line, ...]}
    runs/billing/<tonight's run>/accounts/acme.json           "issued_in": <the run above>

They are made from the table of lines, so a run can write them for an earlier run: a release before
this one wrote none, and a job may end between two accounts' files. A mark says that all files of a
run exist; without it they are written again, with the same content.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pyspark.sql import DataFrame

from cirrusmq_reports.billing_summary import by_resource, line_of
from cirrusmq_reports.ordered_rows import rows_in_order
from cirrusmq_reports.publication import Outputs, Part

LINES = "lines"
WRITTEN = "lines.written"
"""Mark in a run's folder: the lines of all documents that it issued exist."""
ORDER = ("account", "month", "number", "used_month", "resource", "kind")


def write_issued_lines(
    outputs: Outputs, lines: DataFrame, count: int, documents: Sequence[Part]
) -> None:
    """Writes missing lines for the runs that issued documents.

    `lines`: `count` lines of all documents and open months, summed over tiers; `run` is "" for an
    open month.
    """
    runs = sorted({part.run for part in documents if part.row_count})
    missing = [run for run in runs if not outputs.has_file(WRITTEN, run)]
    if not missing:
        return
    rows = rows_in_order(lines.where(lines["run"].isin(missing)), count, "run", *ORDER)
    for (run, account), of_account in groupby(rows, key=lambda row: (row["run"], row["account"])):
        content = {
            str(number): [line_of(row, row["currency"]) for row in by_resource(of_document)]
            for number, of_document in groupby(of_account, key=lambda row: row["number"])
        }
        outputs.write_of_account(LINES, account, content, run)
    outputs.flush()
    for run in missing:
        outputs.write_file(WRITTEN, b"", run)
