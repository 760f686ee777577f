"""Logs calls in dialects: never a body, a signature or a secret."""

from __future__ import annotations

from cirrusmq.access.keys import Caller
from cirrusmq.base.errors import CirrusMQError, Unavailable
from cirrusmq_dialects.calling import Call
from cirrusmq_lambda import audit, observability


class Progress:
    """How far a call is, for the audit's line."""

    action = ""
    resource = ""
    caller: Caller | None = None
    owner: str | None = None
    """The resource's account, if it is not the caller's."""
    key_id: str | None = None
    """The key id that the call claims, be it refused or not."""


def told(call: Call, action: str, error: Exception) -> CirrusMQError:
    """Returns the error to show to the caller. Logs an unexpected error."""
    if isinstance(error, CirrusMQError):
        return error
    fields = {"request_id": call.id, "action": action}
    observability.logger.error("unexpected", exc_info=error, extra=fields)
    return Unavailable("Something went wrong; the call is in the log.")


def note(call: Call, dialect: str, progress: Progress, code: str) -> None:
    """Writes a call that changes something, or is refused for its key, into the audit.

    Its route is the action with its dialect: `sqs CreateQueue`. One that was refused, or may have
    failed half-way, is in the log alone: its code is the other service's.
    """
    caller = progress.caller
    kept = caller and code == "Ok" and call.left_seconds() * 1_000 > audit.ITEM_MS
    audit.record(
        call.core,
        request_id=call.id,
        route=f"{dialect} {progress.action}".strip(),
        name=progress.resource,
        code=code,
        account=caller.account if caller else None,
        key_id=caller.key_id if caller else audit.claimed_key_id(f"{progress.key_id}:"),
        source=call.source,
        kept_by={caller.account, progress.owner or caller.account} if caller and kept else (),
    )
