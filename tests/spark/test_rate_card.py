from __future__ import annotations

from decimal import Decimal

import pytest
import yaml
from tests.spark.job_runs import RATE_CARD

from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.rate_card import GIGABYTE, KEPT, MILLION, OPERATIONS, read_rate_card

TEXT = RATE_CARD.read_text()


def test_the_shipped_card_is_read_as_any_yaml_reader_reads_it() -> None:
    expected = yaml.load(TEXT, yaml.BaseLoader)
    card = read_rate_card("card", TEXT)
    assert (card.currency, str(card.decimals)) == (expected["currency"], expected["decimals"])
    assert set(expected["per_million_operations"]) == set(OPERATIONS)
    for kind, price in expected["per_million_operations"].items():
        assert card.per_message[kind] * MILLION == Decimal(price)
    assert card.per_byte[KEPT] * GIGABYTE == Decimal(expected["per_gigabyte_hour_kept"])
    assert set(card.per_message) == set(card.per_byte)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("  sent: 0.40", "  sent: -0.40", "line 8"),
        ("  sent: 0.40", "  sent: 1e3", "sent"),
        ("  sent: 0.40", "  sent: 0.1234567", "sent"),
        ("  sent: 0.40", "", "sent is missing"),
        ("  sent: 0.40", "  sent: 0.40\n  sent: 0.50", "twice"),
        ("  sent: 0.40", "  sent: 0.40\n  snet: 0.40", "snet is not known"),
        ("  sent: 0.40", "\tsent: 0.40", "line 8"),
        ("  sent: 0.40", "   sent: 0.40", "line 8"),
        ("currency: USD", "currency: usd", "currency"),
        ("currency: USD", "currency: [USD]", "line 3"),
        ("decimals: 2", "decimals: 7", "decimals"),
        ("decimals: 2", "decimals: 2\ndiscount: 3", "discount is not known"),
        ("per_million_operations:", "operations:", "operations is not known"),
    ],
)
def test_what_is_not_a_rate_card_is_refused(old: str, new: str, word: str) -> None:
    assert old in TEXT
    with pytest.raises(BadInput, match=word) as refused:
        read_rate_card("card.yaml", TEXT.replace(old, new, 1))
    assert str(refused.value).startswith("card.yaml: ")
