"""Budgets of accounts by the rate card: a month's charges until now, and its forecast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from cirrusmq_reports.currencies import rounded, shown

OPEN, FORECAST, SPENT = "open", "forecast", "spent"
"""Within the budget; exceeded at the month's end by the forecast; exceeded now."""


def budget_states(
    budgets: Mapping[str, Decimal],
    rows: Iterable[Mapping[str, Any]],
    month: str,
    forecast_of: Callable[[Mapping[str, Any]], str],
) -> list[dict[str, Any]]:
    """Returns the budgets of accounts with use in the running month, by account.

    `rows`: rows of `month_so_far`; an account without a row has spent nothing. `forecast_of`:
    returns a row's forecast. All amounts are charges of use, before tax, minimum charge and
    adjustments.
    """
    found = []
    for row in sorted(rows, key=lambda row: (row["account"], row["currency"])):
        amount = budgets.get(row["account"])
        if amount is None:
            continue
        spent, forecast = Decimal(row["so_far"]), Decimal(forecast_of(row))
        state = SPENT if spent > amount else FORECAST if forecast > amount else OPEN
        currency = row["currency"]
        found.append(
            {
                "account": row["account"],
                "month": month,
                "currency": currency,
                "amount": shown(amount, currency),
                "spent": shown(rounded(spent, currency), currency),
                "forecast": shown(forecast, currency),
                "state": state,
            }
        )
    return found


def exceeded(states: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the budgets that are exceeded now or by the forecast."""
    return [each for each in states if each["state"] != OPEN]


def sentence(state: Mapping[str, Any]) -> str:
    """Returns the sentence for a budget that is exceeded now or by the forecast."""
    currency, month = state["currency"], state["month"]
    budget = f"its budget of {state['amount']} {currency}"
    if state["state"] == SPENT:
        return f"{state['account']}: {state['spent']} {currency} of {month} is above {budget}"
    return (
        f"{state['account']}: {month} may end with {state['forecast']} {currency}, above {budget}"
    )
