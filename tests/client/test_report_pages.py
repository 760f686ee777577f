"""A report whose lines need several pages is one to the client."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_client import Client


@pytest.fixture
def reports(stack: Any) -> Iterator[Path]:
    folder = Path(stack.data) / "reports"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_all_pages_of_a_report_are_joined(client: Client, stack: Any, reports: Path) -> None:
    lines = [{"resource": f"queue:q{number}", "kind": "sent"} for number in range(12_500)]
    common = {"currency": "USD", "number": None}
    invoices = [
        {**common, "month": "2026-10", "number": "INV-1", "lines": lines},
        {**common, "month": "2026-10", "number": "INV-2", "lines": lines[:2]},
        {**common, "month": "2026-11", "lines": lines},
    ]
    start, end = "2026-10-01T00:00:00.000Z", "2026-11-30T00:00:00.000Z"
    report = {"from": start, "to": end, "generated_at": end, "time_zone": "UTC"}
    content = {**report, "gaps": [], "unusual": [], "invoices": invoices}
    account = json.loads((Path(stack.data) / "connection.json").read_text())["account"]
    for name, text in (
        ("current/billing.json", '{"run": "r1"}\n'),
        (f"runs/billing/r1/summaries/{account}.json", json.dumps(content)),
    ):
        (reports / name).parent.mkdir(parents=True, exist_ok=True)
        (reports / name).write_text(text)

    told: Any = client.report_billing()

    assert "cursor" not in told
    assert [(each["month"], each["number"]) for each in told["invoices"]] == [
        ("2026-10", "INV-1"),
        ("2026-10", "INV-2"),
        ("2026-11", None),
    ]
    assert [each["lines"] for each in told["invoices"]] == [lines, lines[:2], lines]
