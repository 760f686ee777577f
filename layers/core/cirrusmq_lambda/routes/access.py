"""Access keys, and grants between accounts."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.access import keys, permissions
from cirrusmq.access.permissions import Permission, find_queue
from cirrusmq.base.names import ACCOUNT_NAME, check_name
from cirrusmq_lambda.answers.access import (
    GrantPage,
    GrantState,
    KeyPage,
    KeyState,
    NewKey,
    SharedPage,
    SharedQueue,
)
from cirrusmq_lambda.http import Request, Route, following
from cirrusmq_lambda.replies import Created, NoContent, Ok


class KeyRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of `POST /keys`."""

    account: str | UnsetType = UNSET
    admin: bool = False
    description: (
        Annotated[str, Meta(max_length=256, description="a text of at most 256 characters")] | None
    ) = None


class GrantRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of `PUT …/grants/{account}`."""

    permission: Permission


def create_key(request: Request) -> Created[NewKey]:
    """Make an access key."""
    caller, body = request.caller, request.body(KeyRequest)
    account = None if isinstance(body.account, UnsetType) else body.account
    key, secret = keys.create_key_as(
        request.core, caller, account, admin=body.admin, description=body.description
    )
    return Created(NewKey.of(key, secret=secret))


def show_keys(request: Request) -> Ok[KeyPage]:
    """A page of an account's keys, without their secrets."""
    caller = request.caller
    limit, cursor = request.page()
    account = keys.account_named(caller, request.query.get("account"))
    listed, more = keys.list_keys(request.core, account, limit, cursor)
    return Ok(KeyPage(keys=list(map(KeyState.of, listed)), cursor=following(more)))


def remove_key(request: Request) -> NoContent:
    """Delete an access key."""
    keys.delete_key(request.core, request.caller, request.path("id"))
    return NoContent()


def put_grant(request: Request) -> Ok[GrantState]:
    """Let another account use a queue."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    body = request.body(GrantRequest)
    grant = permissions.put_grant(request.core, queue, request.path("account"), body.permission)
    return Ok(GrantState.of(grant))


def show_grant(request: Request) -> Ok[GrantState]:
    """The grant on a queue to another account."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    account = check_name("account", request.path("account"), ACCOUNT_NAME)
    grant = permissions.get_grant(request.core, queue, account)
    return Ok(GrantState.of(grant))


def show_grants(request: Request) -> Ok[GrantPage]:
    """A page of the grants on a queue."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    limit, cursor = request.page()
    listed, more = permissions.page_of_grants(request.core, queue, limit, cursor)
    return Ok(GrantPage(grants=list(map(GrantState.of, listed)), cursor=following(more)))


def remove_grant(request: Request) -> NoContent:
    """Take a grant back."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    account = check_name("account", request.path("account"), ACCOUNT_NAME)
    permissions.delete_grant(request.core, queue, account)
    return NoContent()


def show_granted(request: Request) -> Ok[SharedPage]:
    """A page of the grants of other accounts to the caller's."""
    core, account = request.core, request.caller.account
    limit, cursor = request.page()
    listed, more = permissions.page_of_granted(core, account, limit, cursor)
    return Ok(SharedPage(grants=list(map(SharedQueue.of, listed)), cursor=following(more)))


ROUTES: dict[str, Route] = {
    "POST /keys": create_key,
    "GET /keys": show_keys,
    "DELETE /keys/{id}": remove_key,
    "PUT /queues/{queue}/grants/{account}": put_grant,
    "GET /queues/{queue}/grants/{account}": show_grant,
    "GET /queues/{queue}/grants": show_grants,
    "DELETE /queues/{queue}/grants/{account}": remove_grant,
    "GET /grants": show_granted,
}
