"""The rate card: prices by kind of use.

EMR's Python has no YAML reader, and a job's zip has nothing but these modules. A card needs two
levels of `name: value`, and only those are read here, strictly: the card stays one file that
people edit, without a converted copy that could differ from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from cirrusmq_reports.errors import BadInput

OPERATIONS = (
    "sent", "received", "deleted", "expired", "dead_lettered", "published", "delivered", "dropped",
    "rewound",
)  # fmt: skip
KEPT, REWINDABLE = "kept", "rewindable"
"""Kinds of the hourly gauges: each record is one hour of so many messages and bytes."""

MILLION = Decimal(1_000_000)
GIGABYTE = Decimal(1_000_000_000)

_LINE = re.compile(r"(?P<indent> *)(?P<name>[a-z_]+):(?: +(?P<value>[A-Za-z0-9.]+))?")
_PRICE = re.compile(r"[0-9]{1,5}(\.[0-9]{1,6})?")
_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCard:
    """Prices by kind; a kind without a price is an error, not free."""

    path: str
    currency: str
    decimals: int
    """Places that an invoice's line is rounded to."""
    per_message: Mapping[str, Decimal]
    """Kind → price of one message (of one message and hour, for gauges)."""
    per_byte: Mapping[str, Decimal]
    """Kind → price of one byte (of one byte and hour, for gauges)."""


def read_rate_card(path: str, text: str) -> RateCard:
    """The card in `text`; `path` is for errors. Raises BadInput."""
    levels = _read_levels(path, text)
    card = levels.pop("", {})
    operations = levels.pop("per_million_operations", {})
    for name in levels:
        raise BadInput(f"{path}: {name} is not known")
    currency = _take(path, card, "currency", _CURRENCY, "three capital letters")
    decimals = _take(path, card, "decimals", re.compile("[0-6]"), "a number from 0 to 6")
    kept = _take_price(path, card, "per_gigabyte_hour_kept")
    rewindable = _take_price(path, card, "per_million_rewindable_hours")
    prices = {kind: _take_price(path, operations, kind) / MILLION for kind in OPERATIONS}
    for name in (*card, *operations):
        raise BadInput(f"{path}: {name} is not known")
    return RateCard(
        path=path,
        currency=currency,
        decimals=int(decimals),
        per_message={**prices, KEPT: Decimal(0), REWINDABLE: rewindable / MILLION},
        per_byte={**dict.fromkeys((*OPERATIONS, REWINDABLE), Decimal(0)), KEPT: kept / GIGABYTE},
    )


def _read_levels(path: str, text: str) -> dict[str, dict[str, str]]:
    """Name of the level ("" for the first) → its names and values, as text."""
    levels: dict[str, dict[str, str]] = {"": {}}
    level = ""
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].rstrip()
        if not content:
            continue
        match = _LINE.fullmatch(content)
        if match is None or len(match["indent"]) not in (0, 2):
            raise BadInput(f"{path}: line {number}: not `name: value`: {content}")
        name, value = match["name"], match["value"]
        if not match["indent"]:
            level = "" if value else name
        elif not level or value is None:
            raise BadInput(f"{path}: line {number}: does not belong here: {content}")
        if name in levels or name in levels.get(level, {}):
            raise BadInput(f"{path}: line {number}: {name} stands here twice")
        if value is None:
            levels[name] = {}
        else:
            levels[level][name] = value
    return levels


def _take_price(path: str, values: dict[str, str], name: str) -> Decimal:
    return Decimal(_take(path, values, name, _PRICE, "a price below 100000 with six decimals"))


def _take(
    path: str, values: dict[str, str], name: str, pattern: re.Pattern[str], meaning: str
) -> str:
    value = values.pop(name, None)
    if value is None:
        raise BadInput(f"{path}: {name} is missing")
    if not pattern.fullmatch(value):
        raise BadInput(f"{path}: {name}: {value} is not {meaning}")
    return value
