"""The deployment's secret, which is turned over in some runs, as each environment knows it.

the run                                         |0 s ───────────── 1 min|
turned over      20 min before: in use from then on │      or here: learned from then on
environment A, read            9 min before ............ and again
environment B, idle for long   25 min before ...... and again at its first use
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from botocore.exceptions import ConnectTimeoutError
from tests.simulation.chaos import Chaos
from tests.simulation.stage import Stage
from tests.simulation.wire import Faulty

from cirrusmq.runtime.clock import Clock
from cirrusmq.runtime.secret import (
    SECRET_BYTES,
    USED_AFTER_MS,
    Generations,
    Secret,
    turned_over,
    written,
)
from cirrusmq_local.judging.history import MAX_SKEW_MS, SECRET
from cirrusmq_local.testing import START_MS
from cirrusmq_local.testing.core import GuardedSecret

if TYPE_CHECKING:
    from collections.abc import Sequence

SET_UP_MS = 10_000
"""How long it takes, about, until the actors begin."""
OUTDATED = "outdated"
"""Noted as a fault of calls whose environment could not read the secret for twenty minutes: others
may use a generation that it does not know."""
OLDEST_READING_MS = 25 * 60_000
_ENDPOINT = "https://secretsmanager"
_FIRST = written(Generations(key="5e" * SECRET_BYTES))


class SecretHistory:
    """The secret's documents by the times from which each is read."""

    def __init__(self, stage: Stage, chaos: Chaos, turns_ms: Sequence[int]) -> None:
        """`turns_ms`: when it is turned over, counted from the beginning of the run."""
        self._stage, self._chaos = stage, chaos
        self._documents = [(0, _FIRST)]
        for number, turn_ms in enumerate(turns_ms):
            moment_ms = START_MS + SET_UP_MS + turn_ms
            key = Random(f"generation {number}").randbytes(SECRET_BYTES)
            document = turned_over(self._documents[-1][1], moment_ms, key)
            self._documents.append((moment_ms, document))

    @property
    def turned_ms(self) -> list[int]:
        """When it is turned over."""
        return [moment_ms for moment_ms, _ in self._documents[1:]]

    def known_to(self, reader: Faulty, clock: Clock) -> Secret:
        """The secret of a new environment: it has read it some time ago, or not at all yet."""
        if not self.turned_ms:
            return GuardedSecret(clock, lambda: _FIRST)
        secret = _Known(self, reader, _Past(clock))
        draw = self._chaos.draw(reader.name, -4)
        if draw % 4:
            secret.learn((draw >> 2) % OLDEST_READING_MS)
        return secret

    def read(self, reader: Faulty, ago_ms: int) -> str:
        """The document as it is, which may fail; or as it was long ago."""
        if not ago_ms:
            fate = self._chaos.fate(reader.name_call(), SECRET)
            if fate.fault is not None:
                reader.note(fate.fault, SECRET)
                if fate.fault.startswith("crash"):
                    raise reader.crash()
                raise ConnectTimeoutError(endpoint_url=_ENDPOINT)
        moment_ms = self._stage.now_ms() - ago_ms
        return next(text for since_ms, text in self._documents[::-1] if since_ms <= moment_ms)


class _Known(GuardedSecret):
    """The secret as one environment knows it; a call that uses an outdated one says so."""

    def __init__(self, history: SecretHistory, reader: Faulty, past: _Past) -> None:
        super().__init__(past, self._read_noted)
        self._history, self._reader, self._past = history, reader, past
        self._outdated_ms = 0
        self._failed = False

    def learn(self, ago_ms: int) -> None:
        """Have read it so long ago."""
        self._past.ago_ms = ago_ms
        super().generations()
        self._past.ago_ms = 0

    def generations(self) -> Generations:
        """Both generations."""
        held = super().generations()
        if self._failed and self._past.now_ms() >= self._outdated_ms:
            self._reader.note(OUTDATED, SECRET)
        return held

    def _read_noted(self) -> str:
        self._failed = True
        text = self._history.read(self._reader, self._past.ago_ms)
        self._failed = False
        self._outdated_ms = self._past.now_ms() + USED_AFTER_MS - 2 * MAX_SKEW_MS
        return text


class _Past:
    """The clock of an environment, while it read the secret long ago."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.scale = clock.scale
        self.sleep = clock.sleep
        self.ago_ms = 0

    def now_ms(self) -> int:
        """The environment's time then."""
        return self._clock.now_ms() - self.ago_ms
