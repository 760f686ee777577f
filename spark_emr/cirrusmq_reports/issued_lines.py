"""The lines of documents as `GET /reports/billing` answers them, written once.

A night writes the accounts' open months anew, and of documents their totals alone. The lines of a
document never change, so they lie in the folder of the run that issued it::

    runs/billing/<run that closed October>/lines/acme.json    {"INV-acme-000007": [line, ...]}
    runs/billing/<tonight's run>/accounts/acme.json           "issued_in": <the run above>

They are made of the table of lines, so a run can write them for one before it: a release before
this one wrote none, and a job may end between an account's file and the next one's. A mark says
that all of a run's are there; without it they are written again, with the same content.
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
"""In a run's folder: the lines of all documents that it issued are there."""
ORDER = ("account", "month", "number", "used_month", "resource", "kind")


def write_issued_lines(
    outputs: Outputs, lines: DataFrame, count: int, documents: Sequence[Part]
) -> None:
    """Write the lines of the runs that issued documents, as far as they are not written.

    `lines`: `count` of all documents and of open months, summed over tiers; the `run` of the
    latter is "".
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
