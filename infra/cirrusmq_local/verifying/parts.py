"""Parts of a run beside its scenes that can be chosen by name, like scenes."""

from __future__ import annotations

from typing import TypeAlias

from cirrusmq_local.verifying.function_parts import (
    FairFunctions,
    GroupFunctions,
    OrderedFunctions,
    PausedFunctions,
    RewoundFunctions,
)
from cirrusmq_local.verifying.functions import Functions
from cirrusmq_local.verifying.notifications import Notifications
from cirrusmq_local.verifying.scoped_keys import ScopedKeys

Part: TypeAlias = Functions | Notifications | ScopedKeys
PARTS: dict[str, type[Part]] = {
    kind.name: kind
    for kind in (
        OrderedFunctions,
        FairFunctions,
        GroupFunctions,
        RewoundFunctions,
        PausedFunctions,
        Notifications,
        ScopedKeys,
    )
}
"""Name -> part. They are played beside scenes, in waves of their own (`wave.WITH_PARTS`)."""
