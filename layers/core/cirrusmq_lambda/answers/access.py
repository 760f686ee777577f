"""Access keys, and grants between accounts, in answers."""

from __future__ import annotations

from typing import Annotated, Any, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.access.grants import AnyGrant, Grant, Permission, TopicGrant, TopicPermission
from cirrusmq.access.keys import AccessKey
from cirrusmq.access.scopes import Scope
from cirrusmq.base.timestamps import format_time
from cirrusmq_lambda.answers.body import Body, Cursor, Time


class GrantState(Body):
    """A grant: the permission of another account on a queue."""

    account: str
    permission: Permission

    @classmethod
    def of(cls, grant: Grant) -> Self:
        """Returns the grant as the queue's owner sees it."""
        return cls(account=grant.account, permission=grant.permission)


class GrantPage(Body):
    """A page of the grants on a queue, by account."""

    grants: list[GrantState]
    cursor: Cursor | UnsetType = UNSET


class TopicGrantState(Body):
    """A grant: the permission of another account on a topic."""

    account: str
    permission: TopicPermission

    @classmethod
    def of(cls, grant: TopicGrant) -> Self:
        """Returns the grant as the topic's owner sees it."""
        return cls(account=grant.account, permission=grant.permission)


class TopicGrantPage(Body):
    """A page of the grants on a topic, by account."""

    grants: list[TopicGrantState]
    cursor: Cursor | UnsetType = UNSET


class SharedResource(Body, kw_only=True):
    """A queue or a topic that another account shares with the caller's, as calls address it."""

    queue: str | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    account: str
    permission: str

    @classmethod
    def of(cls, grant: AnyGrant) -> Self:
        """Returns the grant as the account that may use the resource sees it."""
        return cls(
            queue=UNSET if grant.queue is None else f"{grant.owner}:{grant.queue}",
            topic=UNSET if grant.topic is None else f"{grant.owner}:{grant.topic}",
            account=grant.owner,
            permission=grant.permission,
        )


class SharedPage(Body):
    """A page of the grants of other accounts to the caller's."""

    grants: list[SharedResource]
    cursor: Cursor | UnsetType = UNSET


class KeyState(Body):
    """An access key, without its secret."""

    access_key_id: str
    account: str
    admin: bool
    scope: Annotated[Scope | None, Meta(description="null: every call in its account")]
    manages_keys: Annotated[bool, Meta(description="makes, rotates and deletes keys")]
    signing: Annotated[
        bool, Meta(description="its secret may sign calls of other services' SDKs, too")
    ]
    description: str | None
    created_at: Time
    expires_at: Time | None
    last_used_at: Annotated[str | None, Meta(description="the beginning of the day, in UTC")]
    earlier_secret_until: Annotated[
        str | None, Meta(description="end of the time in which the old secret is valid")
    ]

    @classmethod
    def of(cls, key: AccessKey, used_ms: int | None, **more: Any) -> Self:
        """Returns the answer for a key. `more`: further fields of a subclass."""
        return cls(
            access_key_id=key.id,
            account=key.account,
            admin=key.admin,
            scope=key.scope,
            manages_keys=key.admin or key.manages_keys is not False,
            signing=key.signing,
            description=key.description,
            created_at=format_time(key.created_ms),
            expires_at=_time(key.expires_ms),
            last_used_at=_time(used_ms),
            earlier_secret_until=_time(key.previous_until_ms or None),
            **more,
        )


class NewKey(KeyState):
    """An access key with a new secret, which is shown here alone."""

    secret: str


class KeyPage(Body):
    """A page of an account's keys."""

    keys: list[KeyState]
    cursor: Cursor | UnsetType = UNSET


def _time(time_ms: int | None) -> str | None:
    return None if time_ms is None else format_time(time_ms)
