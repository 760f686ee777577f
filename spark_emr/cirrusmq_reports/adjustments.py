"""Adjustments: what a person adds to a bill or takes off it, with a reason, once each."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from cirrusmq_reports.errors import BadInput

KIND = "adjustment"
ADJUSTMENT_SCHEMA = (
    "id STRING, account STRING, used_month STRING, currency STRING, kind STRING, "
    "charge DECIMAL(38,19), reason STRING"
)
_NAMES = ("id", "account", "month", "kind", "currency", "amount", "reason")
_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
_AMOUNT = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,19})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """A signed amount of an account."""

    id: str
    account: str
    month: str
    kind: str
    currency: str
    amount: Decimal
    reason: str

    def row(self) -> tuple[Any, ...]:
        """The row of ADJUSTMENT_SCHEMA."""
        return (
            self.id, self.account, self.month, self.currency, self.kind, self.amount, self.reason,
        )  # fmt: skip


def read_adjustments(path: str, text: str) -> list[Adjustment]:
    """The adjustments in a file, one in JSON a line. Raises BadInput."""
    found: dict[str, Adjustment] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            each = _read(f"{path}: line {number}", line)
            if found.setdefault(each.id, each) != each:
                raise BadInput(f"{path}: line {number}: the id {each.id} is of another adjustment")
    return list(found.values())


def _read(where: str, line: str) -> Adjustment:
    try:
        entry = json.loads(line)
    except ValueError:
        raise BadInput(f"{where}: not JSON") from None
    if not isinstance(entry, dict):
        raise BadInput(f"{where}: not a JSON object")
    if "quantity" in entry:
        raise BadInput(f"{where}: quantity: give an amount: quantities are not priced here")
    if sorted(entry) != sorted(_NAMES):
        raise BadInput(f"{where}: its names are not {', '.join(_NAMES)}")
    values: Sequence[Any] = [entry[name] for name in _NAMES]
    if not all(isinstance(value, str) and value for value in values):
        raise BadInput(f"{where}: each value is a text that is not empty")
    if not _MONTH.fullmatch(entry["month"]):
        raise BadInput(f"{where}: month: {entry['month']} is not a month such as 2026-11")
    if not re.fullmatch("[A-Z]{3}", entry["currency"]):
        raise BadInput(f"{where}: currency: {entry['currency']} is not three capital letters")
    try:
        amount = Decimal(entry["amount"]) if _AMOUNT.fullmatch(entry["amount"]) else None
    except InvalidOperation:
        amount = None
    if not amount:
        raise BadInput(f"{where}: amount: {entry['amount']} is not a decimal number other than 0")
    return Adjustment(**{**entry, "amount": amount})
