"""Access keys, and grants between accounts."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.access import grants, keys
from cirrusmq.access.grants import Permission, TopicPermission
from cirrusmq.access.key_cache import last_uses
from cirrusmq.access.keys import KeyRights
from cirrusmq.access.permissions import find_queue
from cirrusmq.access.scopes import Scope
from cirrusmq.base.limits import KEY_GRACE_SECONDS, KEY_GRACE_SECONDS_DEFAULT
from cirrusmq.base.names import ACCOUNT_NAME, check_name
from cirrusmq.base.shapes import integer
from cirrusmq.base.timestamps import parse_time
from cirrusmq_lambda.answers.access import (
    GrantPage,
    GrantState,
    KeyPage,
    KeyState,
    NewKey,
    SharedPage,
    SharedResource,
    TopicGrantPage,
    TopicGrantState,
)
from cirrusmq_lambda.http import Request, Route, following
from cirrusmq_lambda.replies import Created, NoContent, Ok
from cirrusmq_lambda.topic_paths import topic_of


class KeyRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of `POST /keys`; without a scope a key may make every call in its account."""

    account: str | UnsetType = UNSET
    admin: bool = False
    scope: Scope | None = None
    manages_keys: bool = False
    signing: bool = False
    expires_at: str | None = None
    description: (
        Annotated[str, Meta(max_length=256, description="a text of at most 256 characters")] | None
    ) = None


class RotateRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of `POST /keys/{id}/rotate`: how long the secret before is good as well."""

    grace_seconds: Annotated[int, integer(KEY_GRACE_SECONDS, " seconds")] = (
        KEY_GRACE_SECONDS_DEFAULT
    )


class GrantRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of `PUT /queues/{queue}/grants/{account}`."""

    permission: Permission


class TopicGrantRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of `PUT /topics/{topic}/grants/{account}`."""

    permission: TopicPermission


def create_key(request: Request) -> Created[NewKey]:
    """Makes an access key; its secret is shown once."""
    caller, body = request.caller, request.body(KeyRequest)
    account = None if isinstance(body.account, UnsetType) else body.account
    expires_ms = None if body.expires_at is None else parse_time("expires_at", body.expires_at)
    rights = KeyRights(
        admin=body.admin,
        scope=body.scope,
        manages_keys=body.manages_keys or body.admin,
        expires_ms=expires_ms,
    )
    key, secret = keys.create_key_as(
        request.core, caller, account, rights, body.description, signing=body.signing
    )
    request.owner = key.account
    return Created(NewKey.of(key, None, secret=secret))


def rotate_key(request: Request) -> Ok[NewKey]:
    """Gives an access key a new secret; its former one is good for a while. Raises KeyNotFound."""
    caller, key_id, body = request.caller, request.path("id"), request.body(RotateRequest)
    key, secret = keys.rotate_key(request.core, caller, key_id, body.grace_seconds)
    request.owner = key.account
    return Ok(NewKey.of(key, last_uses(request.core, [key_id]).get(key_id), secret=secret))


def show_keys(request: Request) -> Ok[KeyPage]:
    """Returns a page of an account's keys, without their secrets."""
    caller = request.caller
    limit, cursor = request.page()
    account = keys.account_named(caller, request.query.get("account"))
    listed, more = keys.list_keys(request.core, account, limit, cursor)
    used = last_uses(request.core, [key.id for key in listed])
    shown = [KeyState.of(key, used.get(key.id)) for key in listed]
    return Ok(KeyPage(keys=shown, cursor=following(more)))


def remove_key(request: Request) -> NoContent:
    """Deletes an access key. Raises InUse, KeyNotFound."""
    request.owner = keys.delete_key(request.core, request.caller, request.path("id"))
    return NoContent()


def put_grant(request: Request) -> Ok[GrantState]:
    """Grants another account a permission on a queue."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    body = request.body(GrantRequest)
    grant = grants.put_grant(request.core, queue, request.path("account"), body.permission)
    return Ok(GrantState.of(grant))


def show_grant(request: Request) -> Ok[GrantState]:
    """Returns the grant on a queue to another account. Raises GrantNotFound."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    account = check_name("account", request.path("account"), ACCOUNT_NAME)
    grant = grants.get_grant(request.core, queue, account)
    return Ok(GrantState.of(grant))


def show_grants(request: Request) -> Ok[GrantPage]:
    """Returns a page of the grants on a queue."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    limit, cursor = request.page()
    listed, more = grants.page_of_grants(request.core, queue, limit, cursor)
    return Ok(GrantPage(grants=list(map(GrantState.of, listed)), cursor=following(more)))


def remove_grant(request: Request) -> NoContent:
    """Removes a grant. Raises GrantNotFound."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    account = check_name("account", request.path("account"), ACCOUNT_NAME)
    grants.delete_grant(request.core, queue, account)
    return NoContent()


def put_topic_grant(request: Request) -> Ok[TopicGrantState]:
    """Grants another account a permission on a topic."""
    topic, body = topic_of(request, "admin"), request.body(TopicGrantRequest)
    grant = grants.put_topic_grant(request.core, topic, request.path("account"), body.permission)
    return Ok(TopicGrantState.of(grant))


def show_topic_grant(request: Request) -> Ok[TopicGrantState]:
    """Returns the grant on a topic to another account. Raises GrantNotFound."""
    topic = topic_of(request, "admin")
    account = check_name("account", request.path("account"), ACCOUNT_NAME)
    return Ok(TopicGrantState.of(grants.get_topic_grant(request.core, topic, account)))


def show_topic_grants(request: Request) -> Ok[TopicGrantPage]:
    """Returns a page of the grants on a topic."""
    topic = topic_of(request, "admin")
    limit, cursor = request.page()
    listed, more = grants.page_of_topic_grants(request.core, topic, limit, cursor)
    return Ok(TopicGrantPage(grants=list(map(TopicGrantState.of, listed)), cursor=following(more)))


def remove_topic_grant(request: Request) -> NoContent:
    """Removes a grant on a topic; subscriptions that the account made are still there. Raises
    GrantNotFound.
    """
    topic = topic_of(request, "admin")
    account = check_name("account", request.path("account"), ACCOUNT_NAME)
    grants.delete_topic_grant(request.core, topic, account)
    return NoContent()


def show_granted(request: Request) -> Ok[SharedPage]:
    """Returns a page of the grants of other accounts to the caller's."""
    core, account = request.core, request.caller.account
    limit, cursor = request.page()
    listed, more = grants.page_of_granted(core, account, limit, cursor)
    return Ok(SharedPage(grants=list(map(SharedResource.of, listed)), cursor=following(more)))


ROUTES: dict[str, Route] = {
    "POST /keys": create_key,
    "GET /keys": show_keys,
    "DELETE /keys/{id}": remove_key,
    "POST /keys/{id}/rotate": rotate_key,
    "PUT /queues/{queue}/grants/{account}": put_grant,
    "GET /queues/{queue}/grants/{account}": show_grant,
    "GET /queues/{queue}/grants": show_grants,
    "DELETE /queues/{queue}/grants/{account}": remove_grant,
    "PUT /topics/{topic}/grants/{account}": put_topic_grant,
    "GET /topics/{topic}/grants/{account}": show_topic_grant,
    "GET /topics/{topic}/grants": show_topic_grants,
    "DELETE /topics/{topic}/grants/{account}": remove_topic_grant,
    "GET /grants": show_granted,
}
