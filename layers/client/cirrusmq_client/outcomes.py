"""The results of calls on messages: values made from answers."""

from __future__ import annotations

from dataclasses import dataclass

from cirrusmq_client.errors import CirrusMQError
from cirrusmq_client.messages import Received


@dataclass(frozen=True, slots=True)
class Sent:
    """The service's answer for one sent message."""

    id: str
    body_md5: str
    sent_at: str


@dataclass(frozen=True, slots=True)
class Published:
    """The service's answer for one published message; `matched` subscriptions get it."""

    id: str
    matched: int
    sent_at: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """Prepared messages that their producer did not decide in time.

    They have neither ids nor times yet.
    """

    handle: str
    messages: list[Received]
    checks: int
    """How often producers were asked, this time included."""
    max_checks: int
    expires_at: str
    """From then on they can only be rolled back."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The messages that a receive by an attribute took. `after`: for the next one."""

    messages: list[Received]
    seen_all: bool
    """Whether these calls looked at everything that could be received when they came by."""
    after: str | None


@dataclass(frozen=True, slots=True)
class Failed:
    """A receipt that changed nothing, and why."""

    receipt: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for each receipt of a call.

    `done` maps a receipt to the time at which its message is visible again, None where it never
    is, or where only a lost answer told it.
    """

    done: dict[str, str | None]
    failed: list[Failed]


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A receive that first deleted messages.

    `error`: why nothing was received, though the deletes were made.
    """

    messages: list[Received]
    deleted: Outcome
    error: CirrusMQError | None = None
