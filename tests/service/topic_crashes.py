"""Functions of the service that crash at a chosen call of the store, as a killed process does."""

from __future__ import annotations

from typing import Any

from cirrusmq_local.testing import World


class Crash(BaseException):
    """Nothing of the service catches this."""


class Crashes:
    """Ends one run of `role` before its `at`-th call of the store; counts the calls without one.

    The run is lost: its event is not repeated. `push` stands for `push_slow` as well: which of the
    two has a message depends on how its URL answered.
    """

    def __init__(self, world: World, role: str, at: int | None = None) -> None:
        self.calls = 0
        self.crashed_ms: int | None = None
        """When it crashed; None: it made fewer calls."""
        self._world = world
        roles = (role, "push_slow") if role == "push" else (role,)
        self._names = {world._names[each] for each in roles}
        self._at = at
        self._running = False
        self._run = world._run_function
        self._call = world.core.store._call
        world._run_function = self._run_until_crash  # type: ignore[method-assign]
        world.core.store._call = self._count  # type: ignore[method-assign]

    def _run_until_crash(self, name: str, event: Any, chain: tuple[str, ...] = ()) -> Any:
        before, self._running = self._running, name in self._names
        try:
            return self._run(name, event, chain)
        except Crash:
            self.crashed_ms = self._world.clock.now_ms()
            return {"action": "lost"}
        finally:
            self._running = before

    def _count(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        if self._running:
            if self.calls == self._at:
                self.calls += 1
                raise Crash
            self.calls += 1
        return self._call(operation, request)
