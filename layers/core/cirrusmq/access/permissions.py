"""The queue that a caller names, and its permission there."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UnsetType

from cirrusmq.access.grants import Grant, Permission, granted, in_force
from cirrusmq.access.keys import Caller
from cirrusmq.base.errors import Forbidden, InvalidParameter
from cirrusmq.base.names import QueueRef, parse_queue_ref
from cirrusmq.model.invoke import InvokeInput
from cirrusmq.model.queue import Queue
from cirrusmq.queues.queues import get_queue
from cirrusmq.runtime.core import Core
from cirrusmq.storage.directory import granted_key

Need: TypeAlias = Literal["send", "receive", "info", "admin", "own"]

_ALLOWS: dict[Permission, frozenset[Need]] = {
    "send": frozenset({"send"}),
    "receive": frozenset({"receive"}),
    "send_receive": frozenset({"send", "receive"}),
    "info": frozenset({"info"}),
    "admin": frozenset({"info", "admin"}),
    "full": frozenset({"send", "receive", "info", "admin"}),
}


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
    grant = granted(core, granted_key(caller.account, named.account, named.name), Grant)
    if grant is None or need not in _ALLOWS[grant.permission] or not in_force(core, grant):
        raise Forbidden(f"account {caller.account} has no grant for this on {ref}")
    return named


def check_invoke(core: Core, caller: Caller, given: InvokeInput | UnsetType | None) -> None:
    """Checks that the caller may have messages handed to the function that it names.

    The deployment's own role calls it, so its operator lists the functions and says who may name
    them. Raises Forbidden for a key that is no admin key if these alone may, InvalidParameter for
    an unlisted function.
    """
    if not isinstance(given, InvokeInput):
        return
    if not (caller.admin or core.settings.functions_by_managers):
        raise Forbidden("functions are named with an admin key here (InvokeFunctionsBy)")
    listed = ", ".join(sorted(core.settings.invoke_functions))
    if given.function not in core.settings.invoke_functions:
        allowed = f"must be one of {listed}" if listed else "names a function, and none is listed"
        raise InvalidParameter(
            "invoke.function", f"{allowed}: the deployment's InvokeFunctions lists them"
        )
