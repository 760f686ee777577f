"""A group's sources: which one has a message of a time, and what a rewind makes of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.parcels import parcel as make_parcel
from tests.unit.topics import subscription

from cirrusmq.model.topic import Epoch, Replay, Subscription
from cirrusmq.subscriptions.sources import subscription_source

GROUP = subscription(id="first", created_ms=0, modified_ms=0, partitions=1)


def rewound(group: Subscription, *times: int, oldest_ms: int = 0) -> Subscription:
    """The group after rewinds to these times, its sources named by their order."""
    for number, to_ms in enumerate(times):
        replay = Replay(operation="Op", from_ms=to_ms, until_ms=to_ms + 1_000)
        group = group.rewound(f"source{number}", replay, oldest_ms)
    return group


def test_a_group_has_one_source_at_first() -> None:
    assert (GROUP.present_id, GROUP.source_of(5), GROUP.epochs) == ("first", "first", ())
    assert subscription_source(GROUP).all == (subscription_source(GROUP),)


@pytest.mark.parametrize(
    ("times", "epochs"),
    [
        ((10,), [Epoch("first", 10)]),
        ((10, 20), [Epoch("first", 10), Epoch("source0", 20)]),
        ((10, 20, 15), [Epoch("first", 10), Epoch("source0", 15)]),
        ((10, 20, 10), [Epoch("first", 10)]),
        ((20, 5), [Epoch("first", 5)]),
        ((20, 20), [Epoch("first", 20)]),
        ((0,), []),
    ],
)
def test_former_sources_keep_their_earlier_times(
    times: tuple[int, ...], epochs: list[Epoch]
) -> None:
    assert list(rewound(GROUP, *times).epochs) == epochs


def test_sources_with_only_expired_messages_are_dropped() -> None:
    replay = Replay(operation="Op", from_ms=40, until_ms=50)
    group = rewound(GROUP, 10, 20).rewound("last", replay, 15)
    assert list(group.epochs) == [Epoch("source0", 20), Epoch("source1", 40)]
    assert group.source_ids == {"first", "source0", "source1", "last"}


@pytest.mark.parametrize(
    ("to_ms", "oldest_ms", "epochs"),
    [
        (10, 0, [Epoch("first", 10, 30)]),
        # Nothing published is left in it, and a message that came alone is.
        (10, 20, [Epoch("first", 20, 30)]),
        (10, 30, []),
    ],
)
def test_a_former_source_is_kept_for_its_lone_messages(
    to_ms: int, oldest_ms: int, epochs: list[Epoch]
) -> None:
    group = rewound(replace(GROUP, alone_until_ms=30), to_ms, oldest_ms=oldest_ms)
    assert list(group.epochs) == epochs
    assert group.alone_until_ms == 0


@pytest.mark.parametrize(
    ("sent_ms", "source"),
    [
        (9, "first"),
        (10, "source0"),
        (19, "source0"),
        (20, "source1"),
        (99, "source1"),
    ],
)
def test_each_time_has_one_source(sent_ms: int, source: str) -> None:
    group = rewound(GROUP, 10, 20)
    assert group.source_of(sent_ms) == source
    sources = subscription_source(group).all
    held = replace(make_parcel(), sent_ms=sent_ms)
    assert next(each.id for each in sources if each.keeps(held)) == source
    alone = replace(held, parcel_id=f"{held.send_id}.0.1")
    assert all(each.keeps(alone) for each in sources)


@pytest.mark.parametrize("ordered", [False, True])
def test_each_source_knows_those_before_it_and_in_order_those_behind(ordered: bool) -> None:
    group = replace(rewound(GROUP, 10, 20), ordered=ordered)
    first, second, present = subscription_source(group).all
    assert [each.id for each in second.former] == ["first"]
    assert (first.former, present.later) == ((), ())
    assert [each.id for each in first.later] == (["source0", "source1"] if ordered else [])
    assert [each.id for each in second.later] == (["source1"] if ordered else [])


def test_a_former_source_withholds_the_newest_messages() -> None:
    former = replace(subscription_source(rewound(GROUP, 10)).former[0], withheld_from_ms=8)
    held = [replace(make_parcel(), sent_ms=sent_ms) for sent_ms in (7, 8, 9)]
    assert [former.withholds(each) for each in held] == [False, True, True]
    assert not former.withholds(replace(held[2], parcel_id=f"{held[2].send_id}.0.1"))


def test_a_group_catches_up_on_messages_published_before_all_knew_of_it() -> None:
    group = rewound(GROUP, 10)
    assert [group.catches_up_on(at) for at in (9, 10, 1_010, 1_011)] == [False, True, True, False]
    assert not GROUP.catches_up_on(10)
