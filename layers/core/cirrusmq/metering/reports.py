"""Reports that the data pipeline finished, as it left them: one summary for each account."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

from cirrusmq.base.decoding import decode_json
from cirrusmq.base.errors import InvalidParameter, LimitExceeded, ReportNotFound
from cirrusmq.base.limits import ANSWER_BYTES
from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq.runtime.core import Core

BILLING_DAYS = 400
_DAY_MS = 86_400_000


class _Pointer(msgspec.Struct):
    """The first line of the pointer to a report's newest run."""

    run: str


def billing(
    core: Core, account: str, start: str | None = None, end: str | None = None
) -> dict[str, Any]:
    """The newest billing of an account: the invoices of months that touch `start` to `end`."""
    start_ms = None if start is None else parse_time("from", start)
    end_ms = None if end is None else parse_time("to", end)
    report = _read(core, "billing", account)
    first_ms = parse_time("from", report["from"]) if start_ms is None else start_ms
    last_ms = parse_time("to", report["to"]) if end_ms is None else end_ms
    given = start_ms is not None or end_ms is not None
    if given and not 0 <= last_ms - first_ms <= BILLING_DAYS * _DAY_MS:
        raise InvalidParameter("from", f"must be at most {BILLING_DAYS} days before to")
    months = _month(first_ms), _month(last_ms)
    chosen = report | {
        "from": format_time(first_ms),
        "to": format_time(last_ms),
        "invoices": [
            invoice
            for invoice in report["invoices"]
            if not given or months[0] <= invoice["month"] <= months[1]
        ],
    }
    return _fitting(chosen)


def backlog(core: Core, account: str, at: str | None = None) -> dict[str, Any]:
    """The newest backlog of an account, if it was taken by `at`."""
    at_ms = None if at is None else parse_time("at", at)
    report = _read(core, "backlog", account)
    if at_ms is not None and parse_time("at", report["at"]) > at_ms:
        raise ReportNotFound(f"the only report is of {report['at']}")
    return _fitting(report)


def _read(core: Core, report: str, account: str) -> dict[str, Any]:
    """The account's summary, of the run that the report's pointer names."""
    pointer = core.read_report(f"current/{report}.json")
    if pointer is None:
        raise ReportNotFound
    run = decode_json(pointer.partition(b"\n")[0], _Pointer).run
    name = f"runs/{report}/{run}/summaries/{quote(account, safe='')}.json"
    content = core.read_report(name)
    if content is None:
        raise ReportNotFound
    return decode_json(content, dict[str, Any])


def _fitting(report: dict[str, Any]) -> dict[str, Any]:
    """The report, if an answer has room for it; LimitExceeded."""
    size = len(msgspec.json.encode(report))
    if size > ANSWER_BYTES:
        raise LimitExceeded(
            f"the report has {size:,} bytes, and an answer at most {ANSWER_BYTES:,}:"
            " ask for fewer months, or read it where the data pipeline wrote it"
        )
    return report


def _month(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m")
