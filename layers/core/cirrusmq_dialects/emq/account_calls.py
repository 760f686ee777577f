"""Calls on accounts: their permissions on queues, their quotas; and calls of all services."""

from __future__ import annotations

import contextlib

from cirrusmq import __version__
from cirrusmq.access import grants
from cirrusmq.access.grants import Grant
from cirrusmq.base.errors import GrantNotFound
from cirrusmq.base.limits import QUEUES_PER_ACCOUNT
from cirrusmq.base.names import ACCOUNT_NAME, check_name, parse_queue_ref
from cirrusmq.model.queue import Queue
from cirrusmq.queues.queues import get_queue, list_queues
from cirrusmq.storage.directory import granted_key
from cirrusmq_dialects.asking import MANAGE, SHOW, all_of
from cirrusmq_dialects.emq.asking import Asked, Result
from cirrusmq_dialects.emq.errors import INVALID_ACTION, PERMISSION_DENIED, EmqError, invalid

_NONE, _ADMIN = 0, 8
_NATIVE: dict[int, grants.Permission] = {
    **{1: "send", 2: "receive", 3: "send_receive", 6: "info", _ADMIN: "admin"},
    **{4: "receive", 5: "send_receive"},  # a receiver may delete, hold and dead-letter as well
}
_SHOWN = {"send": 1, "receive": 2, "send_receive": 3, "info": 6, "admin": _ADMIN, "full": _ADMIN}


def set_permission(asked: Asked) -> None:
    """Lets an account use a queue; replaces its earlier permission."""
    permission = asked.request.permission
    if permission == _NONE:
        return revoke_permission(asked)
    queue, account = _named(asked)
    if permission not in _NATIVE:
        reason = "must be 0 to 6 or 8; 7 has no equal here, 9 to 11 mean two things"
        raise invalid("permission", f"{reason}, not {permission}")
    grants.put_grant(asked.core, queue, account, _NATIVE[permission])
    return None


def revoke_permission(asked: Asked) -> None:
    """Takes a permission back, if there is one."""
    queue, account = _named(asked)
    with contextlib.suppress(GrantNotFound):
        grants.delete_grant(asked.core, queue, account)


def query_permission(asked: Asked) -> Result:
    """The caller's own permission on a queue."""
    core, account, ref = asked.core, asked.caller.account, asked.ref(asked.request.queueName)
    asked.caller.require(SHOW, "queues", ref)
    owner, name = parse_queue_ref(ref, account, "queue")
    if owner == account:
        get_queue(core, owner, name)
        return {"permission": _ADMIN}
    grant = grants.granted(core, granted_key(account, owner, name), Grant)
    # Without a grant nobody learns if the queue exists.
    if grant is None or get_queue(core, owner, name).id != grant.queue_id:
        return {"permission": _NONE}
    return {"permission": _SHOWN[grant.permission]}


def query_permission_for_id(asked: Asked) -> Result:
    """The permission of an account on a queue."""
    queue, account = _named(asked)
    if account == queue.account:
        return {"permission": _ADMIN}
    with contextlib.suppress(GrantNotFound):
        return {"permission": _SHOWN[grants.get_grant(asked.core, queue, account).permission]}
    return {"permission": _NONE}


def list_permissions(asked: Asked) -> Result:
    """The accounts with a permission on a queue, and which."""
    found = all_of(grants.page_of_grants, asked.core, asked.queue(MANAGE))
    return {"permissionList": {each.account: _SHOWN[each.permission] for each in found}}


def _named(asked: Asked) -> tuple[Queue, str]:
    """Returns the queue and the account that the request names. Raises InvalidParameter."""
    queue = asked.queue(MANAGE)
    return queue, check_name("account", asked.request.developerId or "", ACCOUNT_NAME)


def get_service_version(asked: Asked) -> Result:
    """The version of this service."""
    major, minor, revision = map(int, __version__.split(".")[:3])
    numbers = {"major": major, "minor": minor, "revision": revision}
    return {**numbers, "date": "", "details": f"CirrusMQ {__version__}"}


def valid_client_version(asked: Asked) -> None:
    """Every client's version is good."""


def refuse(asked: Asked) -> None:
    """Refuses what has no place here."""
    reason = "is not supported: alarms and reports are the deployment's, metrics are at GET /rates"
    raise EmqError(INVALID_ACTION, f"{asked.progress.action} {reason}")


def get_user_quota(asked: Asked) -> Result:
    """The limits of the caller's account: requests a second, if the deployment has any; queues."""
    rate = asked.core.settings.account_requests_per_second or None
    return _quota(asked, rate, rate, QUEUES_PER_ACCOUNT)


def get_user_used_quota(asked: Asked) -> Result:
    """The queues of the caller's account, and the sums of their rates."""
    asked.require_whole_account()
    held = [each.attributes for each in all_of(list_queues, asked.core, _own(asked), "")]
    reads = sum(each.receive_rate or 0 for each in held)
    writes = sum(each.send_rate or 0 for each in held)
    return _quota(asked, reads, writes, len(held))


def _quota(asked: Asked, reads: int | None, writes: int | None, queues: int) -> Result:
    quota = {"throughput": {"readQps": reads, "writeQps": writes}, "queueNumber": queues}
    return {"developerId": _own(asked), "userQuota": quota}


def _own(asked: Asked) -> str:
    """Returns the caller's account. Raises EmqError if the request names another one."""
    account = asked.caller.account
    if asked.request.developerId not in (None, "", account):
        raise EmqError(PERMISSION_DENIED, "developerId: must be the caller's account")
    return account
