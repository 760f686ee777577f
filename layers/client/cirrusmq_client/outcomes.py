"""Results of calls on messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cirrusmq_client.errors import CirrusMQError
from cirrusmq_client.messages import Received


@dataclass(frozen=True, slots=True)
class Sent:
    """The service's answer for one sent message."""

    id: str
    body_md5: str
    sent_at: str
    replaced: str | None = None
    """Id of the message whose place it took, by its `replace` key."""
    reply_by: str | None = None
    """The deadline, if it asks for a reply."""


@dataclass(frozen=True, slots=True)
class Replied:
    """The reply to a request. The body is text or bytes, as it was given."""

    body: str | bytes
    attributes: Mapping[str, str | bytes]
    replied_at: str

    @property
    def text(self) -> str:
        """The body as text. Raises UnicodeDecodeError if it is not UTF-8."""
        return self.body if isinstance(self.body, str) else self.body.decode()


@dataclass(frozen=True, slots=True)
class Published:
    """The service's answer for one published message; `matched` subscriptions get it."""

    id: str
    matched: int
    sent_at: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """Prepared messages that their producer has not decided in time.

    They have neither ids nor times yet.
    """

    handle: str
    messages: list[Received]
    checks: int
    """Number of times that producers were asked, including this one."""
    max_checks: int
    expires_at: str
    """After this time they can only be rolled back."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The messages that a receive by an attribute took. `after`: for the next one."""

    messages: list[Received]
    seen_all: bool
    """True if these calls looked at everything that could be received when they came by."""
    after: str | None


@dataclass(frozen=True, slots=True)
class Failed:
    """A receipt that changed nothing, with the reason."""

    receipt: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for each receipt of a call.

    `done`: receipt -> time at which its message is visible again; None if it is deleted, or if the
    answer with the time was lost.
    """

    done: dict[str, str | None]
    failed: list[Failed]


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A receive that first deleted messages.

    `error`: the reason why nothing was received although the deletes were made, or None.
    """

    messages: list[Received]
    deleted: Outcome
    error: CirrusMQError | None = None
