"""Faults planted into the product, to prove that the simulation finds what it is there to find."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from cirrusmq.lifecycle import moves, tombstones
from cirrusmq.lifecycle.dead_letters import move
from cirrusmq.lifecycle.dead_letters.policy import dead_letter_reason
from cirrusmq.model import parcel, transitions
from cirrusmq.operations import purge, rewind
from cirrusmq.queues.queues import get_queue
from cirrusmq.receiving import claim, ordered, unordered
from cirrusmq.receiving.heads import scan
from cirrusmq.runtime import store
from cirrusmq.sending import conditional_writes, deduplication, send
from cirrusmq.sending.making import Items
from cirrusmq.settlement import delete, settle, visibility
from cirrusmq.storage.changes import Condition
from cirrusmq.storage.queries import until_key
from cirrusmq_lambda.routes import receiving

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Plant:
    """A fault, and the kinds of scenarios in which it can do harm; none: in most."""

    patch: Patch
    kinds: tuple[str, ...]
    rare: bool
    """Whether it takes many seeds to find it: its harm needs several rare events at once."""
    found_by: int | None
    """A seed that is tried first, of a short run. A stale one costs time: the others follow."""


PLANTS: dict[str, Plant] = {}


def plant(*kinds: str, rare: bool = False, found_by: int | None = None) -> Callable[[Patch], Patch]:
    """Add a fault to the list; its docstring says what is wrong."""

    def add(patch: Patch) -> Patch:
        PLANTS[patch.__name__] = Plant(patch, kinds, rare, found_by)
        return patch

    return add


def every_plant() -> dict[str, Plant]:
    """The faults of this module and of all modules `*_plants` beside it, by their names."""
    for path in sorted(Path(__file__).parent.glob("*_plants.py")):
        importlib.import_module(f"tests.simulation.{path.stem}")
    return PLANTS


def _without_condition(request: dict[str, Any], *parts: str) -> dict[str, Any]:
    """The request without those of its conditions that contain one of `parts`."""
    kept = [
        condition
        for condition in request["ConditionExpression"].split(" AND ")
        if not any(part in condition for part in parts)
    ]
    values = request["ExpressionAttributeValues"]
    condition = " AND ".join(kept) or "attribute_exists(pk)"
    text = f"{condition} {request.get('UpdateExpression', '')}"
    used = {name: value for name, value in values.items() if name in _names(text)}
    changed = {**request, "ConditionExpression": condition, "ExpressionAttributeValues": used}
    return {name: value for name, value in changed.items() if value}


def _names(text: str) -> set[str]:
    return {word.strip("(),") for word in text.replace("(", " ").split() if word.startswith(":")}


def _without_clauses(condition: Callable[..., Condition], *parts: str) -> Callable[..., Condition]:
    """A maker of conditions, without those of its clauses that contain one of `parts`."""

    def careless(*args: Any) -> Condition:
        clauses, values = condition(*args)
        kept = tuple(each for each in clauses if not any(part in each for part in parts))
        used = _names(" ".join(kept))
        return Condition(kept, {name: value for name, value in values.items() if name in used})

    return careless


@plant(found_by=13)
def a_claim_does_not_compare_what_it_read(patch: pytest.MonkeyPatch) -> None:
    """Two receivers that read one parcel both take it."""
    request = claim._request
    patch.setattr(claim, "_request", lambda *args: _without_condition(request(*args), "v[", "(w)"))


@plant(found_by=7)
def a_delete_does_not_compare_the_nonce(patch: pytest.MonkeyPatch) -> None:
    """A stale receipt deletes."""
    patch.setattr(delete, "holds_still", _without_clauses(settle.holds_still, "k["))


@plant(found_by=0)
def deletes_that_a_receive_carries_are_not_made(patch: pytest.MonkeyPatch) -> None:
    """A receive tells them as done."""

    def told(core: object, receipts: Sequence[str], *_: object) -> settle.Results:
        return dict.fromkeys(receipts, 0)

    patch.setattr(receiving, "delete_what_can_be", told)


@plant(found_by=65)
def deletes_that_a_receive_carries_are_told_as_done(patch: pytest.MonkeyPatch) -> None:
    """Those of stale receipts as well, and those that the store refused."""
    made = delete.delete_what_can_be

    def told(*args: Any) -> settle.Results:
        return dict.fromkeys(made(*args), 0)

    patch.setattr(receiving, "delete_what_can_be", told)


@plant(found_by=7)
def a_hold_does_not_compare_the_nonce(patch: pytest.MonkeyPatch) -> None:
    """A stale receipt changes visibility and gives back."""
    patch.setattr(visibility, "holds_still", _without_clauses(settle.holds_still, "k["))


@plant(found_by=54)
def expired_messages_are_received(patch: pytest.MonkeyPatch) -> None:
    """The check of expiry is dropped."""

    def places(core: Any, source: Any, held: parcel.Parcel, now_ms: int) -> list[int]:
        ready = [place for place in range(held.count) if held.ready_ms(place) <= now_ms]
        return [place for place in ready if held.live(place)]

    plan = unordered.plan
    early = SimpleNamespace(now_ms=lambda: 0)
    patch.setattr(unordered, "plan", lambda _, *given: plan(cast(Any, early), *given))
    patch.setattr(scan, "claimable_indexes", places)


@plant("retries", "dead", found_by=136)
def moved_parcels_leave_no_tombstone(patch: pytest.MonkeyPatch) -> None:
    """A send that is repeated while its message waits for a retry elsewhere is stored again."""
    patch.setattr(tombstones, "may_vanish", lambda *_: True)
    patch.setattr(moves, "may_vanish", lambda *_: True)


@plant(found_by=43)
def what_was_just_sent_is_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    """A receive that looks meanwhile ends without it."""
    patch.setattr(
        scan,
        "until_key",
        lambda source, now_ms, *prefix: until_key(source, now_ms - 8_000, *prefix),
    )


@plant(found_by=29)
def sends_put_over_what_is_there(patch: pytest.MonkeyPatch) -> None:
    """Put-if-absent is a plain put: a repeated send resets its messages."""

    def plain(table: str, item: dict[str, Any]) -> dict[str, Any]:
        return {"TableName": table, "Item": item}

    patch.setattr(store, "put_if_absent", plain)
    patch.setattr(conditional_writes, "put_if_absent", plain)
    patch.setattr(conditional_writes, "put_if_unsent", lambda table, item, _: plain(table, item))


@plant(found_by=56)
def reminders_are_written_after_the_messages(patch: pytest.MonkeyPatch) -> None:
    """The transaction of a deduplicated send is split in two."""

    def split(core: Any, items: Any, reminders: Any, **times: Any) -> Any:
        for item in items:
            with contextlib.suppress(store.ConditionFailed):
                core.store.put_if_absent(core.tables.messages, item)
        return whole(core, [], reminders, **times)

    whole = deduplication.transact
    patch.setattr(deduplication, "transact", split)


@plant("dead", found_by=42)
def a_move_writes_the_arrival_first(patch: pytest.MonkeyPatch) -> None:
    """A move is two writes: the message is in both places between them."""
    _move_in_two_writes(patch, (slice(1, 2), slice(0, 1)))


@plant("dead", found_by=488)
def a_move_deletes_first(patch: pytest.MonkeyPatch) -> None:
    """A move is two writes: the message is nowhere between them."""
    _move_in_two_writes(patch, (slice(0, 1), slice(1, 2)))


def _move_in_two_writes(patch: pytest.MonkeyPatch, order: tuple[slice, slice]) -> None:
    transact = store.Store.transact

    def one_by_one(self: store.Store, both: Any) -> None:
        is_move = len(both) == 2 and "Put" in both[1] and "Put" not in both[0]
        for part in order if is_move else [slice(None)]:
            transact(self, both[part])

    patch.setattr(store.Store, "transact", one_by_one)


@plant(found_by=6)
def parcels_are_written_before_their_log_record(patch: pytest.MonkeyPatch) -> None:
    """Two writes swapped: a crash between them leaves messages without a body."""
    store_items = conditional_writes.store_items

    def swapped(core: Any, queue: Any, items: Items) -> Any:
        earlier = store_items(core, queue, replace(items, log=None))
        return earlier if items.log is None else store_items(core, queue, items)

    patch.setattr(send, "store_items", swapped)


@plant("dead", "retries", found_by=5)
def held_messages_become_dead_letters(patch: pytest.MonkeyPatch) -> None:
    """Dead-lettering does not check whether a message is held."""
    patch.setattr(parcel.Parcel, "held", lambda *_: False)

    def careless(source: Any, held: Any, place: int, now_ms: int) -> str | None:
        return dead_letter_reason(source, held, place, max(now_ms, held.ready_ms(place)))

    patch.setattr(move, "dead_letter_reason", careless)


@plant("ordered", found_by=48)
def ordered_receivers_pass_what_is_held(patch: pytest.MonkeyPatch) -> None:
    """A group's next message is given out while an earlier one is held."""
    take = ordered._take_first
    patch.setattr(ordered, "_take_first", lambda *args: take(*args) or True)


