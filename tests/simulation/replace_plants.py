"""Faults planted into sends that replace what waits under their key."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.plants import plant
from tests.simulation.scenario import REPLACED

from cirrusmq.sending.conditional_writes import under_due_key
from cirrusmq.sending.replacing import in_place
from cirrusmq.sending.replacing.items import Waiting, with_past
from cirrusmq.storage.changes import Condition


@plant(REPLACED, found_by=7_700_006)
def a_replacement_does_not_ask_who_received(patch: pytest.MonkeyPatch) -> None:
    """A message that was received since it was read is cancelled too."""

    def careless(waiting: Waiting) -> Condition:
        return Condition(("t = :sent",), {":sent": {"N": str(waiting.sent_ms)}})

    patch.setattr(in_place, "never_received", careless)


@plant(REPLACED, rare=True, found_by=7_700_263)
def a_key_is_written_without_a_condition(patch: pytest.MonkeyPatch) -> None:
    """Two replacers of one message both store theirs, and one of them is left."""
    writes = in_place._writes

    def careless(*given: Any) -> list[Any]:
        made = writes(*given)
        for write in made:
            put = write.get("Put", {})
            if put.get("Item", {}).get("pk", {}).get("S", "").startswith("X#"):
                put["ConditionExpression"] = "attribute_not_exists(pk) OR t > :nothing"
                put["ExpressionAttributeValues"] = {":nothing": {"N": "0"}}
        return made

    patch.setattr(in_place, "_writes", careless)


@plant(REPLACED, found_by=7_700_000)
def a_replacement_leaves_the_old_message(patch: pytest.MonkeyPatch) -> None:
    """The answer says that it was replaced, and it still waits."""
    writes = in_place._writes
    patch.setattr(
        in_place,
        "_writes",
        lambda *given: [each for each in writes(*given) if "Update" not in each],
    )


@plant(REPLACED, found_by=7_700_034)
def a_key_forgets_received_sends(patch: pytest.MonkeyPatch) -> None:
    """A send that is repeated after its message was received and deleted replaces a newer one."""

    def forgetful(waiting: Waiting, since_ms: int) -> tuple[bytes, int]:
        return with_past(replace(waiting, repeatable=False, past=b""), since_ms)

    patch.setattr(in_place, "with_past", forgetful)


@plant(REPLACED, found_by=7_700_065)
def a_bound_leaves_no_tombstone(patch: pytest.MonkeyPatch) -> None:
    """A send whose message is due earlier than asked is stored twice when it is repeated."""

    def bare(*given: Any) -> Any:
        items = under_due_key(*given)
        return replace(items, parcels=items.parcels[-1:])

    patch.setattr(in_place, "under_due_key", bare)


@plant(REPLACED, found_by=7_700_186)
def a_replaced_message_vanishes_at_once(patch: pytest.MonkeyPatch) -> None:
    """Its key is free again, and its send, repeated, stores what was replaced."""
    cancellation = in_place._cancellation

    def removal(core: Any, old: Any, now_ms: int) -> Any:
        update = cancellation(core, old, now_ms)
        update["ExpressionAttributeValues"][":expires_at"] = {"N": str(now_ms // 1000)}
        return update

    patch.setattr(in_place, "_cancellation", removal)
