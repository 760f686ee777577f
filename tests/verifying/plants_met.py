"""Every planted fault: the scene in which `verify` finds it, or why no run of it can."""

from __future__ import annotations

FOUND: dict[str, str] = {
    "deletes_that_a_receive_carries_are_not_made": "singles",
    "sends_put_over_what_is_there": "singles",
    "a_send_that_is_repeated_gets_another_id": "singles",
    "fan_out_leaves_the_last_parcel_out": "topics",
    "a_send_that_is_repeated_is_of_another_group": "fair",
    "what_moves_leaves_its_group": "fair",
    "a_receive_by_an_attribute_takes_all_of_a_parcel": "chosen",
    "what_moves_loses_its_priority": "priorities",
    "a_hold_does_not_compare_the_nonce": "singles",
    "ordered_receivers_pass_what_is_held": "ordered groups",
    "what_is_in_flight_is_not_counted": "fair",
    "a_level_that_has_more_is_left_for_the_next": "priorities",
}
"""Fault -> the scene whose calls show it within a minute, on a service with one process."""
FIRST = "what_moves_leaves_its_group"
"""The one that the ordinary suite finds."""

STORE = "it shows when one call of the store fails or a function ends between two of them"
RACE = "it needs two calls between a read and a write, which one process makes one behind another"
MANY = "it needs environments that know different things; one machine has one of each function"
CLOCKS = "it needs clocks that differ; one machine has one"
SWEEP = "it shows after minutes: behind sweeps, waits or ages that a run does not sit out"
LOOK = "it shows in the tables or the bill alone, which calls do not tell"
SCENE = "no scene plays this: "
_FUNCTIONS, _REWINDS = SCENE + "functions that queues name", SCENE + "rewinds of groups"
_EARLY, _URLS = (
    SCENE + "receivers that begin with the backlog",
    SCENE + "judging of posts in their order",
)
RARE = "its calls are played, but a minute on a busy machine did not show it when it was tried"
UNTRIED = "its calls are played; it was not tried yet whether a minute shows it"
WHY_NOT: dict[str, tuple[str, ...]] = {
    RARE: (
        "a_delete_does_not_compare_the_nonce",
        "given_back_messages_keep_their_receipts",
        "moved_parcels_leave_no_tombstone",
        "held_messages_become_dead_letters",
        "the_waits_of_retries_are_a_tenth",
        "deleted_messages_do_not_reach_the_archive",
        "posts_are_settled_by_anybody",
    ),
    UNTRIED: (
        "a_bound_leaves_no_tombstone",
        "a_breaker_never_opens",
        "a_key_forgets_received_sends",
        "a_key_is_written_without_a_condition",
        "a_release_forgets_that_the_breaker_is_open",
        "a_replaced_message_vanishes_at_once",
        "a_replacement_does_not_ask_who_received",
        "a_replacement_leaves_the_old_message",
        "a_try_of_an_open_breaker_counts",
        "an_open_breaker_never_closes",
        "outcomes_count_for_good",
        "a_fair_receive_takes_all_from_one_group",
        "a_full_answer_has_seen_its_page",
        "a_look_begins_at_a_level_by_chance",
        "a_new_due_time_is_a_key_alone",
        "a_page_is_all_that_a_group_has",
        "a_paused_queue_is_received_from",
        "cancelled_messages_leave_no_tombstone",
        "checks_are_not_held",
        "re_keyed_messages_forget_their_object",
        "the_ring_does_not_go_on",
        "the_ring_ends_at_its_last_group",
        "what_is_given_back_untried_counts",
    ),
    STORE: (
        "reminders_are_written_after_the_messages",
        "a_move_writes_the_arrival_first",
        "a_move_deletes_first",
        "parcels_are_written_before_their_log_record",
        "one_refused_claim_fails_the_whole_receive",
        "what_cannot_be_read_stays_claimed",
        "fan_out_goes_on_after_a_share_that_failed",
        "what_lies_aside_is_passed",
        "fan_out_keys_have_the_clock_in_them",
        "a_commit_publishes_first",
        "marks_are_put_behind_the_half_message",
        "parcels_are_written_before_their_object",
        "what_cannot_be_read_is_deleted",
        "what_came_late_is_not_shown_again",
        "markers_lie_beside_the_log",
        "a_batch_counts_again_when_it_comes_again",
        "deletes_that_a_receive_carries_are_told_as_done",
        "a_redelivery_counts_behind_its_write",
    ),
    RACE: (
        "a_claim_does_not_compare_what_it_read",
        "a_move_does_not_look_at_its_source",
        "a_cancellation_does_not_compare_what_it_read",
        "a_commit_does_not_look_at_the_state",
        "a_rollback_does_not_look_at_the_state",
        "checks_are_not_compared",
        "a_purge_removes_whatever_has_the_key",
        "a_purge_has_no_floor",
        "a_rewind_takes_what_was_deleted_since",
        "a_mark_covers_what_is_not_there_yet",
    ),
    MANY: (
        "environments_forget_the_earlier_generation",
        "a_new_generation_signs_at_once",
        "the_secret_is_read_once",
        "attempts_derive_from_the_newest_generation",
        "posts_have_the_newest_signature_alone",
        "what_was_just_sent_is_not_looked_for",
        "each_environment_has_the_whole_rate",
    ),
    CLOCKS: ("nobody_waits_for_the_clocks_of_others",),
    SWEEP: (
        "expired_messages_are_received",
        "the_last_check_is_not_waited_for",
        "dead_letters_do_not_renew_their_object",
        "a_pause_makes_messages_old",
        "an_overdue_half_message_loses_its_mark",
        "a_late_copy_keeps_an_object_that_ends_before_it",
        "the_age_limit_begins_anew_each_minute",
        "a_purged_message_keeps_its_deduplication_id",
    ),
    LOOK: ("moves_are_billed_as_deletes", "a_redrive_to_a_url_is_a_delete"),
    _EARLY: (
        "what_a_backfill_has_not_reached_is_received",
        "what_ends_during_a_backfill_is_not_kept",
        "a_backfill_does_not_read_the_archive",
        "what_was_moved_since_is_copied_as_well",
        "what_is_moved_does_not_say_when",
        "a_backfill_ends_with_the_backlog",
        "parcels_in_objects_do_not_say_where_their_record_is",
    ),
    _REWINDS: (
        "what_a_rewind_has_not_reached_is_received",
        "former_sources_keep_everything",
        "receipts_outlive_a_rewind",
        "fan_out_goes_on_with_the_former_source",
        "a_rewound_group_does_not_wait",
        "a_rewinds_time_goes_before_a_groups_order",
        "a_replay_ends_before_the_last_record",
        "a_rewind_has_no_new_source",
        "each_run_of_a_replay_begins_anew",
    ),
    _FUNCTIONS: (
        "a_rewound_group_has_slots_of_its_own",
        "a_used_up_message_is_received_behind_a_rewound_one",
        "a_pause_does_nothing_for_functions",
        "an_account_may_have_all_workers",
        "what_a_function_names_is_deleted",
        "what_was_not_begun_counts",
        "what_was_received_before_has_company",
        "what_is_done_stays",
        "slots_that_are_held_are_taken",
        "what_may_still_run_is_given_back",
        "nobody_comes_back_for_what_is_due_later",
        "calls_begin_under_slots_that_end",
    ),
    _URLS: (
        "each_holder_begins_with_a_full_bucket",
        "the_next_holder_trusts_the_clock_of_the_last_one",
        "tokens_are_taken_when_a_post_is_let_through",
        "the_share_does_nothing",
        "an_account_does_not_see_who_else_is_at_work",
        "who_is_above_the_quarter_does_not_give_way",
        "a_demotion_never_ends",
        "a_slow_url_is_demoted_by_nobody",
        "who_has_no_time_left_does_not_tell_what_failed",
        "anybody_holds_the_lease_of_a_poster",
        "a_retrying_subscription_delivers",
        "retries_are_not_started_anew",
        "one_that_leaves_its_invocation_forgets_its_posts",
        "a_push_takes_the_lease_of_a_subscription_that_retries",
        "posters_are_not_told_of_a_pause",
        "urls_get_what_is_delayed_when_it_is_seen",
        "nobody_is_left_to_post_what_is_delayed",
        "a_url_gets_no_message_again",
    ),
    SCENE + "messages that are published for later": (
        "fan_out_forgets_the_delay",
        "the_log_has_no_pointer_to_what_is_delayed",
    ),
    SCENE + "large half messages": ("commits_do_not_copy_the_object",),
    SCENE + "dead letters of groups that are redriven, or delivered again": (
        "a_redriven_dead_letter_of_a_group_arrives_nowhere",
        "a_redelivered_message_arrives_nowhere",
    ),
    SCENE + "grants": (
        "a_copy_of_a_topic_forgets_who_published",
        "a_sender_by_a_grant_is_taken_for_the_owner",
    ),
    SCENE + "groups that a receive names, of ordered and of fair queues": (
        "a_receive_of_a_group_takes_from_all",
        "a_receive_of_a_group_does_not_see_its_limit",
    ),
    SCENE + "redrives by receipts": ("a_redrive_by_receipts_does_not_look_who_holds_it",),
    SCENE + "notifications": (
        "a_dead_letter_forgets_that_it_is_a_notification",
        "a_copy_by_a_send_is_no_notification",
    ),
    SCENE + "priorities that age": ("ages_do_not_count", "ages_count_tenfold"),
    SCENE + "rates of groups": (
        "each_environment_has_the_whole_rate_of_a_group",
        "a_group_that_was_full_stays_full",
        "a_receive_of_a_group_does_not_see_its_rate",
    ),
    SCENE + "groups that are paused": ("a_pause_does_nothing_for_receives",),
}
"""Reason -> the faults that no run of `verify` on one machine meets, or meets by rare chance."""
