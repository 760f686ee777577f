"""The queue that a caller names, and its permission there; grants between accounts."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import UnsetType

from cirrusmq.access.keys import Caller
from cirrusmq.base.errors import Forbidden, GrantNotFound, InvalidParameter, QueueNotFound
from cirrusmq.base.names import ACCOUNT_NAME, QueueRef, check_name, parse_queue_ref
from cirrusmq.model.invoke import InvokeInput
from cirrusmq.model.queue import Queue
from cirrusmq.queues.queues import get_queue
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory
from cirrusmq.storage.directory_keys import grant_place, granted_place
from cirrusmq.storage.pages import read_page

Permission: TypeAlias = Literal["send", "receive", "send_receive", "info", "admin", "full"]
Need: TypeAlias = Literal["send", "receive", "info", "admin", "own"]

_ALLOWS: dict[Permission, frozenset[Need]] = {
    "send": frozenset({"send"}),
    "receive": frozenset({"receive"}),
    "send_receive": frozenset({"send", "receive"}),
    "info": frozenset({"info"}),
    "admin": frozenset({"info", "admin"}),
    "full": frozenset({"send", "receive", "info", "admin"}),
}


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The permission of an account on another account's queue."""

    owner: str
    queue: str
    queue_id: str
    account: str
    permission: Permission


def find_queue(core: Core, caller: Caller, ref: str, need: Need) -> Queue:
    """The queue that the caller names `ref`, if it may do `need` there.

    Raises Forbidden for another account's queue without a grant, whether it exists or not.
    """
    account, name = authorize(core, caller, ref, need)
    return get_queue(core, account, name)


def authorize(core: Core, caller: Caller, ref: str, need: Need) -> QueueRef:
    """As `find_queue`, for callers that read the queue themselves."""
    named = parse_queue_ref(ref, caller.account)
    if named.account == caller.account:
        return named
    place = granted_place(caller.account, named.account, named.name)
    grant = directory.read_cached(core, place, Grant)
    if grant is None or need not in _ALLOWS[grant.permission]:
        raise Forbidden(f"account {caller.account} has no grant for this on {ref}")
    try:
        queue = get_queue(core, named.account, named.name)
    except QueueNotFound as error:
        raise Forbidden(f"account {caller.account} has no grant for this on {ref}") from error
    if queue.id != grant.queue_id:  # granted on an earlier queue of that name
        raise Forbidden(f"account {caller.account} has no grant for this on {ref}")
    return named


def check_invoke(core: Core, caller: Caller, given: InvokeInput | UnsetType | None) -> None:
    """Whether the caller may have messages handed to the function that it names.

    The deployment's own role calls it, so its operator lists the functions and gives out the keys:
    Forbidden to any key that is no admin key, InvalidParameter for a function that is not listed.
    """
    if not isinstance(given, InvokeInput):
        return
    if not caller.admin:
        raise Forbidden("invoke is set with an admin key: the deployment's own role calls it")
    listed = ", ".join(sorted(core.settings.invoke_functions))
    if given.function not in core.settings.invoke_functions:
        allowed = f"must be one of {listed}" if listed else "names a function, and none is listed"
        raise InvalidParameter(
            "invoke.function", f"{allowed}: the deployment's InvokeFunctions lists them"
        )


def put_grant(core: Core, queue: Queue, account: str, permission: Permission) -> Grant:
    """Let an account use a queue; replaces what was granted before."""
    check_name("account", account, ACCOUNT_NAME)
    if account == queue.account:
        raise InvalidParameter("account", "must be another account; the owner has every permission")
    grant = Grant(
        owner=queue.account,
        queue=queue.name,
        queue_id=queue.id,
        account=account,
        permission=permission,
    )
    place = granted_place(account, queue.account, queue.name)
    core.store.transact(
        [
            directory.put(core, grant_place(queue.id, account), grant),
            directory.put(core, place, grant),
        ]
    )
    core.cache.turn_over(place)
    return grant


def get_grant(core: Core, queue: Queue, account: str) -> Grant:
    """The grant of an account on a queue; GrantNotFound."""
    found = directory.read(core, grant_place(queue.id, account), Grant)
    if found is None:
        raise GrantNotFound
    return found.value


def delete_grant(core: Core, queue: Queue, account: str) -> None:
    """Take a grant back."""
    get_grant(core, queue, account)
    place = granted_place(account, queue.account, queue.name)
    core.store.transact(
        [
            directory.delete(core, grant_place(queue.id, account)),
            directory.delete(core, place),
        ]
    )
    core.cache.turn_over(place)


def page_of_grants(
    core: Core, queue: Queue, limit: int, cursor: str | None
) -> tuple[list[Grant], str | None]:
    """A page of the grants on a queue, by account."""
    place = (grant_place(queue.id, "").pk, "grant#")
    return read_page(core, ("grants", queue.id), place, limit, cursor, Grant)


def page_of_granted(
    core: Core, account: str, limit: int, cursor: str | None
) -> tuple[list[Grant], str | None]:
    """A page of the grants that other accounts gave to this one."""
    place = (granted_place(account, "", "").pk, "")
    return read_page(
        core,
        ("granted", account),
        place,
        limit,
        cursor,
        Grant,
        lambda grant: _in_force(core, grant),
    )


def _in_force(core: Core, grant: Grant) -> bool:
    """Whether the queue still exists: one that was made anew under its name is another."""
    try:
        return get_queue(core, grant.owner, grant.queue).id == grant.queue_id
    except QueueNotFound:
        return False
