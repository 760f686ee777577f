"""Planted faults of functions' breakers: opening, counting together, trying a message, closing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.plants import plant

from cirrusmq.invoking import function_batch, function_breaker, probing
from cirrusmq.invoking.function_breaker import FunctionBreaker
from cirrusmq.invoking.worker import _Worker
from cirrusmq.model import breaker


@plant("broken functions", found_by=8_600_000)
def outcomes_of_a_function_open_nothing(patch: pytest.MonkeyPatch) -> None:
    """Outcomes are counted, and nothing follows."""
    patch.setattr(function_breaker, "must_open", lambda *_: False)


@plant("broken functions", found_by=8_600_000)
def a_function_that_fails_at_a_try_is_told_of_it(patch: pytest.MonkeyPatch) -> None:
    """The message of a try is given back like others, and its receive counts."""
    hand_over = function_batch.hand_over
    patch.setattr(probing, "hand_over", lambda *given: hand_over(*given[:-1]))


@plant("broken functions", found_by=8_600_000)
def whoever_finds_it_open_tries(patch: pytest.MonkeyPatch) -> None:
    """A worker does not ask if another one tries a message."""

    def begin(self: Any, hold_ms: int) -> bool:
        self._state = self._state._replace(prober="anybody")
        return True

    def due(self: Any, invoke: Any) -> bool:
        return bool(self.is_open(invoke) and self._core.now_ms() < self.circuit.probe_ms)

    patch.setattr(FunctionBreaker, "begin_try", begin)
    patch.setattr(FunctionBreaker, "waits", due)


@plant("broken functions", found_by=8_600_000)
def a_functions_breaker_never_closes(patch: pytest.MonkeyPatch) -> None:
    """A try that succeeds is taken for one that failed."""
    end = FunctionBreaker.end_try
    patch.setattr(FunctionBreaker, "end_try", lambda self, error: end(self, error or "succeeded"))


@plant("broken functions", found_by=8_600_000)
def a_try_is_of_a_whole_batch(patch: pytest.MonkeyPatch) -> None:
    """An open breaker hands over as many messages as a closed one."""
    patch.setattr(_Worker, "_claim_one", lambda self, *given: self._claim(*given))


@plant("broken functions", found_by=8_600_011)
def outcomes_of_a_function_count_for_good(patch: pytest.MonkeyPatch) -> None:
    """Failures of an earlier minute open it."""
    patch.setattr(breaker, "PARTS", 10**9)
    patch.setattr(function_breaker, "PARTS", 10**9)


@plant("broken functions", found_by=8_600_000)
def waits_between_tries_do_not_grow(patch: pytest.MonkeyPatch) -> None:
    """A message is tried each second."""
    patch.setattr(breaker, "wait_after", lambda failed: breaker.FIRST_WAIT_MS)
