"""Reports of the data pipeline in answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq_lambda.answers.body import Body, Cursor, Time


class InvoiceLine(Body):
    """The use of one resource, of one kind."""

    resource: str
    kind: str
    correction: Annotated[
        str | None, Meta(description="the closed month that the use is of; null: the invoice's own")
    ]
    count: int
    bytes: int
    amount: Annotated[str, Meta(description="a decimal number, exact")]


class Invoice(Body):
    """A month of an account, in one currency: a document, or charges that are not issued yet."""

    month: str
    currency: str
    closed: Annotated[bool, Meta(description="nothing of it changes any more")]
    closes_at: Time
    forecast: Annotated[
        str | None,
        Meta(description="of the running month: its total if each day is like the last one"),
    ]
    lines: Annotated[
        list[InvoiceLine],
        Meta(description="those on this page; the pages before and after it have more"),
    ]
    total: Annotated[
        str, Meta(description="a decimal number: the sum of all lines, in whole minor units")
    ]
    number: Annotated[str | None, Meta(description="of the document; null: not issued yet")]
    type: Literal["invoice", "credit_note", "debit_note"]
    refers_to: Annotated[str | None, Meta(description="the number of a note's invoice")]


_WITHOUT_NUMBER = {"number": None, "type": "invoice", "refers_to": None}


class BillingGap(msgspec.Struct, rename={"start": "from", "end": "to"}, kw_only=True):
    """A time whose use is in no invoice, for no export shows it."""

    start: Time
    end: Time


class UnusualHour(Body):
    """An hour of the last day with far more use than any of the four weeks before."""

    hour: Time
    resource: str
    kind: str
    count: int
    usual_most: Annotated[int, Meta(description="of the busiest hour before")]


class BudgetOfMonth(Body):
    """Charges of use in the running month, before tax: until now, and the forecast."""

    month: str
    currency: str
    amount: Annotated[str, Meta(description="a decimal number: the budget")]
    spent: Annotated[str, Meta(description="a decimal number: so far")]
    forecast: Annotated[
        str, Meta(description="a decimal number: at the month's end, if each day is like the last")
    ]
    state: Annotated[
        Literal["open", "forecast", "spent"],
        Meta(description="within it; exceeded by the forecast; exceeded now"),
    ]


class BillingReport(msgspec.Struct, rename={"start": "from", "end": "to"}, kw_only=True):
    """The newest finished billing of the account."""

    start: Time
    end: Time
    generated_at: Time
    time_zone: Annotated[Literal["UTC"], Meta(description="of days and months")]
    gaps: list[BillingGap]
    invoices: list[Invoice]
    unusual: list[UnusualHour]
    budget: (
        Annotated[BudgetOfMonth, Meta(description="absent where the account has none")] | UnsetType
    ) = UNSET
    cursor: Cursor | UnsetType = UNSET

    @classmethod
    def of(cls, report: dict[str, Any], cursor: str | UnsetType = UNSET) -> Self:
        """Returns the answer for the pipeline's report; its invoices are not converted."""
        # Invoices by an earlier release have no numbers.
        invoices: list[Any] = [{**_WITHOUT_NUMBER, **each} for each in report["invoices"]]
        return cls(
            start=report["from"],
            end=report["to"],
            generated_at=report["generated_at"],
            time_zone=report["time_zone"],
            gaps=[BillingGap(start=gap["from"], end=gap["to"]) for gap in report["gaps"]],
            invoices=invoices,
            unusual=report["unusual"],
            budget=report.get("budget", UNSET),
            cursor=cursor,
        )


class BacklogReport(msgspec.Struct, kw_only=True):
    """The backlog of the account's queues and subscriptions at one time."""

    at: Time
    generated_at: Time
    resources: list[dict[str, Any]]
    labels: Annotated[
        list[dict[str, Any]],
        Meta(description="the same figures of all resources together that have a label"),
    ]
    top: Annotated[
        dict[str, Any],
        Meta(description="of each figure: the resources and labels that have most, ten at most"),
    ]
