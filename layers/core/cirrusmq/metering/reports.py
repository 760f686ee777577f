"""Reports that the data pipeline finished, as it left them: one summary for each account.

The billing report has documents without their lines, which are in the folder of the run that issued
them; a page of lines reads only the lines that it shows.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

import msgspec

from cirrusmq.base.errors import InvalidParameter, LimitExceeded, ReportNotFound
from cirrusmq.base.limits import ANSWER_BYTES, REPORT_LINES
from cirrusmq.base.shapes import decode_json
from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq.runtime.core import Core
from cirrusmq.storage import cursors

BILLING_DAYS = 400
_DAY_MS = 86_400_000
_NO_GROUPS: dict[str, Any] = {"labels": [], "top": {}}


class _Pointer(msgspec.Struct):
    """The first line of the pointer to a report's newest run."""

    run: str


def billing(
    core: Core,
    account: str,
    start: str | None = None,
    end: str | None = None,
    *,
    lines: int = REPORT_LINES[1],
    cursor: str | None = None,
) -> tuple[dict[str, Any], str | None]:
    """Returns an account's newest billing: the invoices of months that touch `start` to `end`.

    With at most `lines` lines of them, from the cursor on, and the cursor of the next page. An
    invoice whose lines are on several pages is on each of them. A listing goes on with its first
    report, also if a newer one has been finished since.
    """
    listing = ("reports", account, start or "", end or "")
    place = cursors.read(core, cursor, *listing)
    began, _, passed = (place or "").partition(" ")
    start_ms = None if start is None else parse_time("from", start)
    end_ms = None if end is None else parse_time("to", end)
    run = began or _newest(core, "billing")
    report = _read_billing(core, account, run, begun=bool(began))
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
    more = _cut(core, account, chosen, int(passed or 0), lines)
    following = cursors.make(core, f"{run} {more}", *listing) if more else None
    return _fitting(chosen), following


def _cut(core: Core, account: str, report: dict[str, Any], passed: int, lines: int) -> int | None:
    """Cuts the report's invoices to `lines` lines. Returns the lines passed, or None at the end."""

    @cache
    def issued(run: str) -> dict[str, Any]:
        """Returns number → lines of the documents that a run issued."""
        found = _of_account(core, "billing", run, "lines", account)
        if found is None:
            raise ReportNotFound(f"the lines of the documents of run {run} are gone")
        return found

    kept, seen = [], 0
    for each in report["invoices"]:
        invoice = dict(each)
        run, count = invoice.pop("issued_in", None), invoice.pop("line_count", 0)
        if run is None:
            count = len(invoice["lines"])
        first, last = max(0, passed - seen), passed + lines - seen
        if first < min(count, last):
            own = invoice["lines"] if run is None else issued(run)[invoice["number"]]
            kept.append(invoice | {"lines": own[first:last]})
        elif not count and (passed < seen or not seen) and last >= 0:
            kept.append(invoice | {"lines": []})
        seen += count
    report["invoices"] = kept
    return passed + lines if passed + lines < seen else None


def backlog(core: Core, account: str, at: str | None = None) -> dict[str, Any]:
    """Returns the newest backlog of an account, if it was taken by `at`."""
    at_ms = None if at is None else parse_time("at", at)
    run = _newest(core, "backlog")
    groups = _of_account(core, "backlog", run, "groups", account)  # an older job wrote none
    summary = _of_account(core, "backlog", run, "summaries", account)
    if summary is None:
        raise ReportNotFound
    report = {**_NO_GROUPS, **(groups or {}), **summary}
    if at_ms is not None and parse_time("at", report["at"]) > at_ms:
        raise ReportNotFound(f"the only report is of {report['at']}")
    return _fitting(report)


def _newest(core: Core, report: str) -> str:
    """Returns the run that the report's pointer names."""
    pointer = core.read_report(f"current/{report}.json")
    if pointer is None:
        raise ReportNotFound
    return decode_json(pointer.partition(b"\n")[0], _Pointer).run


def _read_billing(core: Core, account: str, run: str, *, begun: bool) -> dict[str, Any]:
    """Returns the account's bills of a run. begun: a cursor named the run."""
    found = _of_account(core, "billing", run, "accounts", account)
    if found is None:  # a job of before put all lines into one file
        found = _of_account(core, "billing", run, "summaries", account)
    if found is None and begun:
        raise InvalidParameter("cursor", "is of a report that is gone: begin again without it")
    if found is None:
        raise ReportNotFound
    return found


def _of_account(
    core: Core, report: str, run: str, folder: str, account: str
) -> dict[str, Any] | None:
    """Returns an account's file in one of a run's folders, or None if there is none."""
    content = core.read_report(f"runs/{report}/{run}/{folder}/{quote(account, safe='')}.json")
    return None if content is None else decode_json(content, dict[str, Any])


def _fitting(report: dict[str, Any]) -> dict[str, Any]:
    """Returns the report if an answer has room for it, else raises LimitExceeded."""
    size = len(msgspec.json.encode(report))
    if size > ANSWER_BYTES:
        raise LimitExceeded(
            f"the report has {size:,} bytes, and an answer at most {ANSWER_BYTES:,}:"
            " ask for fewer months, or read it where the data pipeline wrote it"
        )
    return report


def _month(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m")
