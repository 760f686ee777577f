"""Faults planted into requests and their replies."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.plants import plant
from tests.simulation.scenario import REPLIES

from cirrusmq.lifecycle import transfer
from cirrusmq.model.message import Message
from cirrusmq.model.parcel import others_of
from cirrusmq.model.reply_note import ASKS
from cirrusmq.receiving.replies import answer, wait
from cirrusmq.receiving.replies.items import RequestEnd, look_for_end
from cirrusmq.runtime.core import Core
from cirrusmq.settlement.settle import Held
from cirrusmq.storage.changes import Condition


@plant(REPLIES, found_by=7_800_001)
def a_reply_leaves_its_message(patch: pytest.MonkeyPatch) -> None:
    """The reply is there, and the message comes again."""
    patch.setattr(answer, "_removal", lambda *given: [])


@plant(REPLIES)
def a_reply_writes_over_another_one(patch: pytest.MonkeyPatch) -> None:
    """A message that came twice has two replies, and one after its asker gave up."""

    def careless(table: str, item: Any) -> Any:
        return {"TableName": table, "Item": item}

    patch.setattr(answer, "put_if_absent", careless)


@plant(REPLIES, found_by=7_800_003)
def a_reply_takes_any_receipt(patch: pytest.MonkeyPatch) -> None:
    """A consumer whose lease has passed on to another one replies too."""

    def careless(held: Held, now_ms: int) -> Condition:
        return Condition(("size(v) = :count",), {":count": {"N": str(held.receipt.count)}})

    patch.setattr(answer, "holds", lambda *given: True)
    patch.setattr(answer, "holds_still", careless)


@plant(REPLIES)
def the_same_reply_again_is_any_reply(patch: pytest.MonkeyPatch) -> None:
    """Another reply with the same receipt is taken for a repetition."""

    def careless(end: RequestEnd, held: Held, reply: Message) -> int:
        return end.written_ms

    patch.setattr(answer, "_told", careless)


@plant(REPLIES, found_by=7_800_018)
def an_asker_gives_up_without_a_write(patch: pytest.MonkeyPatch) -> None:
    """A reply that is slow is taken after its asker has been told that there is none."""
    look = wait._look

    def unwritten(core: Core, message_id: str, note: Any) -> RequestEnd | None:
        end = look_for_end(core, message_id, note)
        now_ms = core.now_ms()
        if end is None and now_ms >= note.due_ms - 3_000:
            return RequestEnd(reply=None, written_ms=now_ms, kept_until_ms=now_ms)
        return look(core, message_id, note)

    patch.setattr(wait, "_look", unwritten)


@plant(REPLIES)
def a_request_outlives_its_deadline(patch: pytest.MonkeyPatch) -> None:
    """Its message lives as long as any other one, and is received when nobody waits."""
    from cirrusmq.sending import making

    patch.setattr(making, "life_end_ms", lambda others, now_ms, expires_ms: expires_ms)


@plant("asked letters", found_by=8_510_002)
def a_dead_letter_asks_for_nothing(patch: pytest.MonkeyPatch) -> None:
    """A request that is moved into another queue is an ordinary message there."""

    def bare(*given: Any) -> Any:
        return {name: value for name, value in others_of(*given).items() if name != ASKS}

    patch.setattr(transfer, "others_of", bare)


@plant(REPLIES)
def a_deadline_is_known_as_another_one(patch: pytest.MonkeyPatch) -> None:
    """An asker waits for longer than the message lives, and is not told that it is over."""
    look = wait._look

    def later(core: Core, message_id: str, note: Any) -> RequestEnd | None:
        return look(core, message_id, replace(note, due_ms=note.due_ms + 30_000))

    patch.setattr(wait, "_look", later)
