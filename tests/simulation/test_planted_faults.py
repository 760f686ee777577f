"""The simulation can fail: every planted fault is found, within a bounded number of seeds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.simulation import (
    breaker_plants,
    cancel_plants,
    cloud_plants,
    delayed_plants,
    early_plants,
    fair_plants,
    flow_plants,
    group_plants,
    half_plants,
    object_plants,
    pair_plants,
    replace_plants,
    reply_plants,
    schedule_plants,
    secret_plants,
    slow_plants,
    topic_plants,
    trigger_plants,
)
from tests.simulation.checks import RAISED
from tests.simulation.drawing import draw_scenario
from tests.simulation.plants import PLANTS
from tests.simulation.scenario import FIRST_SEEDS, FIRST_SEEDS_OF_PAIRS
from tests.simulation.shrinking import broken_rule, shrink, tell
from tests.simulation.simulation import play

from cirrusmq_local.judging.history import Violation

MAX_SEEDS, MAX_SEEDS_OF_RARE = 100, 2_000
"""Of the scenarios in which a fault can do harm."""
LAST_FOUND_BY = {
    "a_backfill_does_not_read_the_archive": 7000023,
    "a_backfill_ends_with_the_backlog": 7000007,
    "a_batch_counts_again_when_it_comes_again": 21,
    "a_bound_leaves_no_tombstone": 7700065,
    "a_breaker_never_opens": 8430002,
    "a_reply_leaves_its_message": 7800001,
    "a_cancellation_does_not_compare_what_it_read": 3000035,
    "a_change_of_a_schedule_holds_at_once": 8610006,
    "a_claim_does_not_compare_what_it_read": 13,
    "a_commit_does_not_look_at_the_state": 1000018,
    "a_commit_publishes_first": 1000025,
    "a_copy_by_a_send_is_no_notification": 8410000,
    "a_copy_of_a_topic_forgets_who_published": 8320000,
    "a_dead_letter_asks_for_nothing": 8510002,
    "a_dead_letter_forgets_that_it_is_a_notification": 8410000,
    "a_delete_does_not_compare_the_nonce": 7,
    "a_demotion_never_ends": 7500000,
    "a_fair_receive_takes_all_from_one_group": 6000034,
    "a_full_answer_has_seen_its_page": 8350022,
    "a_function_that_fails_at_a_try_is_told_of_it": 8600000,
    "a_functions_breaker_never_closes": 8600000,
    "a_group_that_was_full_stays_full": 8570012,
    "a_hold_does_not_compare_the_nonce": 7,
    "a_key_forgets_received_sends": 7700034,
    "a_key_is_written_without_a_condition": 7700263,
    "a_late_copy_keeps_an_object_that_ends_before_it": 8220000,
    "a_level_that_has_more_is_left_for_the_next": 8380013,
    "a_look_begins_at_a_level_by_chance": 8380000,
    "a_look_through_partitions_is_trusted_for_a_minute": 8620000,
    "a_mark_covers_what_is_not_there_yet": 519,
    "a_mark_is_taken_by_anybody": 8610004,
    "a_move_deletes_first": 488,
    "a_move_does_not_look_at_its_source": 41,
    "a_move_writes_the_arrival_first": 42,
    "a_new_due_time_is_a_key_alone": 3000050,
    "a_new_generation_signs_at_once": 420,
    "a_page_is_all_that_a_group_has": 6000034,
    "a_pause_does_nothing_for_functions": 8170024,
    "a_pause_does_nothing_for_receives": 8150003,
    "a_pause_makes_messages_old": 8370003,
    "a_paused_queue_is_received_from": 8360000,
    "a_purge_has_no_floor": 33,
    "a_purge_removes_whatever_has_the_key": 10142,
    "a_purged_message_keeps_its_deduplication_id": 1432,
    "a_push_takes_the_lease_of_a_subscription_that_retries": 693,
    "a_receive_by_an_attribute_takes_all_of_a_parcel": 8350000,
    "a_receive_of_a_group_does_not_see_its_limit": 8340004,
    "a_receive_of_a_group_does_not_see_its_rate": 8560018,
    "a_receive_of_a_group_takes_from_all": 8330001,
    "a_redelivered_message_arrives_nowhere": 8290003,
    "a_redelivery_counts_behind_its_write": 8280038,
    "a_redrive_by_receipts_does_not_look_who_holds_it": 8180179,
    "a_redrive_to_a_url_is_a_delete": 8210013,
    "a_redriven_dead_letter_of_a_group_arrives_nowhere": 8190008,
    "a_release_forgets_that_the_breaker_is_open": 8430002,
    "a_replaced_message_vanishes_at_once": 7700186,
    "a_replacement_does_not_ask_who_received": 7700006,
    "a_replacement_leaves_the_old_message": 7700000,
    "a_replay_ends_before_the_last_record": 2000009,
    "a_reply_takes_any_receipt": 7800003,
    "a_retrying_subscription_delivers": 108,
    "a_rewind_has_no_new_source": 2000022,
    "a_rewind_takes_what_was_deleted_since": 434,
    "a_rewinds_time_goes_before_a_groups_order": 2001006,
    "a_rewound_group_does_not_wait": 2000034,
    "a_rewound_group_has_slots_of_its_own": 8000030,
    "a_rollback_does_not_look_at_the_state": 1000004,
    "a_schedule_puts_its_message_behind_its_mark": 8610004,
    "a_send_that_is_repeated_gets_another_id": 60,
    "a_send_that_is_repeated_is_of_another_group": 6000020,
    "a_sender_by_a_grant_is_taken_for_the_owner": 8310000,
    "a_slow_url_is_demoted_by_nobody": 7500001,
    "a_time_that_does_not_exist_is_left_out": 8650013,
    "a_try_is_of_a_whole_batch": 8600000,
    "a_try_of_an_open_breaker_counts": 8430002,
    "a_url_gets_no_message_again": 8300005,
    "a_used_up_message_is_received_behind_a_rewound_one": 8020020,
    "ages_count_tenfold": 8580015,
    "ages_do_not_count": 8580008,
    "all_missed_times_are_one": 8610027,
    "an_account_does_not_see_who_else_is_at_work": 7500002,
    "an_account_may_have_all_workers": 8270000,
    "an_asker_gives_up_without_a_write": 7800018,
    "an_open_breaker_never_closes": 8430000,
    "an_overdue_half_message_loses_its_mark": 8230002,
    "anybody_holds_the_lease_of_a_poster": 194,
    "attempts_derive_from_the_newest_generation": 441,
    "calls_begin_under_slots_that_end": 1095,
    "cancelled_messages_leave_no_tombstone": 3000005,
    "checks_are_not_compared": 1000006,
    "checks_are_not_held": 1000036,
    "commits_do_not_copy_the_object": 1000001,
    "dead_letters_do_not_renew_their_object": 471,
    "deleted_messages_do_not_reach_the_archive": 17,
    "deletes_that_a_receive_carries_are_not_made": 0,
    "deletes_that_a_receive_carries_are_told_as_done": 65,
    "each_environment_has_the_whole_rate": 8420006,
    "each_environment_has_the_whole_rate_of_a_group": 8560009,
    "each_holder_begins_with_a_full_bucket": 4000005,
    "each_run_of_a_replay_begins_anew": 2000073,
    "earlier_definitions_are_forgotten": 8610006,
    "environments_forget_the_earlier_generation": 355,
    "expired_messages_are_received": 54,
    "fan_out_forgets_the_delay": 5000010,
    "fan_out_goes_on_after_a_share_that_failed": 233,
    "fan_out_goes_on_with_the_former_source": 2000004,
    "fan_out_keys_have_the_clock_in_them": 11,
    "fan_out_leaves_the_last_parcel_out": 61,
    "former_sources_keep_everything": 2000004,
    "given_back_messages_keep_their_receipts": 48,
    "held_messages_become_dead_letters": 5,
    "markers_lie_beside_the_log": 933,
    "marks_are_put_behind_the_half_message": 1000018,
    "moved_parcels_leave_no_tombstone": 136,
    "moves_are_billed_as_deletes": 64,
    "nobody_comes_back_for_what_is_due_later": 733,
    "nobody_is_left_to_post_what_is_delayed": 5000003,
    "nobody_waits_for_the_clocks_of_others": 9,
    "one_refused_claim_fails_the_whole_receive": 957,
    "one_that_leaves_its_invocation_forgets_its_posts": 3013,
    "ordered_receivers_pass_what_is_held": 48,
    "outcomes_count_for_good": 8430029,
    "outcomes_of_a_function_count_for_good": 8600011,
    "outcomes_of_a_function_open_nothing": 8600000,
    "parcels_are_written_before_their_log_record": 6,
    "parcels_are_written_before_their_object": 93,
    "parcels_in_objects_do_not_say_where_their_record_is": 8050094,
    "posters_are_not_told_of_a_pause": 8160006,
    "posts_are_settled_by_anybody": 76,
    "posts_have_the_newest_signature_alone": 135,
    "re_keyed_messages_forget_their_object": 451,
    "receipts_outlive_a_rewind": 2000063,
    "reminders_are_written_after_the_messages": 56,
    "retries_are_not_started_anew": 12,
    "sends_put_over_what_is_there": 29,
    "slots_that_are_held_are_taken": 275,
    "the_age_limit_begins_anew_each_minute": 8130019,
    "the_last_check_is_not_waited_for": 1000078,
    "the_log_has_no_pointer_to_what_is_delayed": 5000010,
    "the_next_holder_trusts_the_clock_of_the_last_one": 4000005,
    "the_ring_does_not_go_on": 6000017,
    "the_ring_ends_at_its_last_group": 6000003,
    "the_secret_is_read_once": 214,
    "the_share_does_nothing": 7500002,
    "the_waits_of_retries_are_a_tenth": 38,
    "tokens_are_taken_when_a_post_is_let_through": 4000005,
    "urls_get_what_is_delayed_when_it_is_seen": 5000009,
    "waits_between_tries_do_not_grow": 8600000,
    "what_a_backfill_has_not_reached_is_received": 7000047,
    "what_a_function_names_is_deleted": 189,
    "what_a_rewind_has_not_reached_is_received": 2000012,
    "what_came_late_is_not_shown_again": 2996,
    "what_cannot_be_read_is_deleted": 23,
    "what_cannot_be_read_stays_claimed": 52,
    "what_ends_during_a_backfill_is_not_kept": 7000046,
    "what_is_done_stays": 21,
    "what_is_given_back_untried_counts": 8250003,
    "what_is_in_flight_is_not_counted": 6000001,
    "what_is_moved_does_not_say_when": 7000039,
    "what_lies_aside_is_passed": 2592,
    "what_may_still_run_is_given_back": 216,
    "what_moves_leaves_its_group": 6000000,
    "what_moves_loses_its_priority": 8390000,
    "what_was_just_sent_is_not_looked_for": 43,
    "what_was_moved_since_is_copied_as_well": 7000432,
    "what_was_not_begun_counts": 1002,
    "what_was_received_before_has_company": 4,
    "whatever_partition_comes_first_is_taken_from": 8620000,
    "who_has_no_time_left_does_not_tell_what_failed": 7500002,
    "who_is_above_the_quarter_does_not_give_way": 7500010,
    "whoever_finds_it_open_tries": 8600000,
}
"""Seeds that are tried first, of short runs. A stale one costs time: the others follow."""
_FIRST = FIRST_SEEDS | FIRST_SEEDS_OF_PAIRS
# Every second one is for `make check-long`, as those are that few scenarios find.
_FAULTS = [
    pytest.param(name, marks=pytest.mark.long if plant.rare or number % 2 else ())
    for number, (name, plant) in enumerate(sorted(PLANTS.items()))
]


def _seeds(fault: str) -> Iterator[int]:
    plant = PLANTS[fault]
    if fault in LAST_FOUND_BY:
        yield LAST_FOUND_BY[fault]
    seed, found = max((_FIRST.get(kind, 0) for kind in plant.kinds), default=0), 0
    while found < (MAX_SEEDS_OF_RARE if plant.rare else MAX_SEEDS):
        if not plant.kinds or draw_scenario(seed).kinds.intersection(plant.kinds):
            found += 1
            yield seed
        seed += 1


def _find(fault: str, patch: pytest.MonkeyPatch) -> tuple[int, Violation]:
    """A seed that finds a fault, and by which promise."""
    PLANTS[fault].patch(patch)
    for seed in _seeds(fault):
        violation = play(seed).violation
        if violation is not None:
            return seed, violation
    pytest.fail(f"no seed found that {fault.replace('_', ' ')}")


def test_the_planted_faults_are_there() -> None:
    assert len(PLANTS) >= 25
    assert LAST_FOUND_BY.keys() <= PLANTS.keys()
    assert topic_plants.__doc__
    assert cloud_plants.__doc__
    assert secret_plants.__doc__
    assert object_plants.__doc__
    assert half_plants.__doc__
    assert cancel_plants.__doc__
    assert flow_plants.__doc__
    assert delayed_plants.__doc__
    assert trigger_plants.__doc__
    assert group_plants.__doc__
    assert early_plants.__doc__
    assert fair_plants.__doc__
    assert pair_plants.__doc__
    assert slow_plants.__doc__
    assert replace_plants.__doc__
    assert reply_plants.__doc__
    assert breaker_plants.__doc__
    assert schedule_plants.__doc__


@pytest.mark.parametrize("fault", PLANTS)
def test_a_fault_can_still_be_planted(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patched names still exist."""
    PLANTS[fault].patch(monkeypatch)


@pytest.mark.few(12)
@pytest.mark.parametrize("fault", _FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, violation = _find(fault, monkeypatch)
    print(f'    "{fault}": {seed},')
    assert violation.promise != RAISED  # by a promise that it breaks, not by breaking down


@pytest.mark.long
def test_the_history_of_a_failing_run_gets_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    seed, violation = _find("a_claim_does_not_compare_what_it_read", monkeypatch)
    shortest = shrink(seed)
    first = play(seed)
    assert first.violation == violation
    assert len(shortest.history.calls) < len(first.history.calls) / 2
    # A promise with counts in it is broken by others of them in a shorter run.
    assert broken_rule(shortest) == broken_rule(first)
    assert shortest.violation is not None
    assert shortest.violation.promise in tell(seed, shortest)
