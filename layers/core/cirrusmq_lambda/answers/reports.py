"""Reports as the data pipeline finished them."""

from __future__ import annotations

from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from cirrusmq_lambda.answers.body import Body, Time


class InvoiceLine(Body):
    """The use of one resource, of one kind."""

    resource: str
    kind: str
    count: int
    bytes: int
    amount: Annotated[str, Meta(description="a decimal number")]


class Invoice(Body):
    """A month of an account."""

    month: str
    currency: str
    lines: list[InvoiceLine]
    total: Annotated[str, Meta(description="a decimal number")]


class BillingReport(msgspec.Struct, rename={"start": "from", "end": "to"}, kw_only=True):
    """The newest finished billing of the account."""

    start: Time
    end: Time
    generated_at: Time
    invoices: list[Invoice]

    @classmethod
    def of(cls, report: dict[str, Any]) -> Self:
        """The answer of the pipeline's report, whose invoices stay as they were read."""
        return cls(
            start=report["from"],
            end=report["to"],
            generated_at=report["generated_at"],
            invoices=report["invoices"],
        )


class BacklogReport(msgspec.Struct, kw_only=True):
    """The backlog of the account's queues and subscriptions at one time."""

    at: Time
    generated_at: Time
    resources: list[dict[str, Any]]
