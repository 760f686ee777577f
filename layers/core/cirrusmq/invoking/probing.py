"""The message that an open breaker tries: which one, and what follows.

A message that fails for its own sake would keep the breaker open, if it were always the first. In a
source without groups a message that is given back goes behind others. Elsewhere its group or its
priority keeps its place, so one of ten is drawn.
"""

from __future__ import annotations

from cirrusmq.invoking import slots
from cirrusmq.invoking.function_batch import hand_over, lease_exceeds_timeout, return_all
from cirrusmq.invoking.function_breaker import FunctionBreaker
from cirrusmq.model.breaker import wait_after
from cirrusmq.model.invoke import Invoke
from cirrusmq.model.source import Source
from cirrusmq.receiving.receive_request import Received
from cirrusmq.runtime.core import Core

TRIED_FROM = 10
"""Messages of which one is drawn, in a source with groups or priorities."""


def choose_one(core: Core, source: Source, batch: list[Received]) -> list[Received]:
    """Returns a message that is the first one of its group in a batch; gives the others back."""
    firsts = {each.message.group or each.receipt: each for each in reversed(batch)}
    chosen = core.random.choice([*firsts.values()])
    if others := [each for each in batch if each is not chosen]:
        return_all(core, source, others)
    return [chosen]


def try_one(
    core: Core,
    breaker: FunctionBreaker,
    source: Source,
    invoke: Invoke,
    arn: str,
    batch: list[Received],
) -> bool:
    """Calls the function with the message of an open breaker. Returns True if it is closed now.

    A message that is left comes again for the next try, and its receive does not count: an open
    breaker dead-letters nothing.
    """
    if not breaker.begin_try(slots.hold_ms(core, invoke)):
        return_all(core, source, batch)
        return not breaker.is_open(invoke)
    if not lease_exceeds_timeout(core, invoke, batch):  # the write above took long
        return_all(core, source, batch)
        breaker.end_try(breaker.circuit.error)
        return False
    seconds = wait_after(breaker.circuit.failed_probes + 1) // 1000
    handed = hand_over(core, source, invoke, arn, batch, seconds)
    breaker.end_try(handed.error)
    return not breaker.is_open(invoke)
