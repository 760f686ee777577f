"""Calls on permissions: grants of a queue to other accounts."""

from __future__ import annotations

from typing import Any

from cirrusmq.access import grants
from cirrusmq.access.grants import Grant
from cirrusmq.base.errors import GrantNotFound
from cirrusmq.base.names import parse_queue_ref
from cirrusmq.queues.queues import get_queue
from cirrusmq.storage.directory_keys import granted_place
from cirrusmq_dialects.emq.asking import MANAGE, SHOW, Asked
from cirrusmq_dialects.emq.errors import invalid
from cirrusmq_dialects.emq.structs import of

_NONE, _ADMIN, _PAGE = 0, 8, 1_000
_NATIVE: dict[int, grants.Permission] = {
    1: "send",
    2: "receive",
    3: "send_receive",
    # A receiver may delete, hold and dead-letter as well.
    4: "receive",
    5: "send_receive",
    6: "info",
    8: "admin",
}
_SHOWN = {"send": 1, "receive": 2, "send_receive": 3, "info": 6, "admin": _ADMIN, "full": _ADMIN}


def set_permission(asked: Asked) -> None:
    """Lets an account use a queue; replaces its earlier permission."""
    queue, given = asked.queue(MANAGE), asked.request
    if given.permission == _NONE:
        return revoke_permission(asked)
    if given.permission not in _NATIVE:
        reason = "must be 0 to 6 or 8; 7 has no equal here, 9 to 11 mean two things"
        raise invalid("permission", f"{reason}, not {given.permission}")
    grants.put_grant(asked.core, queue, given.developerId or "", _NATIVE[given.permission])
    return None


def revoke_permission(asked: Asked) -> None:
    """Takes a permission back, if there is one."""
    queue = asked.queue(MANAGE)
    try:
        grants.delete_grant(asked.core, queue, asked.request.developerId or "")
    except GrantNotFound:
        return


def query_permission(asked: Asked) -> Any:
    """The caller's own permission on a queue."""
    core, account, ref = asked.core, asked.caller.account, asked.ref(asked.request.queueName)
    asked.caller.require(SHOW, "queues", ref)
    owner, name = parse_queue_ref(ref, account, "queue")
    if owner == account:
        get_queue(core, owner, name)
        return of.Permission(permission=_ADMIN)
    grant = grants.granted(core, granted_place(account, owner, name), Grant)
    # Without a grant nobody learns if the queue exists.
    if grant is None or get_queue(core, owner, name).id != grant.queue_id:
        return of.Permission(permission=_NONE)
    return of.Permission(permission=_SHOWN[grant.permission])


def query_permission_for_id(asked: Asked) -> Any:
    """The permission of an account on a queue."""
    queue, account = asked.queue(MANAGE), asked.request.developerId or ""
    if account == queue.account:
        return of.Permission(permission=_ADMIN)
    try:
        grant = grants.get_grant(asked.core, queue, account)
    except GrantNotFound:
        return of.Permission(permission=_NONE)
    return of.Permission(permission=_SHOWN[grant.permission])


def list_permissions(asked: Asked) -> Any:
    """The accounts with a permission on a queue, and which."""
    queue = asked.queue(MANAGE)
    found: dict[str, int] = {}
    cursor: str | None = None
    while True:
        page, cursor = grants.page_of_grants(asked.core, queue, _PAGE, cursor)
        found |= {each.account: _SHOWN[each.permission] for each in page}
        if cursor is None:
            return of.Permissions(permissionList=found)
