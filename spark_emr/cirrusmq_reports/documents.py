"""Invoices, credit and debit notes: their lines, their numbers and their contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cirrusmq_reports.adjustments import ROUNDING, TAX
from cirrusmq_reports.currencies import rounded, shown
from cirrusmq_reports.rate_card import KEPT, REWINDABLE, Prices
from cirrusmq_reports.times import iso_time, month_ms, next_month

Row = Mapping[str, Any]
CARRIED, NOTE = "", "note "
"""Groups of lines: carried from earlier, or, as a month's prefix, late lines of the month."""
INVOICE, CREDIT_NOTE, DEBIT_NOTE = "invoice", "credit_note", "debit_note"
LEGACY = "legacy"
DOCUMENT_SCHEMA = (
    "number STRING, ordinal BIGINT, account STRING, type STRING, month STRING, closed STRING, "
    "refers_to STRING, currency STRING, sum DECIMAL(38,19), rounding DECIMAL(38,19), "
    "total DECIMAL(38,19), issued STRING, tax DECIMAL(38,19), tax_name STRING, "
    "tax_percent DECIMAL(5,2), issuer STRING, buyer STRING, terms STRING"
)
"""`month`: month of the use; `closed`: month with whose invoices it was issued.

Documents of earlier releases have no tax, and no names of their parties.
"""
Terms = Callable[[str], Prices | None]
"""Month → the card's entry of its last day."""
LINE_FIELDS = (
    "resource", "resource_id", "kind", "tier", "price_date", "quantity", "unit",
    "list_unit_price", "discount_percent", "used_month", "charge", "reason",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A document without its lines."""

    number: str
    ordinal: int
    """Number in its series, from 1; 0 for documents of earlier releases."""
    account: str
    type: str
    month: str
    closed: str
    refers_to: str | None
    currency: str
    sum: Decimal
    rounding: Decimal
    total: Decimal
    issued: str
    tax: Decimal = Decimal(0)
    tax_name: str | None = None
    tax_percent: Decimal | None = None
    issuer: str | None = None
    buyer: str | None = None
    terms: str | None = None
    """Terms of payment."""
    groups: Sequence[str] = field(default=())
    """The groups of its lines."""

    def row(self) -> tuple[Any, ...]:
        """Returns the row of DOCUMENT_SCHEMA."""
        return tuple(getattr(self, name) for name in self.__slots__ if name != "groups")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The series of numbers that new documents continue."""

    prefix: str
    by_account: bool
    last: Mapping[str, int]
    """The last number of each series: by account, or for "" only."""
    invoices: Mapping[tuple[str, str, str], str]
    """Account, month and currency → the number of its invoice."""


def issue(
    totals: Mapping[tuple[str, str, str], Decimal],
    closing: Sequence[str],
    series: Series,
    issued: str,
    terms: Terms = lambda month: None,
) -> list[Header]:
    """Returns the documents to issue, in the order of their numbers.

    `totals`: account, currency and group of lines → their exact sum. Groups that are together
    below one minor unit are on no document yet: they are CARRIED to the next one. Tax is by the
    document's month, from the rounded sum, and rounded to the minor unit.
    """
    drafts: list[Header] = []
    for account, currency in sorted({key[:2] for key in totals}):
        of_both = {
            group: total for (*key, group), total in totals.items() if key == [account, currency]
        }
        drafts += _drafts(account, currency, of_both, closing, issued, terms)
    order = {month: place for place, month in enumerate(closing)}
    drafts.sort(
        key=lambda each: (order[each.closed], each.account, each.type != INVOICE, each.month)
    )
    last, invoices = dict(series.last), dict(series.invoices)
    headers = []
    for draft in drafts:
        own = draft.account if series.by_account else ""
        last[own] = last.get(own, 0) + 1
        parts = [series.prefix, own, f"{last[own]:06d}"]
        number = "-".join(part for part in parts if part)
        place = draft.account, draft.month, draft.currency
        if draft.type == INVOICE:
            invoices[place] = number
        named = None if draft.type == INVOICE else invoices.get(place)
        values = {name: getattr(draft, name) for name in draft.__slots__}
        headers.append(
            Header(**values | {"number": number, "ordinal": last[own], "refers_to": named})
        )
    return headers


def _drafts(
    account: str,
    currency: str,
    totals: Mapping[str, Decimal],
    closing: Sequence[str],
    issued: str,
    terms: Terms,
) -> Iterator[Header]:
    """Yields the documents of an account and currency, without numbers."""
    waiting = [CARRIED] if CARRIED in totals else []
    for place, month in enumerate(closing):
        groups = [*waiting, *([month] if month in totals else [])]
        notes = sorted(group for group in totals if group.startswith(NOTE)) if place == 0 else []
        for own, kind, period in [
            (groups, INVOICE, month),
            *(([note], NOTE, note.removeprefix(NOTE)) for note in notes),
        ]:
            exact = sum((totals[group] for group in own), Decimal(0))
            net = rounded(exact, currency)
            if not net:
                if kind == INVOICE:
                    waiting = groups
                continue
            if kind == INVOICE:
                waiting = []
            entry = terms(period)
            percent = entry.tax.of(account) if entry and entry.tax else None
            tax = rounded(net * (percent or 0) / 100, currency)
            yield Header(
                number="",
                ordinal=0,
                account=account,
                type=_type(kind, net),
                month=period,
                closed=month,
                refers_to=None,
                currency=currency,
                sum=exact,
                rounding=net - exact,
                total=net + tax,
                issued=issued,
                tax=tax,
                tax_name=entry.tax_name if entry and entry.tax else None,
                tax_percent=percent,
                groups=tuple(own),
            )


def _type(kind: str, total: Decimal) -> str:
    if total < 0:
        return CREDIT_NOTE
    return INVOICE if kind == INVOICE else DEBIT_NOTE


def least_charges(
    used: Mapping[tuple[str, str, str], Decimal],
    before: Mapping[tuple[str, str, str], tuple[Decimal, Decimal]],
    terms: Terms,
) -> dict[tuple[str, str, str], Decimal]:
    """Returns the amount that a group lacks to its month's minimum charge; negative for a refund.

    `used`: account, currency and group → the charge of use alone. `before`: account, currency and
    month → the charge of use and the minimum-charge lines in earlier documents. Late use reduces
    the line that an invoice had for its minimum charge.
    """
    lacking = {}
    for (account, currency, group), charge in used.items():
        month = group.removeprefix(NOTE)
        entry = None if group == CARRIED else terms(month)
        if entry is None or entry.minimum is None or entry.currency != currency:
            continue
        charged, filled = before.get((account, currency, month), (Decimal(0), Decimal(0)))
        lack = max(Decimal(0), entry.minimum.of(account) - charged - charge) - filled
        if lack:
            lacking[account, currency, group] = lack
    return lacking


def document(
    header: Header, lines: Iterable[Row], seller: Row, buyer: Row, made_of: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the document as JSON values. `made_of`: card, code, exports and gaps."""
    listed = [_line(line) for line in lines]
    own = {ROUNDING: header.rounding, TAX: header.tax}
    listed += [_line({"kind": kind, "charge": charge}) for kind, charge in own.items() if charge]
    for number, line in enumerate(listed, 1):
        line["line"] = number
    return {
        "number": header.number,
        "type": header.type,
        "refers_to": header.refers_to,
        "account": header.account,
        "period": {
            "month": header.month,
            "from": iso_time(month_ms(header.month)),
            "to": iso_time(month_ms(next_month(header.month))),
        },
        "issued": header.issued,
        "seller": dict(seller),
        "buyer": dict(buyer),
        "currency": header.currency,
        "lines": listed,
        "sum": _exact(header.sum),
        "rounding": _exact(header.rounding),
        "tax": _tax(header),
        "total": shown(header.total, header.currency),
        **made_of,
    }


def _tax(header: Header) -> dict[str, str] | None:
    if header.tax_percent is None:
        return None
    return {
        "name": str(header.tax_name),
        "percent": _exact(header.tax_percent),
        "of": shown(header.sum + header.rounding, header.currency),
        "amount": shown(header.tax, header.currency),
    }


def _line(row: Row) -> dict[str, Any]:
    price, paid = row.get("unit_price"), row.get("paid")
    units = {KEPT: "byte hours", REWINDABLE: "message hours"}
    values = {name: row.get(name) for name in LINE_FIELDS}
    return values | {
        "unit": units.get(row["kind"], "messages") if values["quantity"] is not None else None,
        "list_unit_price": None if price is None else _exact(price),
        "discount_percent": None if paid is None else _exact((1 - paid) * 100),
        "charge": _exact(row["charge"]),
    }


def _exact(amount: Decimal) -> str:
    text = f"{amount.normalize():f}"
    return "0" if text in ("-0", "0") else text
