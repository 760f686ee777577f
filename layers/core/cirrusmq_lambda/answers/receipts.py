"""Answers to calls that name messages by receipt."""

from __future__ import annotations

from typing import Self

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.timestamps import format_time
from cirrusmq.settlement.settle import Fate
from cirrusmq_lambda.answers.body import Body, Time


class Failure(Body):
    """A receipt that could not be used."""

    receipt: str
    code: str
    detail: str


class DeletedReceipts(Body):
    """Which messages are gone."""

    deleted: list[str]
    failed: list[Failure]

    @classmethod
    def of(cls, fates: Fate) -> Self:
        """The answer by each receipt's result."""
        deleted = [text for text, fate in fates.items() if not isinstance(fate, CirrusMQError)]
        return cls(deleted=deleted, failed=_failures(fates))


class HeldReceipt(Body):
    """When a message is visible again."""

    receipt: str
    visible_at: Time


class ChangedReceipts(Body):
    """Which leases were changed."""

    changed: list[HeldReceipt]
    failed: list[Failure]

    @classmethod
    def of(cls, fates: Fate) -> Self:
        """The answer by each receipt's result."""
        return cls(changed=_held(fates), failed=_failures(fates))


class GivenBackReceipts(Body):
    """Which messages were given back."""

    given_back: list[HeldReceipt]
    failed: list[Failure]

    @classmethod
    def of(cls, fates: Fate) -> Self:
        """The answer by each receipt's result."""
        return cls(given_back=_held(fates), failed=_failures(fates))


def _held(fates: Fate) -> list[HeldReceipt]:
    return [
        HeldReceipt(receipt=text, visible_at=format_time(fate))
        for text, fate in fates.items()
        if not isinstance(fate, CirrusMQError)
    ]


def _failures(fates: Fate) -> list[Failure]:
    return [
        Failure(receipt=text, code=fate.code, detail=fate.detail)
        for text, fate in fates.items()
        if isinstance(fate, CirrusMQError)
    ]
