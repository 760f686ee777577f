"""The state of the breaker of a function, for answers."""

from __future__ import annotations

from cirrusmq.model.breaker import Circuit
from cirrusmq.model.invoke import Invoke
from cirrusmq.runtime.core import Core


def circuit_of(core: Core, owner_id: str, invoke: Invoke | None) -> Circuit | None:
    """Returns the state of a queue's or group's breaker; None if its function has none."""
    if invoke is None or invoke.breaker is None:
        return None
    # Few functions have one: the others' cold starts do without.
    from cirrusmq.invoking.slots import read_circuit

    return read_circuit(core, owner_id)
