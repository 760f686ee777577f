"""Budgets: pure, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from tests.spark.job_runs import RATE_CARD

from cirrusmq_reports.budgets import budget_states, exceeded, sentence
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.rate_card import read_rate_card


def row(account: str, so_far: str, forecast: str) -> Mapping[str, Any]:
    return {
        "account": account,
        "currency": "USD",
        "so_far": Decimal(so_far),
        "forecast": forecast,
    }


def test_a_budget_is_open_or_exceeded_by_forecast_or_spending() -> None:
    budgets = {name: Decimal(100) for name in ("edge", "over", "soon", "idle")}
    rows = [
        row("soon", "50", "100.01"),
        row("edge", "100", "100.00"),
        row("none", "900", "900.00"),
        # Half a minor unit above it is above it, whatever is shown.
        row("over", "100.001", "100.00"),
    ]
    states = budget_states(budgets, rows, "2026-11", lambda each: str(each["forecast"]))

    assert [(each["account"], each["state"]) for each in states] == [
        ("edge", "open"),
        ("over", "spent"),
        ("soon", "forecast"),
    ]
    assert [sentence(each) for each in exceeded(states)] == [
        "over: 100.00 USD of 2026-11 is above its budget of 100.00 USD",
        "soon: 2026-11 may end with 100.01 USD, above its budget of 100.00 USD",
    ]


def test_budgets_of_the_card() -> None:
    text = RATE_CARD.read_text()
    with_budget = read_rate_card("card", f"budgets:\n  acme: 250.00\n{text}")
    assert with_budget.budgets == {"acme": Decimal("250.00")}
    # It is shown anew, and no price of an issued invoice is another one.
    without = read_rate_card("card", text)
    assert with_budget.digest != without.digest
    assert [each.digest for each in with_budget.prices] == [each.digest for each in without.prices]
    for wrong in ("0", "-5", "1e3", "0.00"):
        with pytest.raises(BadInput, match="budgets: acme: "):
            read_rate_card("card", f"budgets:\n  acme: {wrong}\n{text}")
