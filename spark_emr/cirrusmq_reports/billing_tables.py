"""The tables of a billing report."""

from __future__ import annotations

from collections.abc import Iterable

from cirrusmq_reports.closing import CARRIED_TABLE, DOCUMENT_TABLE, LINE_TABLE
from cirrusmq_reports.documents import DOCUMENT_SCHEMA
from cirrusmq_reports.folding import LEDGER, USAGE_TABLE
from cirrusmq_reports.labels import LABEL_TABLE
from cirrusmq_reports.ledger import QUARANTINE
from cirrusmq_reports.parties import PARTY_SCHEMA
from cirrusmq_reports.publication import Part
from cirrusmq_reports.transforms.invoice_lines import DOCUMENT_LINE_SCHEMA, OPEN_LINE_SCHEMA
from cirrusmq_reports.transforms.usage_by_hour import USAGE_SCHEMA
from cirrusmq_reports.transforms.usage_records import LEDGER_SCHEMA

OPEN_TABLE, ADJUSTMENT_TABLE, OLD_LINES = "open_lines", "adjustments", "invoice_lines"
PARTY_TABLE = "parties"
BILL_TABLES = (
    LEDGER, USAGE_TABLE, QUARANTINE, DOCUMENT_TABLE, LINE_TABLE, CARRIED_TABLE, OPEN_TABLE,
    ADJUSTMENT_TABLE, OLD_LINES, LABEL_TABLE, PARTY_TABLE,
)  # fmt: skip
ANALYST_TABLES = {
    LEDGER: f"{LEDGER_SCHEMA}, run STRING",
    USAGE_TABLE: f"{USAGE_SCHEMA}, run STRING",
    DOCUMENT_TABLE: f"{DOCUMENT_SCHEMA}, run STRING",
    LINE_TABLE: f"{DOCUMENT_LINE_SCHEMA}, closed STRING, run STRING",
    OPEN_TABLE: f"{OPEN_LINE_SCHEMA}, kept_in STRING, run STRING",
    PARTY_TABLE: f"{PARTY_SCHEMA}, kept_in STRING, run STRING",
}
"""The tables that analysts read, with the columns of their files."""


def parts_of(parts: Iterable[Part], *tables: str) -> list[Part]:
    """Returns the parts of these tables."""
    return [part for part in parts if part.dataset in tables]