@plant("rewinding", found_by=17)
def deleted_messages_do_not_reach_the_archive(patch: pytest.MonkeyPatch) -> None:
    """Deleted messages are not put into the archive."""
    patch.setattr(tombstones, "kept_until", lambda *_: 0)
    patch.setattr(delete, "kept_until", lambda *_: 0)


@plant("rewinding", found_by=434)
def a_rewind_takes_what_was_deleted_since(patch: pytest.MonkeyPatch) -> None:
    """A rewind brings back messages that consumers deleted after it began."""
    choose = rewind._to_rewind

    def all_of_them(core: Any, source: Any, held: Any, to_ms: int, started_ms: int) -> list[int]:
        return choose(core, source, held, to_ms, 1 << 60)

    patch.setattr(rewind, "_to_rewind", all_of_them)


@plant(rare=True, found_by=33)
def a_purge_has_no_floor(patch: pytest.MonkeyPatch) -> None:
    """Purged messages are only removed, not refused."""

    def forgotten(core: Any, account: str, name: str, change: Any) -> Any:
        return change(get_queue(core, account, name))

    patch.setattr(purge, "update_queue", forgotten)


@plant(found_by=48)
def given_back_messages_keep_their_receipts(patch: pytest.MonkeyPatch) -> None:
    """Giving back does not end the receipt."""
    given_back = transitions.given_back

    def keeping(*args: Any, **named: Any) -> transitions.MessageChange:
        return replace(given_back(*args, **named), nonce=None)

    patch.setattr(transitions, "given_back", keeping)


@plant("dead", "retries", found_by=41)
def a_move_does_not_look_at_its_source(patch: pytest.MonkeyPatch) -> None:
    """A move does not check that the message is still there, and as it was read."""
    departure = moves._departure

    def careless(*args: Any, **named: Any) -> dict[str, Any]:
        ((kind, request),) = departure(*args, **named).items()
        return {kind: _without_condition(request, "v[", "k[")}

    patch.setattr(moves, "_departure", careless)
