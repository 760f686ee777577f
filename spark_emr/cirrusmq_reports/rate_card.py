"""The rate card: dated prices by kind of use, in tiers, with free allowances and discounts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

from cirrusmq_reports.card_text import Value, read_card_text
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.times import iso_day, month_ms, next_month, parse_time

OPERATIONS = (
    "sent", "received", "deleted", "expired", "dead_lettered", "published", "delivered",
    "attempted", "dropped", "rewound",
)  # fmt: skip
KEPT, REWINDABLE = "kept", "rewindable"
"""Kinds of the hourly gauges: a record is one hour of its messages and bytes."""
KINDS = (*OPERATIONS, KEPT, REWINDABLE)

MILLION = Decimal(1_000_000)
GIGABYTE = Decimal(1_000_000_000)

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PRICE = re.compile(r"[0-9]{1,5}(\.[0-9]{1,6})?")
_CURRENCY = re.compile(r"[A-Z]{3}")
_ANY = re.compile(".*")
_PREFIX = re.compile(r"[A-Za-z0-9]{1,12}")
_SERIES = re.compile("account|issuer")
_VOLUME = re.compile(r"[1-9][0-9]{0,14}")
_PERCENT = re.compile(r"([0-9]{1,2}(\.[0-9]{1,2})?|100)")
_NAME = re.compile(r".*\S.*")
_AMOUNT = re.compile(r"(?=[0-9.]*[1-9])[0-9]{1,12}(\.[0-9]{1,4})?")
_AMOUNT_MEANING = "an amount above 0 with at most four decimals"
_PERCENT_MEANING = "a percentage with two decimals"
_PRICE_MEANING = "a price below 100000 with at most six decimals"


@dataclass(frozen=True, slots=True)
class Tier:
    """The price of an account's use of a kind in a month beyond `above`."""

    above: int
    """Messages, or byte hours for kept messages."""
    price: Decimal
    """Price of one message, or of one byte hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByAccount:
    """A value for all accounts, with exceptions."""

    common: Decimal
    accounts: Mapping[str, Decimal] = field(default_factory=dict)

    def of(self, account: str) -> Decimal:
        """Returns the value of an account."""
        return self.accounts.get(account, self.common)

    def as_dict(self) -> dict[str, Any]:
        """Returns the value in the form of documents."""
        own = {account: f"{value.normalize():f}" for account, value in self.accounts.items()}
        return {"common": f"{self.common.normalize():f}", "accounts": dict(sorted(own.items()))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The prices from a day on, until later ones begin."""

    from_ms: int
    currency: str
    tiers: Mapping[str, Sequence[Tier]]
    """Kind → its tiers; the first one begins at 0."""
    discounts: Mapping[str, Decimal]
    """Account → the discount as a part of its charges, from 0 to 1."""
    tax_name: str = ""
    tax: ByAccount | None = None
    """Tax in percent of a document's rounded sum."""
    minimum: ByAccount | None = None
    """Minimum charge of an invoice of an account with use, before tax."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the entry in the form of documents: equal for texts with an equal meaning."""
        # Absent values are left out, so that earlier entries keep their digests.
        more = {} if self.tax is None else {"tax": {"name": self.tax_name, **self.tax.as_dict()}}
        if self.minimum is not None:
            more["minimum_charge"] = self.minimum.as_dict()
        return {
            **more,
            "from": iso_day(self.from_ms),
            "currency": self.currency,
            "tiers": {
                kind: [[tier.above, f"{tier.price.normalize():f}"] for tier in tiers]
                for kind, tiers in sorted(self.tiers.items())
            },
            "discounts": {
                account: f"{part.normalize():f}" for account, part in sorted(self.discounts.items())
            },
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the entry's canonical JSON."""
        text = json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCard:
    """All dated prices. A kind without a price is an error, not free."""

    path: str
    prices: Sequence[Prices]
    """Entries, the earliest first."""
    prefix: str = "INV"
    """Prefix of each document's number."""
    series: str = "account"
    """`account` if numbers are gap-free in each account, `issuer` if in all together."""
    seller: Mapping[str, str] = field(default_factory=dict)
    buyers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Account → the fields of the buyer in its documents."""
    budgets: Mapping[str, Decimal] = field(default_factory=dict)
    """Account → budget for a month, in the month's currency."""

    @property
    def digest(self) -> str:
        """SHA-256 of all entries and parties: if it changes, charges or documents may change."""
        parties = [self.prefix, self.series, dict(self.seller), dict(self.buyers)]
        if self.budgets:
            parties.append({account: str(amount) for account, amount in self.budgets.items()})
        content = [[prices.digest for prices in self.prices], parties]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def check_unchanged(self, entries: Sequence[Sequence[str]], before_ms: int) -> None:
        """Raises BadInput if an entry that issued documents name has changed.

        `entries`: the first day and digest of each entry that began before `before_ms`, the end of
        the last month with documents.
        """
        now = {iso_day(prices.from_ms): prices.digest for prices in self.in_force(before_ms)}
        known = {str(entry[0]): str(entry[1]) for entry in entries}
        for day in sorted({*known, *now}):
            if known.get(day) != now.get(day):
                raise BadInput(
                    f"{self.path}: prices: {day}: issued documents are made with this entry, and "
                    "it was changed, removed or added since: put it back as it was; a wrong price "
                    "is mended by an adjustment"
                )

    def in_force(self, before_ms: int) -> list[Prices]:
        """Returns the entries that begin before a time."""
        return [prices for prices in self.prices if prices.from_ms < before_ms]

    def terms(self, month: str) -> Prices | None:
        """Returns the entry for a month's last day, or None if all entries begin later."""
        entries = self.in_force(month_ms(next_month(month)))
        return entries[-1] if entries else None


def read_rate_card(path: str, text: str) -> RateCard:
    """Returns the card in `text`; `path` is for errors. Raises BadInput."""
    card = _Section(path, "", read_card_text(path, text))
    # Earlier cards have it; amounts are rounded once in a document, to the currency's minor unit.
    card.optional_word("decimals", _ANY, "a text", "")
    prefix = card.optional_word("number_prefix", _PREFIX, "1 to 12 letters and digits", "INV")
    series = card.optional_word("series", _SERIES, "account or issuer", "account")
    seller = card.section("seller", optional=True).words()
    buyers = card.section("buyers", optional=True)
    fields = {account: buyers.section(account).words() for account in buyers.names}
    limits = card.section("budgets", optional=True)
    budgets = {
        account: Decimal(limits.word(account, _AMOUNT, _AMOUNT_MEANING)) for account in limits.names
    }
    prices = [_read_prices(section) for section in card.sections("prices")]
    card.end()
    for earlier, later in pairwise(prices):
        day = iso_day(later.from_ms)
        if later.from_ms <= earlier.from_ms:
            raise BadInput(f"{path}: prices: {day} is not after the day of the prices before it")
        if later.currency != earlier.currency and not day.endswith("-01"):
            raise BadInput(f"{path}: prices: {day}: the currency changes within a month")
    return RateCard(
        path=path,
        prices=prices,
        prefix=prefix,
        series=series,
        seller=seller,
        buyers=fields,
        budgets=budgets,
    )


class _Section:
    """A mapping of the card; an unread name in it is an error."""

    def __init__(self, path: str, place: str, content: Value) -> None:
        if not isinstance(content, dict):
            raise BadInput(f"{path}: {place.rstrip(': ')}: not a mapping of names")
        self._path, self._place, self._content = path, place, dict(content)

    @property
    def names(self) -> list[str]:
        return list(self._content)

    def word(self, name: str, pattern: re.Pattern[str], meaning: str) -> str:
        value = self._take(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            shown = value if isinstance(value, str) else "it"
            raise self.error(f"{name}: {shown} is not {meaning}")
        return value

    def optional_word(self, name: str, pattern: re.Pattern[str], meaning: str, default: str) -> str:
        return self.word(name, pattern, meaning) if name in self._content else default

    def words(self) -> dict[str, str]:
        return {name: self.word(name, _ANY, "a text") for name in self.names}

    def section(self, name: str, *, optional: bool = False) -> _Section:
        if optional and name not in self._content:
            return _Section(self._path, "", {})
        return _Section(self._path, f"{self._place}{name}: ", self._take(name))

    def sections(self, name: str) -> list[_Section]:
        value = self._take(name)
        if not isinstance(value, list):
            raise self.error(f"{name}: not a list")
        return [_Section(self._path, f"{self._place}{name}: ", each) for each in value]

    def end(self) -> None:
        for name in self._content:
            raise self.error(f"{name} is not known")

    def error(self, message: str) -> BadInput:
        return BadInput(f"{self._path}: {self._place}{message}")

    def _take(self, name: str) -> Value:
        if name not in self._content:
            raise self.error(f"{name} is missing")
        return self._content.pop(name)


def _read_prices(section: _Section) -> Prices:
    from_ms = _read_day(section)
    currency = section.word("currency", _CURRENCY, "three capital letters")
    operations = section.section("per_million_operations")
    first = {kind: _read_price(operations, kind) for kind in OPERATIONS}
    operations.end()
    first[KEPT] = _read_price(section, "per_gigabyte_hour_kept")
    first[REWINDABLE] = _read_price(section, "per_million_rewindable_hours")
    free = section.section("free_each_month", optional=True)
    higher = section.section("tiers", optional=True)
    tiers = {kind: _read_tiers(kind, first[kind], free, higher) for kind in KINDS}
    free.end()
    higher.end()
    discounts = section.section("discount_percent", optional=True)
    percents = {
        account: Decimal(discounts.word(account, _PERCENT, _PERCENT_MEANING))
        for account in discounts.names
    }
    tax_name, tax = _read_tax(section)
    minimum = None
    if "minimum_charge" in section.names:
        minimum = _by_account(section.section("minimum_charge"), "amount", _PRICE, _PRICE_MEANING)
    section.end()
    return Prices(
        from_ms=from_ms,
        currency=currency,
        tiers=tiers,
        discounts={account: percent / 100 for account, percent in percents.items()},
        tax_name=tax_name,
        tax=tax,
        minimum=minimum,
    )


def _read_tax(section: _Section) -> tuple[str, ByAccount | None]:
    if "tax" not in section.names:
        return "", None
    tax = section.section("tax")
    name = tax.word("name", _NAME, "a text that is not empty")
    return name, _by_account(tax, "percent", _PERCENT, _PERCENT_MEANING)


def _by_account(section: _Section, name: str, pattern: re.Pattern[str], meaning: str) -> ByAccount:
    common = Decimal(section.word(name, pattern, meaning))
    own = section.section("accounts", optional=True)
    accounts = {account: Decimal(own.word(account, pattern, meaning)) for account in own.names}
    section.end()
    return ByAccount(common=common, accounts=accounts)


def _read_day(section: _Section) -> int:
    day = section.word("from", _DATE, "a day such as 2026-01-31")
    try:
        return parse_time(day)
    except ValueError:
        raise section.error(f"from: {day} is not a day") from None


def _read_tiers(kind: str, price: Decimal, free: _Section, higher: _Section) -> list[Tier]:
    size, lot = (int(GIGABYTE), GIGABYTE) if kind == KEPT else (1, MILLION)
    tiers = [Tier(0, price / lot)]
    if kind in free.names:
        allowance = int(free.word(kind, _VOLUME, "a whole number")) * size
        tiers = [Tier(0, Decimal(0)), Tier(allowance, price / lot)]
    if kind not in higher.names:
        return tiers
    for step in higher.sections(kind):
        above = int(step.word("above", _VOLUME, "a whole number")) * size
        if above <= tiers[-1].above:
            raise step.error(f"above: {above // size} is not above the tier before it")
        tiers.append(Tier(above, _read_price(step, "price") / lot))
        step.end()
    return tiers


def _read_price(section: _Section, name: str) -> Decimal:
    return Decimal(section.word(name, _PRICE, _PRICE_MEANING))
