"""Shows the result of a run of billing: answers by account, the page, and lines of the log."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports.billing_page import ACCOUNTS_SHOWN, PageInput, render_billing, shortened
from cirrusmq_reports.billing_plan import REPORT_DAYS_MOST, Due, first_ms
from cirrusmq_reports.billing_state import State
from cirrusmq_reports.billing_summary import (
    HEADER_FIELDS,
    Facts,
    billing_summaries,
    states_of,
)
from cirrusmq_reports.billing_sums import Sums
from cirrusmq_reports.budgets import exceeded, sentence
from cirrusmq_reports.closing import DOCUMENT_TABLE, LINE_TABLE
from cirrusmq_reports.documents import DOCUMENT_SCHEMA
from cirrusmq_reports.issued_lines import write_issued_lines
from cirrusmq_reports.ledger import Taken
from cirrusmq_reports.ordered_rows import rows_in_order
from cirrusmq_reports.publication import Outputs, Part
from cirrusmq_reports.rate_card import RateCard
from cirrusmq_reports.times import DAY_MS, iso_month
from cirrusmq_reports.transforms.daily_charges import daily_charges
from cirrusmq_reports.transforms.invoice_lines import DOCUMENT_LINE_SCHEMA
from cirrusmq_reports.transforms.month_so_far import month_so_far
from cirrusmq_reports.transforms.unusual_hours import unusual_hours

ACCOUNTS = "accounts"
"""In a run's folder: the answers of `GET`. Releases before this one look into `summaries`, whose
files have all lines."""
BUDGETS = "budgets.json"
"""In a run's folder: the budgets of the running month."""


_OPEN_ORDER = ("account", "month", "currency", "used_month", "resource", "kind")


@dataclass(frozen=True)
class Showing:
    """Writes the answers and the page of a run."""

    spark: SparkSession
    outputs: Outputs
    close_days: int
    card: RateCard

    def show(
        self,
        after: State,
        charged: DataFrame,
        open_lines: DataFrame,
        documents: Sequence[Part],
        taken: Taken,
        due: Due,
    ) -> None:
        outputs, to_ms = self.outputs, after.to_ms
        oldest = iso_month(max(0, to_ms - REPORT_DAYS_MOST * DAY_MS))
        recent = [part for part in documents if part.part >= oldest]
        issued, lines = _of(recent, DOCUMENT_TABLE), _of(recent, LINE_TABLE)
        rows = self._summed(open_lines, lines).persist()
        months = {row["month"]: row["count"] for row in rows.groupBy("month").count().collect()}
        count = sum(months.values())
        write_issued_lines(outputs, rows, count, issued)
        from_ms = first_ms(to_ms, months)
        shown_rows = rows.where(sf.col("month") >= iso_month(from_ms))
        unusual = unusual_hours(charged, to_ms).withColumn("hour_ms", sf.unix_millis("hour"))
        facts = Facts(
            from_ms=from_ms,
            to_ms=to_ms,
            generated_ms=outputs.generated_ms,
            close_days=self.close_days,
            gaps=after.accepted,
            so_far=_rows(month_so_far(charged, to_ms)),
            budgets=self.card.budgets,
            terms=self.card.terms,
            unusual=_rows(unusual.drop("hour").orderBy("account", "hour_ms", "resource", "kind")),
        )
        shown: dict[str, Any] = {}
        sums = Sums()
        open_rows = rows_in_order(shown_rows.where(sf.col("number") == ""), count, *_OPEN_ORDER)
        limit = sum(part.row_count for part in issued)
        headers = rows_in_order(self._headers(issued, shown_rows), limit, "account", "number")
        for account, summary in billing_summaries(open_rows, headers, facts):
            outputs.write_of_account(ACCOUNTS, account, summary)
            sums.add(account, summary)
            if len(shown) < ACCOUNTS_SHOWN:
                shown[account] = shortened(summary)
        sums.add_lines(shown_rows)
        budgets = states_of(facts)
        page = PageInput(
            summaries=shown,
            sums=sums,
            daily=_rows(daily_charges(charged)),
            from_ms=facts.from_ms,
            to_ms=to_ms,
            gaps=after.accepted,
            waiting=due.waiting,
            set_aside=taken.set_aside,
            budgets=budgets,
        )
        outputs.write_page(render_billing(page))
        outputs.write_file(BUDGETS, json.dumps(budgets).encode())
        self._tell(after, facts, taken, due, sums)

    def _summed(self, open_lines: DataFrame, parts: Sequence[Part]) -> DataFrame:
        """Returns lines summed over tiers, of documents and open months (`number` and `run` "")."""
        schema = f"{DOCUMENT_LINE_SCHEMA}, run STRING"
        issued = self.outputs.read(self.spark, parts, schema).drop("line")
        none = {"number": sf.lit(""), "run": sf.lit("")}
        both = issued.unionByName(open_lines.drop("used_day").withColumns(none))
        keys = ("account", "month", "number", "run", "currency", "used_month", "resource", "kind")
        return both.groupBy(*keys).agg(
            *[sf.sum(name).alias(name) for name in ("count", "bytes", "charge")]
        )

    def _headers(self, issued: Sequence[Part], lines: DataFrame) -> DataFrame:
        """Returns the documents, with the number of lines in their answers."""
        headers = self.outputs.read(self.spark, issued, f"{DOCUMENT_SCHEMA}, run STRING")
        counts = lines.groupBy("number").agg(sf.count(sf.lit(1)).alias("line_count"))
        return headers.select(*HEADER_FIELDS).join(counts, "number")

    def _tell(self, after: State, facts: Facts, taken: Taken, due: Due, sums: Sums) -> None:
        """Prints lines for a person, and lines of the job's log for metric filters."""
        for gap in after.accepted:
            print(f"the use of {gap.days} is missing: no export shows it", file=sys.stderr)
        # Months close in order: later months wait for the first one.
        for month, missing in due.waiting[:1]:
            days = ", ".join(stretch.days for stretch in missing)
            others = " and of later months" if due.waiting[1:] else ""
            said = f"the invoices of {month}{others} wait: no export shows {days}"
            print(said, file=sys.stderr)
        for reason, count in sorted(taken.set_aside.items()):
            print(f"{count:,} entries of usage are set aside: {reason}", file=sys.stderr)
        over = exceeded(states_of(facts))
        for state in over:
            print(sentence(state), file=sys.stderr)
        print(json.dumps({"budgets_exceeded": len(over)}))
        print(json.dumps({"unusual_hours": len(facts.unusual)}))
        print(json.dumps({"set_aside": taken.set_aside.total()}))
        for currency, total in sorted(sums.currencies.items()):
            if total.forecast:
                print(json.dumps({"currency": currency, "forecast": float(total.forecast)}))


def _of(parts: Sequence[Part], table: str) -> list[Part]:
    return [part for part in parts if part.dataset == table]


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]
