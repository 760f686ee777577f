"""Shapes of answers. Times in TypedDicts are RFC 3339 texts, as the service sends them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Attributes: TypeAlias = Mapping[str, Any]


class Counts(TypedDict):
    """How many messages a source holds; receivers and subscriptions have fewer fields."""

    active: int
    inactive: int
    delayed: int
    rewindable: NotRequired[int]
    oldest_active_age_seconds: NotRequired[float | None]


class QueueInfo(TypedDict):
    """A queue's attributes."""

    name: str
    id: str
    message_retention_seconds: int
    visibility_timeout_seconds: int
    receive_wait_seconds: float
    delay_seconds: int
    max_message_bytes: int
    max_messages: int
    rewind_seconds: int
    dead_letter: dict[str, Any] | None
    retry: dict[str, Any] | None
    ordered: bool
    partitions: int
    description: str | None
    labels: dict[str, str]
    created_at: str
    modified_at: str
    counts: NotRequired[Counts]


class Operation(TypedDict):
    """Long work on a queue."""

    id: str
    kind: str
    state: Literal["running", "succeeded", "failed"]
    done: int
    started_at: str
    finished_at: NotRequired[str]
    detail: NotRequired[Any]


class Key(TypedDict):
    """A new access key; the secret is shown this once."""

    access_key_id: str
    secret: str
    account: str
    admin: bool
    created_at: str


class Grant(TypedDict):
    """Another account's permission on a queue."""

    account: str
    permission: str


class Health(TypedDict):
    """The service's own state; `time_scale` is 1 in the cloud."""

    status: str
    version: str
    time: str
    time_scale: float


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
