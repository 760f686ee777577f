"""Results of calls that name messages by receipt, in answers."""

from __future__ import annotations

from typing import Self

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.timestamps import format_time
from cirrusmq.settlement.settle import Results
from cirrusmq_lambda.answers.body import Body, Id, Time


class Failure(Body):
    """A receipt that could not be used."""

    receipt: str
    code: str
    detail: str


class DeletedReceipts(Body):
    """The messages that were deleted, and the receipts that could not be used."""

    deleted: list[str]
    failed: list[Failure]

    @classmethod
    def of(cls, results: Results) -> Self:
        """Returns the answer for the results of the receipts."""
        deleted = [
            text for text, result in results.items() if not isinstance(result, CirrusMQError)
        ]
        return cls(deleted=deleted, failed=_failures(results))


class Replied(Body):
    """A reply that is stored; its message is deleted."""

    id: Id
    replied_at: Time


class HeldReceipt(Body):
    """A message and the time at which it is visible again."""

    receipt: str
    visible_at: Time


class ChangedReceipts(Body):
    """The leases that were changed, and the receipts that could not be used."""

    changed: list[HeldReceipt]
    failed: list[Failure]

    @classmethod
    def of(cls, results: Results) -> Self:
        """Returns the answer for the results of the receipts."""
        return cls(changed=_held(results), failed=_failures(results))


class GivenBackReceipts(Body):
    """The messages that were given back, and the receipts that could not be used."""

    given_back: list[HeldReceipt]
    failed: list[Failure]

    @classmethod
    def of(cls, results: Results) -> Self:
        """Returns the answer for the results of the receipts."""
        return cls(given_back=_held(results), failed=_failures(results))


def _held(results: Results) -> list[HeldReceipt]:
    return [
        HeldReceipt(receipt=text, visible_at=format_time(result))
        for text, result in results.items()
        if not isinstance(result, CirrusMQError)
    ]


def _failures(results: Results) -> list[Failure]:
    return [
        Failure(receipt=text, code=result.code, detail=result.detail)
        for text, result in results.items()
        if isinstance(result, CirrusMQError)
    ]
