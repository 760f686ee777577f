"""Adjustments: amounts that a person adds to a bill or takes off it, each with a reason."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.rate_card import KINDS

MINIMUM, ROUNDING, TAX = "minimum", "rounding", "tax"
OWN_KINDS = (MINIMUM, ROUNDING, TAX)
"""Kinds of the lines that a document adds."""
PREFIX = "adjustment:"
"""Prefix of an adjustment's id, in the column of the resource."""
ADJUSTMENT_SCHEMA = (
    "id STRING, account STRING, used_month STRING, currency STRING, kind STRING, "
    "charge DECIMAL(38,19), reason STRING, quantity BIGINT"
)
_TEXTS = {
    "id": (re.compile("[A-Za-z0-9._-]{1,64}"), "1 to 64 letters, digits, dots, - and _"),
    "account": (re.compile("[A-Za-z][A-Za-z0-9_-]{0,63}"), "the name of an account"),
    "month": (re.compile("[0-9]{4}-(0[1-9]|1[0-2])"), "a month such as 2026-11"),
    "kind": (re.compile("[a-z][a-z_]{0,31}"), "1 to 32 small letters and _"),
    "reason": (re.compile(r"(?=.*\S).{1,500}"), "a text of 1 to 500 characters"),
}
_OF_AMOUNT = {
    "currency": (re.compile("[A-Z]{3}"), "three capital letters"),
    "amount": (
        re.compile(r"-?(?=[0-9.]*[1-9])[0-9]{1,15}(\.[0-9]{1,19})?"),
        "a decimal number other than 0",
    ),
}
_OF_QUANTITY = {
    "quantity": (re.compile("-?[1-9][0-9]{0,14}"), "a whole number other than 0"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """A signed amount of an account, or a signed quantity of a kind of its use."""

    id: str
    account: str
    month: str
    kind: str
    reason: str
    currency: str | None = None
    amount: Decimal | None = None
    quantity: int | None = None
    """Messages, or byte hours for kept messages. Priced by the card of the month's last day."""

    def row(self) -> tuple[Any, ...]:
        """Returns the row of ADJUSTMENT_SCHEMA."""
        return (
            self.id, self.account, self.month, self.currency, self.kind, self.amount, self.reason,
            self.quantity,
        )  # fmt: skip


def read_adjustments(path: str, text: str) -> list[Adjustment]:
    """Returns the adjustments in a file, one in each line, as JSON. Raises BadInput."""
    lines = enumerate(text.splitlines(), 1)
    read = [_read(f"{path}: line {number}", line) for number, line in lines if line.strip()]
    return without_repetitions(read, path)


def without_repetitions(given: list[Adjustment], path: str) -> list[Adjustment]:
    """Returns each adjustment once. Raises BadInput if two different ones have the same id."""
    found: dict[str, Adjustment] = {}
    for each in given:
        if found.setdefault(each.id, each) != each:
            raise BadInput(f"{path}: the id {each.id} is of another adjustment")
    return list(found.values())


def id_of(fields: Mapping[str, str]) -> str:
    """Returns an id for an adjustment without one: equal for equal fields."""
    content = json.dumps(sorted(fields.items())).encode()
    return f"A-{hashlib.sha256(content).hexdigest()[:12]}"


def adjustment_of(where: str, entry: Mapping[str, Any]) -> Adjustment:
    """Returns the adjustment that an entry of a file describes. Raises BadInput."""
    by_quantity = "quantity" in entry
    texts = _TEXTS | (_OF_QUANTITY if by_quantity else _OF_AMOUNT)
    if sorted(entry) != sorted(texts):
        raise BadInput(
            f"{where}: its names are not {', '.join(_TEXTS)}, and amount and currency, or quantity"
        )
    for name, (pattern, meaning) in texts.items():
        value = entry[name]
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise BadInput(f"{where}: {name}: {value} is not {meaning}")
    kind = entry["kind"]
    if by_quantity and kind not in KINDS:
        raise BadInput(f"{where}: kind: {kind} has no price; it is one of {', '.join(KINDS)}")
    if kind in OWN_KINDS:
        raise BadInput(f"{where}: kind: {kind} is a line that documents have by themselves")
    common = {name: entry[name] for name in _TEXTS}
    if by_quantity:
        return Adjustment(**common, quantity=int(entry["quantity"]))
    return Adjustment(**common, currency=entry["currency"], amount=Decimal(entry["amount"]))


def _read(where: str, line: str) -> Adjustment:
    try:
        entry = json.loads(line)
    except ValueError:
        raise BadInput(f"{where}: not JSON") from None
    if not isinstance(entry, dict):
        raise BadInput(f"{where}: not a JSON object")
    return adjustment_of(where, entry)
