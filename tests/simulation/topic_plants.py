"""Faults planted into topics, pushes, delivery states and the meter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.plants import plant

from cirrusmq.fanout import reader_parcels, record_shares
from cirrusmq.metering import fold, meter
from cirrusmq.model.parcel import Parcel
from cirrusmq.publishing import log_records
from cirrusmq.push import pending, poster_lease, posting
from cirrusmq.push.post_queue import Feed
from cirrusmq.subscriptions.delivery import rules as delivery_rules


@plant("receivers", "pull", "http", found_by=11)
def fan_out_keys_have_the_clock_in_them(patch: pytest.MonkeyPatch) -> None:
    """A record that is fanned out again makes its parcels again, under other keys."""

    def late(core: Any, parcels: Sequence[Parcel], *purged: int) -> None:
        later = [replace(each, sort_key=_later(core, each.sort_key)) for each in parcels]
        put(core, later, *purged)

    put = reader_parcels.put_parcels
    patch.setattr(reader_parcels, "put_parcels", late)


def _later(core: Any, sort_key: str) -> str:
    moment, mark, rest = sort_key.partition("#")
    return f"{core.now_ms():013d}#{rest}" if moment.isdigit() else f"{moment}{mark}{rest}"


@plant("pull", "http", found_by=61)
def fan_out_leaves_the_last_parcel_out(patch: pytest.MonkeyPatch) -> None:
    """Of a record's parcels one is not put."""
    put = reader_parcels.put_parcels
    patch.setattr(reader_parcels, "put_parcels", lambda core, parcels, *_: put(core, parcels[:-1]))


@plant("pull", "http", rare=True, found_by=2_996)
def what_came_late_is_not_shown_again(patch: pytest.MonkeyPatch) -> None:
    """Readers of the log that have passed a key do not learn of a late record under it."""
    patch.setattr(record_shares, "came_late", lambda *_: False)


@plant("pull", "http", rare=True, found_by=933)
def markers_lie_beside_the_log(patch: pytest.MonkeyPatch) -> None:
    """A late repetition leaves the key free, and a first try that is later still takes it."""

    def beside(*given: Any) -> Any:
        return {**marker(*given), "pk": {"S": "D#beside"}}

    marker = log_records._marker
    patch.setattr(log_records, "_marker", beside)


@plant("http", found_by=194)
def anybody_holds_the_lease_of_a_poster(patch: pytest.MonkeyPatch) -> None:
    """A worker posts without checking whether another one holds the lease."""

    def acquire(core: Any, delivery: Any, *_: Any, **__: Any) -> Any:
        return poster_lease.Acquired(delivery, mine=True, dirty=False)

    patch.setattr(poster_lease, "acquire", acquire)
    patch.setattr(delivery_rules.DeliveryState, "held", lambda *_: False)


@plant("http", found_by=108)
def a_retrying_subscription_delivers(patch: pytest.MonkeyPatch) -> None:
    """New messages are attempted while the ones before them are retried."""
    patch.setattr(pending.Push, "blocks", property(lambda self: False))


@plant("http", found_by=76)
def posts_are_settled_by_anybody(patch: pytest.MonkeyPatch) -> None:
    """The outcome of a post is not stored."""
    patch.setattr(posting, "_write", lambda push, parcel, changes: parcel)


@plant("http", found_by=12)
def retries_are_not_started_anew(patch: pytest.MonkeyPatch) -> None:
    """The sweep does not see delivery states without a worker."""
    patch.setattr(delivery_rules.DeliveryState, "stuck", lambda *_: False)


@plant("http", rare=True, found_by=3_013)
def one_that_leaves_its_invocation_forgets_its_posts(patch: pytest.MonkeyPatch) -> None:
    """Posts under way when a busy subscription leaves those it shares with are not settled."""

    def forget(feed: Any, outcome: Any) -> None:
        until_ms = feed.push.shared_until_ms
        if until_ms is None or feed.push.core.now_ms() < until_ms:
            ended(feed, outcome)
        else:
            feed.running -= 1

    ended = Feed.ended
    patch.setattr(Feed, "ended", forget)


@plant("http", found_by=693)
def a_push_takes_the_lease_of_a_subscription_that_retries(patch: pytest.MonkeyPatch) -> None:
    """Before its state is known the lease is tried for, and new messages pass the failed one."""

    def acquire(*given: Any, blocked_too: bool = True, **others: Any) -> Any:
        return as_it_is(*given, **others)

    as_it_is = poster_lease.acquire
    patch.setattr(poster_lease, "acquire", acquire)


@plant(found_by=21)
def a_batch_counts_again_when_it_comes_again(patch: pytest.MonkeyPatch) -> None:
    """Counters do not change by the difference."""
    changes = meter._changes
    patch.setattr(meter, "_changes", lambda steps, old: changes(steps, None))


@plant("dead", "rewinding", found_by=64)
def moves_are_billed_as_deletes(patch: pytest.MonkeyPatch) -> None:
    """The meter does not look at a parcel's source before its move."""
    change = fold._change

    def blind(record: Any) -> Any:
        told = change(record)
        after = told.after and replace(told.after, moved_from=None)
        return type(told)(before=told.before, after=after, by_ttl=told.by_ttl)

    patch.setattr(fold, "_change", blind)
