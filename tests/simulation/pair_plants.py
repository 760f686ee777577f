"""Faults that do harm only where two features meet, or where nobody looked before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.plants import plant
from tests.simulation.scenario import FAIR

from cirrusmq.access import shares, source_rates
from cirrusmq.fanout import returned_letters, topic_shares
from cirrusmq.invoking import slots, worker
from cirrusmq.lifecycle import moves, transfer
from cirrusmq.lifecycle.dead_letters import age_limit, policy
from cirrusmq.metering import fold, usage
from cirrusmq.model import breaker, transitions
from cirrusmq.model.priority import level_prefix
from cirrusmq.operations import redelivery, redrive
from cirrusmq.publishing import publish
from cirrusmq.publishing.half_messages import checks
from cirrusmq.publishing.half_messages.items import delete_mark
from cirrusmq.push import lease_session, poster_lease
from cirrusmq.push.lease_session import Turn
from cirrusmq.receiving import (
    ageing,
    best_levels,
    by_priority,
    fair,
    group_slices,
    ordered,
    receive,
    selected,
)
from cirrusmq.runtime.core import Core
from cirrusmq.sending import making, send, send_request
from cirrusmq.settlement import requeue
from cirrusmq.storage.parcels import parcel_item
from cirrusmq.subscriptions import writes
from cirrusmq.subscriptions.sources import present_source


@plant("redriven groups", found_by=8_190_008)
def a_redriven_dead_letter_of_a_group_arrives_nowhere(patch: pytest.MonkeyPatch) -> None:
    """It is taken out of the dead-letter queue, and put nowhere."""
    move_out = moves.move_out

    def taken_out(*given: Any, **named: Any) -> Any:
        core, source, parcel, places, _, *more = given
        return move_out(core, source, parcel, places, [], *more, **named)

    patch.setattr(returned_letters, "move_out", taken_out)


@plant("granted topics", found_by=8_320_000)
def a_copy_of_a_topic_forgets_who_published(patch: pytest.MonkeyPatch) -> None:
    """What a publisher of another account sent is said to be of the topic's own account."""
    patch.setattr(publish, "with_sender", lambda messages, *_: messages)


@plant("granted queues", found_by=8_310_000)
def a_sender_by_a_grant_is_taken_for_the_owner(patch: pytest.MonkeyPatch) -> None:
    """What another account sent is said to be of the queue's own account."""
    patch.setattr(send, "with_sender", lambda messages, *_: messages)


@plant("paused ages", found_by=8_370_003)
def a_pause_makes_messages_old(patch: pytest.MonkeyPatch) -> None:
    """The time of a pause counts as any."""
    patch.setattr(policy, "paused_ms", lambda *_: 0)


@plant("paused queues", found_by=8_360_000)
def a_paused_queue_is_received_from(patch: pytest.MonkeyPatch) -> None:
    """A receive does not look whether its queue is paused."""
    look = receive._PartitionPoller._look

    def careless(self: Any, source: Any, *given: Any, **named: Any) -> Any:
        return look(self, replace(source, paused=False), *given, **named)

    patch.setattr(receive._PartitionPoller, "_look", careless)


@plant("rated queues", found_by=8_420_006)
def each_environment_has_the_whole_rate(patch: pytest.MonkeyPatch) -> None:
    """What others took of a second does not count."""
    patch.setattr(source_rates, "_begin", lambda *_: None)
    patch.setattr(source_rates, "_add", lambda *_: None)


@plant("rated groups", found_by=8_560_009)
def each_environment_has_the_whole_rate_of_a_group(patch: pytest.MonkeyPatch) -> None:
    """What others took of a group's second does not count; of a queue's it does."""
    for name in ("_begin", "_add"):
        patch.setattr(source_rates, name, partial(_unless_of_a_group, getattr(source_rates, name)))


def _unless_of_a_group(write: Any, core: Any, place: tuple[str, str], *given: Any) -> Any:
    return None if "#" in place[0] else write(core, place, *given)


@plant("rated groups", found_by=8_560_018)
def a_receive_of_a_group_does_not_see_its_rate(patch: pytest.MonkeyPatch) -> None:
    """Nothing is taken of the rate if the group is named."""
    lot_of = fair._RoundRobin.lot_of

    def careless(self: Any, prefix: str) -> Any:
        self._source = replace(self._source, group_rate=None)
        return lot_of(self, prefix)

    patch.setattr(fair._RoundRobin, "lot_of", careless)


@plant("rated groups", "rated group functions", found_by=8_570_012)
def a_group_that_was_full_stays_full(patch: pytest.MonkeyPatch) -> None:
    """An environment does not see that the second is over."""

    def is_full(self: Any, place: tuple[str, str], _: int) -> bool:
        held = self._held.get(place)
        return held is not None and held.full and not held.left

    patch.setattr(source_rates.RateMemory, "is_full", is_full)


