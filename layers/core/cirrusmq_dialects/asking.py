"""A request whose caller is known: what the requests of several dialects have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from cirrusmq.access.keys import Caller
from cirrusmq.access.scopes import RIGHTS, Right
from cirrusmq.base.errors import Forbidden
from cirrusmq.runtime.core import Core
from cirrusmq_dialects.calling import Call

SHOW: tuple[Right, ...] = RIGHTS
SEND: tuple[Right, ...] = ("send",)
RECEIVE: tuple[Right, ...] = ("receive",)
MANAGE: tuple[Right, ...] = ("manage",)
_PAGE = 1_000
"""Elements of a listing that are read together."""
T = TypeVar("T")


class CallerAsked(msgspec.Struct, frozen=True, kw_only=True):
    """A call with its caller."""

    call: Call
    caller: Caller

    @property
    def core(self) -> Core:
        """The core that it is asked of."""
        return self.call.core

    def require_whole_account(self) -> None:
        """Raises Forbidden for a key that may not see everything in the account."""
        scope = self.caller.scope
        if scope is not None and scope.manage != "all":
            raise Forbidden("the access key's scope lacks manage on all queues and topics")


def all_of(page: Callable[..., tuple[list[T], str | None]], *listing: object) -> list[T]:
    """Returns the elements of all pages of a listing of the core.

    listing: what `page` takes before the number of elements and the cursor.
    """
    found, cursor = page(*listing, _PAGE, None)
    while cursor is not None:
        more, cursor = page(*listing, _PAGE, cursor)
        found = [*found, *more]
    return found
