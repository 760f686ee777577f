"""Access keys, and grants between accounts."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq import access, keys
from cirrusmq.access import Permission, find_queue
from cirrusmq.names import ACCOUNT_NAME, check_name
from cirrusmq_lambda.http import Answer, Request, Route, answer


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


def create_key(request: Request) -> Answer:
    """Make an access key."""
    caller, body = request.caller, request.body(KeyRequest)
    account = None if isinstance(body.account, UnsetType) else body.account
    created = keys.create_key_as(
        request.core, caller, account, admin=body.admin, description=body.description
    )
    return answer(201, created)


def show_keys(request: Request) -> Answer:
    """A page of an account's keys, without their secrets."""
    caller = request.caller
    query, limit, cursor = request.page("account")
    account = keys.account_named(caller, query.get("account"))
    listed, following = keys.list_keys(request.core, account, limit, cursor)
    page: dict[str, object] = {"keys": [key.show() for key in listed]}
    return answer(200, page | ({"cursor": following} if following else {}))


def remove_key(request: Request) -> Answer:
    """Delete an access key."""
    keys.delete_key(request.core, request.caller, request.path("id"))
    return answer(204)


def put_grant(request: Request) -> Answer:
    """Let another account use a queue."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    body = request.body(GrantRequest)
    grant = access.put_grant(request.core, queue, request.path("account"), body.permission)
    return answer(200, {"account": grant.account, "permission": grant.permission})


def show_grant(request: Request) -> Answer:
    """What another account may do with a queue."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    account = check_name("account", request.path("account"), ACCOUNT_NAME)
    grant = access.get_grant(request.core, queue, account)
    return answer(200, {"account": grant.account, "permission": grant.permission})


def show_grants(request: Request) -> Answer:
    """All grants on a queue."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    return answer(200, {"grants": access.list_grants(request.core, queue)})


def remove_grant(request: Request) -> Answer:
    """Take a grant back."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    account = check_name("account", request.path("account"), ACCOUNT_NAME)
    access.delete_grant(request.core, queue, account)
    return answer(204)


def show_granted(request: Request) -> Answer:
    """What other accounts share with the caller's."""
    request.query()
    return answer(200, {"grants": access.list_granted(request.core, request.caller.account)})


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
