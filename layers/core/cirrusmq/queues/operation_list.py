"""The list of an account's operations.

Their keys begin with the time at which they began, so that the list is a range of existing keys: it
needs no index, and no write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cirrusmq.base import limits, ulid
from cirrusmq.queues.operations import Operation, first_id
from cirrusmq.runtime.core import Core
from cirrusmq.storage.directory import operation_key
from cirrusmq.storage.newest import Span, read_newest


def page_of_operations(
    core: Core,
    account: str,
    chosen: Mapping[str, str],
    shows: Callable[[Operation], bool],
    limit: int,
    cursor: str | None,
) -> tuple[list[Operation], str | None]:
    """Returns a page of the account's operations of the last seven days, the newest first.

    chosen: values that `state`, `kind`, `queue` or `topic` must have. shows: returns True if the
    caller may see an operation. Operations of old releases, whose ids have no time, are left out.
    """

    def is_wanted(operation: Operation) -> bool:
        wanted = all(getattr(operation, name) == value for name, value in chosen.items())
        return wanted and shows(operation)

    since_ms = core.now_ms() - limits.OPERATION_SECONDS * 1_000
    pk, first = operation_key(account, first_id(since_ms + 1))
    last = operation_key(account, first_id(ulid.LAST_MS)).sk
    listing = ("operations", account, *(f"{name}={chosen[name]}" for name in sorted(chosen)))
    span = Span(pk, first, last)
    return read_newest(core, listing, span, limit, cursor, Operation, is_wanted)
