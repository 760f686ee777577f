"""Clients and their accounts."""

from __future__ import annotations

from typing import NamedTuple

ACCOUNT = "acme"
GUEST = "guest"
"""The account that sends by a grant."""


class CallName(NamedTuple):
    """Which call of which step of which actor."""

    actor: str
    step: int
    call: int


class Client:
    """A caller: its steps and calls have names, by which their fates are drawn."""

    def __init__(self, name: str, account: str = ACCOUNT) -> None:
        self.name = name
        self.account = account
        self.step = self._calls = 0

    def begin(self, step: int) -> None:
        """The calls that follow are of this step."""
        if step != self.step:
            self.step, self._calls = step, 0

    def name_call(self) -> CallName:
        """The name of the next call."""
        self._calls += 1
        return CallName(self.name, self.step, self._calls)
