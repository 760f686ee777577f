"""The audit's changes in answers."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.access.audit import AuditEntry
from cirrusmq.base.timestamps import format_time
from cirrusmq_lambda.answers.body import Body, Cursor, Time


class ChangeState(Body):
    """A change, and the key that made it."""

    at: Time
    account: Annotated[
        str | None, Meta(description="of the key; null: no key's, as CloudFormation's")
    ]
    key_id: str | None
    route: Annotated[
        str, Meta(description="the call", examples=["PUT /queues/{queue}", "sqs CreateQueue"])
    ]
    resource: Annotated[
        str, Meta(description="the names in its path", examples=["orders", "news/web"])
    ]
    code: Annotated[str, Meta(description="Ok; or Unavailable: it may have been made")]
    request_id: Annotated[str, Meta(description="as in the log")]

    @classmethod
    def of(cls, entry: AuditEntry) -> Self:
        """Returns the answer for an entry."""
        return cls(
            at=format_time(entry.at_ms),
            account=entry.account or None,
            key_id=entry.key_id or None,
            route=entry.route,
            resource=entry.resource,
            code=entry.code,
            request_id=entry.request_id,
        )


class ChangePage(Body):
    """A page of changes, the newest first; it may be short, and even empty, before the end."""

    changes: list[ChangeState]
    cursor: Cursor | UnsetType = UNSET