@plant("priority queues", found_by=8_380_013)
def a_level_that_has_more_is_left_for_the_next(patch: pytest.MonkeyPatch) -> None:
    """An answer is filled from lower levels when the page of a higher one is taken."""
    take = by_priority._Levels.take

    def careless(self: Any, *given: Any) -> bool:
        take(self, *given)
        return not self._batch.full

    patch.setattr(by_priority._Levels, "take", careless)


@plant("priority queues", found_by=8_380_000)
def a_look_begins_at_a_level_by_chance(patch: pytest.MonkeyPatch) -> None:
    """As around the groups of a fair partition."""
    patch.setattr(by_priority, "FIRST_KEY", level_prefix(4))


@plant("priority letters", "priority queues", found_by=8_390_000)
def what_moves_loses_its_priority(patch: pytest.MonkeyPatch) -> None:
    """A message that is re-keyed, or comes back, has the lowest level."""
    patch.setattr(making, "priority_of", lambda _: 1)
    patch.setattr(send_request, "with_priority", lambda message, _: message)


@plant("priority queues", "priority letters")
def what_ends_is_not_taken_off_its_level(patch: pytest.MonkeyPatch) -> None:
    """The meter counts what comes to a priority, and of what is removed the sum alone."""
    read = fold._read

    def forgetful(record: Any, resource_of: Any) -> Any:
        made = read(record, resource_of)
        return made if record.after is not None else replace(made, level=None)

    patch.setattr(fold, "_read", forgetful)


@plant("aged priorities", found_by=8_580_008)
def ages_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """A lower level waits as long as a higher one has messages."""
    patch.setattr(ageing.AgeMemory, "older", lambda *_: [])


