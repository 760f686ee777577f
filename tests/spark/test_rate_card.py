from __future__ import annotations

from decimal import Decimal

import pytest
import yaml
from tests.spark.job_runs import RATE_CARD

from cirrusmq_reports.card_text import read_card_text
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.rate_card import GIGABYTE, KEPT, MILLION, OPERATIONS, Tier, read_rate_card
from cirrusmq_reports.times import parse_time

TEXT = RATE_CARD.read_text()
FIRST = TEXT[: TEXT.index("  - from")].count("\n") + 1
"""The line of the first entry."""
OPTIONS = """
    free_each_month:
      sent: 1000000
      kept: 5
    tiers:
      sent:
        - above: 3000000
          price: 0.30
        - above: 9000000
          price: 0.25
    discount_percent:
      acme: 12.5
"""


def dated(day: str, **changes: str) -> str:
    """The shipped prices once more, from another day on."""
    entry = TEXT[TEXT.index("  - from") :].replace("2020-01-01", day)
    for old, new in changes.items():
        entry = entry.replace(old, new)
    return entry


def test_the_shipped_card_is_read_as_any_yaml_reader_reads_it() -> None:
    text = f"{TEXT}{OPTIONS}{dated('2026-12-01')}"
    expected = yaml.load(text, yaml.BaseLoader)
    assert read_card_text("card", text) == expected
    card = read_rate_card("card", TEXT)
    (prices,) = card.prices
    listed = expected["prices"][0]
    assert prices.currency == listed["currency"]
    assert set(listed["per_million_operations"]) == set(OPERATIONS)
    for kind, price in listed["per_million_operations"].items():
        assert [(0, Decimal(price))] == [(t.above, t.price * MILLION) for t in prices.tiers[kind]]
    assert prices.tiers[KEPT][0].price * GIGABYTE == Decimal(listed["per_gigabyte_hour_kept"])


def test_prices_have_days_tiers_allowances_and_discounts() -> None:
    card = read_rate_card("card", f"{TEXT}{OPTIONS}{dated('2026-12-01', USD='CNY')}")
    first, second = card.prices
    assert second.from_ms == parse_time("2026-12-01")
    assert (first.currency, second.currency) == ("USD", "CNY")
    assert first.tiers["sent"] == [
        Tier(0, Decimal(0)),
        Tier(1_000_000, Decimal("0.40") / MILLION),
        Tier(3_000_000, Decimal("0.30") / MILLION),
        Tier(9_000_000, Decimal("0.25") / MILLION),
    ]
    assert first.tiers[KEPT][1] == Tier(5 * 10**9, Decimal("0.0005") / GIGABYTE)
    assert (first.discounts, second.discounts) == ({"acme": Decimal("0.125")}, {})


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("      sent: 0.40", "      sent: -0.40", "sent: -0.40 is not a price"),
        ("      sent: 0.40", "      sent: 1e3", "sent"),
        ("      sent: 0.40", "      sent: 0.1234567", "sent"),
        ("      sent: 0.40", "", "sent is missing"),
        ("      sent: 0.40", "      sent: 0.40\n      sent: 0.50", "twice"),
        ("      sent: 0.40", "      sent: 0.40\n      snet: 0.40", "snet is not known"),
        ("      sent: 0.40", "\tsent: 0.40", f"line {FIRST + 4}: nothing follows"),
        ("      sent: 0.40", "       sent: 0.40", f"line {FIRST + 6}: does not belong here"),
        ("    currency: USD", "    currency: usd", "currency"),
        ("    currency: USD", "    currency: [USD]", f"line {FIRST + 1}: "),
        ("prices:", "discount: 3\nprices:", "discount is not known"),
        ("prices:", "series: mine\nprices:", "series: mine is not account or issuer"),
        ("prices:", 'number_prefix: "a b"\nprices:', "number_prefix"),
        ("per_million_operations:", "operations:", "per_million_operations is missing"),
        ("from: 2020-01-01", "from: 2020-13-01", "2020-13-01 is not a day"),
        ("from: 2020-01-01", "from: monday", "monday is not a day"),
        ("  - from: 2020-01-01\n    currency", "  currency", f"line {FIRST + 3}: does not belong"),
        ("prices:", "pricing:", "prices is missing"),
    ],
)
def test_an_invalid_rate_card_is_refused(old: str, new: str, word: str) -> None:
    assert old in TEXT
    with pytest.raises(BadInput, match=word) as refused:
        read_rate_card("card.yaml", TEXT.replace(old, new, 1))
    assert str(refused.value).startswith("card.yaml: ")


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (dated("2020-01-01"), "2020-01-01 is not after"),
        (dated("2020-03-15", USD="CNY"), "the currency changes within a month"),
        ("    free_each_month:\n      snet: 5\n", "snet is not known"),
        ("    tiers:\n      sent:\n        - above: 0\n          price: 1\n", "whole number"),
        (
            "    free_each_month:\n      sent: 5\n"
            "    tiers:\n      sent:\n        - above: 5\n          price: 1\n",
            "5 is not above the tier before it",
        ),
        ("    tiers:\n      sent: 5\n", "not a list"),
        ("    discount_percent:\n      acme: 101\n", "101 is not a percentage"),
        ("    discount_percent: 5\n", "not a mapping"),
        ("    discount_percent:\n", "nothing follows"),
        ("    tax:\n      percent: 5\n", "tax: name is missing"),
        ("    tax:\n      name: VAT\n      percent: 101\n", "percent: 101 is not a percentage"),
        ("    minimum_charge: 5\n", "minimum_charge: not a mapping"),
        ("    minimum_charge:\n      amount: -5\n", "amount: -5 is not a price"),
        ("    minimum_charge:\n      amount: 5\n      of: x\n", "of is not known"),
    ],
)
def test_an_invalid_addition_to_a_card_is_refused(more: str, word: str) -> None:
    with pytest.raises(BadInput, match=word):
        read_rate_card("card.yaml", TEXT + more)
