"""The files of a document: JSON, CSV, and a page for a person."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from cirrusmq_reports.documents import LINE_FIELDS
from cirrusmq_reports.page import render_page, section, table

Row = Mapping[str, Any]


def files_of(made: Mapping[str, Any]) -> dict[str, bytes]:
    """Returns the document's files by the ends of their names."""
    return {
        "json": json.dumps(made, indent=1).encode(),
        "csv": _as_csv(made).encode(),
        "html": _as_html(made).encode(),
    }


def _as_csv(made: Mapping[str, Any]) -> str:
    """Returns a row for each line, rounding included, without a total: it is the rows' sum."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["number", "type", "account", "month", "currency", "line", *LINE_FIELDS])
    head = [
        made["number"],
        made["type"],
        made["account"],
        made["period"]["month"],
        made["currency"],
    ]
    for line in made["lines"]:
        writer.writerow([*head, line["line"], *(line[name] for name in LINE_FIELDS)])
    return text.getvalue()


def _as_html(made: Mapping[str, Any]) -> str:
    rows = [_cells(line) for line in made["lines"]]
    rows.append(["total", *[""] * 6, f"{made['total']} {made['currency']}"])
    parties = [
        (who, ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in made[who].items()))
        for who in ("seller", "buyer")
        if made[who]
    ]
    period = made["period"]
    facts = [
        *parties,
        ("period", f"{period['from'][:10]} to {period['to'][:10]}, without that day"),
        ("issued", made["issued"]),
        *([("refers to", made["refers_to"])] if made["refers_to"] else []),
        *([("tax", _tax_text(made))] if made["tax"] else []),
        *([("use that is missing", ", ".join(made["gaps"]))] if made["gaps"] else []),
    ]
    heads = (
        "resource", "kind", "use of", "tier", "quantity", "list price of one", "discount",
        f"charge ({made['currency']})",
    )  # fmt: skip
    title = f"{made['type'].replace('_', ' ').capitalize()} {made['number']}"
    parts = [
        section("Document", table(("field", "value"), facts, texts=2)),
        section("Lines", table(heads, rows, texts=2, summed=True)),
    ]
    return render_page(title, f"{made['account']}, {made['period']['month']} (UTC)", parts)


def _cells(line: Row) -> list[str]:
    quantity, discount = line["quantity"], line["discount_percent"]
    return [
        line["resource"] or "",
        f"{line['kind']}: {line['reason']}" if line["reason"] else line["kind"],
        line["used_month"] or "",
        "" if line["tier"] is None else str(line["tier"]),
        "" if quantity is None else f"{int(quantity):,} {line['unit']}",
        line["list_unit_price"] or "",
        f"{discount} %" if discount not in (None, "0") else "",
        line["charge"],
    ]


def _tax_text(made: Mapping[str, Any]) -> str:
    tax, currency = made["tax"], made["currency"]
    return f"{tax['name']} {tax['percent']} % of {tax['of']}: {tax['amount']} {currency}"