@plant("aged priorities", found_by=8_580_015)
def ages_count_tenfold(patch: pytest.MonkeyPatch) -> None:
    """A lower level goes before a higher one after a tenth of the time."""
    by_age = by_priority._by_age

    def hasty(core: Any, source: Any, pk: str, levels: Any, ageing_ms: int) -> Any:
        return by_age(core, source, pk, levels, ageing_ms // 10)

    patch.setattr(by_priority, "_by_age", hasty)


@plant("spread priorities", found_by=8_620_000)
def whatever_partition_comes_first_is_taken_from(patch: pytest.MonkeyPatch) -> None:
    """A receive does not ask what other partitions have."""
    patch.setattr(best_levels.BestLevels, "allows", lambda *_: True)
    patch.setattr(best_levels.BestLevels, "_value", lambda self, at: self._source.partitions - at)


@plant("spread priorities", found_by=8_620_000)
def a_look_through_partitions_is_trusted_for_a_minute(patch: pytest.MonkeyPatch) -> None:
    """Better messages that came since then wait."""
    patch.setattr(best_levels, "TRUSTED_MS", 60_000)
    patch.setattr(best_levels, "AGAIN_MS", 60_000)


@plant("chosen groups", found_by=8_330_001)
def a_receive_of_a_group_takes_from_all(patch: pytest.MonkeyPatch) -> None:
    """It looks in the group's partition, and takes from whatever group is free there."""
    patch.setattr(receive, "take_of_group", ordered.take_from_groups)


@plant("chosen fair", found_by=8_340_004)
def a_receive_of_a_group_does_not_see_its_limit(patch: pytest.MonkeyPatch) -> None:
    """What is held of the group does not count when the group is named."""
    lot = fair._RoundRobin._lot

    def careless(self: Any, prefix: str, page: Any) -> Any:
        self._source = replace(self._source, max_in_flight=None)
        return lot(self, prefix, page)

    patch.setattr(fair._RoundRobin, "_lot", careless)


@plant("chosen attributes", found_by=8_350_000)
def a_receive_by_an_attribute_takes_all_of_a_parcel(patch: pytest.MonkeyPatch) -> None:
    """One message of a parcel that matches is enough for the others."""
    patch.setattr(selected._Select, "_matches", lambda self, message: True)


@plant("chosen attributes", found_by=8_350_022)
def a_full_answer_has_seen_its_page(patch: pytest.MonkeyPatch) -> None:
    """The next call goes on behind what the last one had no room for."""
    read = selected._Select._read

    def careless(self: Any, *given: Any) -> bool:
        read(self, *given)
        return True

    patch.setattr(selected._Select, "_read", careless)


@plant("redriven queues", found_by=8_180_179)
def a_redrive_by_receipts_does_not_look_who_holds_it(patch: pytest.MonkeyPatch) -> None:
    """A stale receipt takes a message away from the consumer that has it."""
    move = redrive._Redriving._move_out

    def careless(self: Any, queue: Any, source: Any, parcel: Any, place: int, _: object) -> Any:
        return move(self, queue, source, parcel, place, parcel.nonces[place])

    patch.setattr(redrive, "holds", lambda held, parcel, now_ms: parcel.live(held.receipt.place))
    patch.setattr(redrive._Redriving, "_move_out", careless)


@plant("notified copies", found_by=8_410_000)
def a_dead_letter_forgets_that_it_is_a_notification(patch: pytest.MonkeyPatch) -> None:
    """A move into another queue leaves behind what the parcel has besides."""
    patch.setattr(transfer, "others_of", lambda parcel, places: {})


@plant("notified copies", found_by=8_410_000)
def a_copy_by_a_send_is_no_notification(patch: pytest.MonkeyPatch) -> None:
    """A queue that numbers or logs what it is sent does not get what the parcel has besides."""
    items_for = making.items_for

    def plain(*given: Any, **named: Any) -> Any:
        return items_for(*given, **{**named, "others": {}})

    patch.setattr(topic_shares, "items_for", plain)


@plant("paused groups", found_by=8_150_003)
def a_pause_does_nothing_for_receives(patch: pytest.MonkeyPatch) -> None:
    """A paused group's members get what comes."""
    a_paused_queue_is_received_from(patch)


@plant("paused functions", found_by=8_170_024)
def a_pause_does_nothing_for_functions(patch: pytest.MonkeyPatch) -> None:
    """A paused group's function gets what comes."""

    def unpaused(*given: Any) -> Any:
        source = present_source(*given)
        return None if source is None else replace(source, paused=False)

    patch.setattr(worker, "present_source", unpaused)


@plant("paused URLs", found_by=8_160_006)
def posters_are_not_told_of_a_pause(patch: pytest.MonkeyPatch) -> None:
    """The subscription is paused, its delivery state is not."""
    update = writes.update

    def untold(core: Any, found: Any, after: Any) -> Any:
        return update(core, found, after)[:1]

    patch.setattr(writes, "update", untold)


@plant("retries", "pull", found_by=38)
def the_waits_of_retries_are_a_tenth(patch: pytest.MonkeyPatch) -> None:
    """A message given back by its policy waits a tenth of what the policy says."""
    portions = requeue.portions

    def shorter(*given: Any) -> Iterator[requeue.Portion]:
        return (replace(each, wait_ms=each.wait_ms // 10) for each in portions(*given))

    patch.setattr(requeue, "portions", shorter)


@plant("overdue halves", found_by=8_230_002)
def an_overdue_half_message_loses_its_mark(patch: pytest.MonkeyPatch) -> None:
    """It is left to the sweep, which never learns of it."""

    def forget(core: Any, half: Any, mark: Any) -> None:
        delete_mark(core, mark)

    patch.setattr(checks, "_leave_to_sweep", forget)


@plant("late objects", found_by=8_220_000)
def a_late_copy_keeps_an_object_that_ends_before_it(patch: pytest.MonkeyPatch) -> None:
    """Its class of life is that of the publish, whenever it is copied and however long it lives."""
    patch.setattr(
        topic_shares, "_kept_days", lambda core, queue, record, now_ms: record.object_days
    )


@plant(FAIR, found_by=6_000_034)
def a_fair_receive_takes_all_from_one_group(patch: pytest.MonkeyPatch) -> None:
    """A group's share of a receive is the whole."""
    for module in (fair, group_slices):
        patch.setattr(module, "fair_share", lambda limit: limit)


@plant("rewound functions", found_by=8_000_030)
def a_rewound_group_has_slots_of_its_own(patch: pytest.MonkeyPatch) -> None:
    """Slots are the source's, so that after a rewind as many run once more."""
    take, renew = slots.take, slots.renew

    def of_source(core: Any, owner_id: str, *more: Any) -> Any:
        source = present_source(core, owner_id)
        return take(core, owner_id if source is None else source.id, *more)

    patch.setattr(slots, "take", of_source)
    patch.setattr(slots, "renew", renew)


@plant("operated functions", rare=True, found_by=8_020_020)
def a_used_up_message_is_received_behind_a_rewound_one(patch: pytest.MonkeyPatch) -> None:
    """Only the first message of a group is looked at for whether it is to be given up."""
    patch.setattr(ordered, "dead_letter_reason", lambda *_: None)


@plant("early fair", rare=True, found_by=8_050_094)
def parcels_in_objects_do_not_say_where_their_record_is(patch: pytest.MonkeyPatch) -> None:
    """A backfill does not find that a message is in the log as well."""
    with_log = making._with_log

    def forget_registration(held: Any, *of: Any) -> Any:
        in_object = any(each.object_days for each in held)
        return tuple(map(parcel_item, held)) if in_object else with_log(held, *of)

    patch.setattr(making, "_with_log", forget_registration)


@plant("redriven URLs", found_by=8_210_013)
def a_redrive_to_a_url_is_a_delete(patch: pytest.MonkeyPatch) -> None:
    """The meter does not look where a new parcel of a URL came from."""
    push_events = usage.push_events

    def blind(change: usage.ParcelChange) -> Iterator[usage.Event]:
        return iter(()) if change.before is None else push_events(change)

    patch.setattr("cirrusmq.metering.fold.push_events", blind)


@plant("redelivered groups", "redelivered rewound", found_by=8_290_003)
def a_redelivered_message_arrives_nowhere(patch: pytest.MonkeyPatch) -> None:
    """It is counted, and put nowhere."""
    patch.setattr(redelivery, "items_of", lambda arrived, message: [])


@plant("redelivered URLs", found_by=8_300_005)
def a_url_gets_no_message_again(patch: pytest.MonkeyPatch) -> None:
    """The same of a URL's messages."""
    patch.setattr(redelivery, "items_of", lambda arrived, message: [])


@plant("redelivered groups", found_by=8_280_038)
def a_redelivery_counts_behind_its_write(patch: pytest.MonkeyPatch) -> None:
    """The count is not in the transaction that puts a message: who goes on puts it again."""

    class Uncounted:
        """A run whose count is written by nobody."""

        def __init__(self, run: Any) -> None:
            self.operation, self.found = run.operation, run.found

        def count(self, notes: Any) -> Any:
            return self.found, None

    class Instead:
        """Something with one part replaced."""

        def __init__(self, whole: Any, **parts: Any) -> None:
            self._whole = whole
            self.__dict__ |= parts

        def __getattr__(self, name: str) -> Any:
            return getattr(self._whole, name)

    put = redelivery._put

    def uncounted(core: Any, run: Any, *given: Any) -> bool:
        transact = core.store.transact
        store = Instead(core.store, transact=lambda writes: transact([w for w in writes if w]))
        careless: Any = Instead(core, store=store)
        counted: Any = Uncounted(run)
        return put(careless, counted, *given)

    patch.setattr(redelivery, "_put", uncounted)


@plant("untried letters", "untried groups", found_by=8_250_003)
def what_is_given_back_untried_counts(patch: pytest.MonkeyPatch) -> None:
    """A give-back does not say whether a message was tried."""
    given_back = transitions.given_back
    patch.setattr(transitions, "untried", lambda parcel, places: parcel)
    patch.setattr(transitions, "given_back", lambda *given, tried=True: given_back(*given))


@plant("shared functions", found_by=8_270_000)
def an_account_may_have_all_workers(patch: pytest.MonkeyPatch) -> None:
    """A worker begins whatever its account, and others, have at work."""

    @contextmanager
    def unshared(core: Core, account: str, max_ms: float) -> Iterator[shares.PoolShare]:
        yield shares.PoolShare(core, account, "", 0, 0)

    patch.setattr(shares, "calling", unshared)


@plant("fair ages", found_by=8_130_019)
def the_age_limit_begins_anew_each_minute(patch: pytest.MonkeyPatch) -> None:
    """A round that is not over in its time never comes to the groups behind."""
    read = age_limit.read_state
    patch.setattr(age_limit, "read_state", lambda *given: read(*given)._replace(behind=""))


@plant("broken URLs", found_by=8_430_002)
def a_breaker_never_opens(patch: pytest.MonkeyPatch) -> None:
    """Outcomes are counted, and nothing follows."""
    patch.setattr(lease_session, "after_post", lambda circuit, *_: circuit)


@plant("broken URLs", found_by=8_430_002)
def a_try_of_an_open_breaker_counts(patch: pytest.MonkeyPatch) -> None:
    """A message is told that it failed, and uses up its retries."""
    ended = Turn.ended

    def counting(turn: Any, outcome: Any) -> Any:
        ended(turn, outcome)
        return outcome

    patch.setattr(Turn, "ended", counting)


@plant("broken URLs", found_by=8_430_000)
def an_open_breaker_never_closes(patch: pytest.MonkeyPatch) -> None:
    """A try that succeeds is taken for one that failed."""
    after_probe = breaker.after_probe

    def failing(circuit: Any, now_ms: int, error: str | None, asked_ms: int = 0) -> Any:
        return after_probe(circuit, now_ms, error or "status 200", asked_ms)

    patch.setattr(lease_session, "after_probe", failing)


@plant("broken URLs", found_by=8_430_029)
def outcomes_count_for_good(patch: pytest.MonkeyPatch) -> None:
    """Failures of an earlier minute open it."""
    patch.setattr(breaker, "PARTS", 10**9)


@plant("broken URLs", found_by=8_430_002)
def a_release_forgets_that_the_breaker_is_open(patch: pytest.MonkeyPatch) -> None:
    """The next holder of the lease begins with a closed one."""
    patch.setattr(poster_lease, "packed", lambda circuit: (0, 0, 0))
