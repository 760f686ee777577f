"""Faults planted into groups in time: their starts and their rewinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from msgspec.structs import replace
from tests.simulation.plants import plant
from tests.simulation.scenario import REWOUND

from cirrusmq.lifecycle import former_sources
from cirrusmq.model.source import Source
from cirrusmq.model.topic import Subscription
from cirrusmq.operations import replay, runner
from cirrusmq.publishing import log_reader
from cirrusmq.settlement import delete, settle, visibility
from cirrusmq.storage.queries import Progress
from cirrusmq.subscriptions import sources
from cirrusmq_lambda import topic_paths


@plant(REWOUND, found_by=2_000_012)
def what_a_rewind_has_not_reached_is_received(patch: pytest.MonkeyPatch) -> None:
    """Receivers do not look how far the operation is."""
    patch.setattr(sources, "group_source", lambda core, group: sources.subscription_source(group))
    patch.setattr(topic_paths, "group_source", sources.group_source)


@plant(REWOUND, found_by=2_000_004)
def former_sources_keep_everything(patch: pytest.MonkeyPatch) -> None:
    """What a rewind gives anew can be received from where it was, too."""
    patch.setattr(Source, "keeps", lambda self, parcel: parcel.sent_ms > self.purged_ms)


@plant(REWOUND, found_by=2_000_063)
def receipts_outlive_a_rewind(patch: pytest.MonkeyPatch) -> None:
    """A receipt from before a rewind is taken for what is given anew."""
    holds_still = settle.holds_still

    def careless(held: settle.Held, now_ms: int) -> Any:
        return holds_still(replace(held, source=replace(held.source, ends_ms=None)), now_ms)

    patch.setattr(delete, "holds_still", careless)
    patch.setattr(visibility, "holds_still", careless)


@plant(REWOUND, found_by=2_000_004)
def fan_out_goes_on_with_the_former_source(patch: pytest.MonkeyPatch) -> None:
    """What is published after a rewind is put where nobody receives it."""
    patch.setattr(Subscription, "source_of", lambda self, sent_ms: self.id)


@plant(REWOUND, found_by=2_000_034)
def a_rewound_group_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    """What a rewind gives anew is received while the group's earlier or held messages are there."""
    patch.setattr(former_sources, "is_first", lambda *_: True)


@plant(REWOUND, rare=True, found_by=2_001_006)
def a_rewinds_time_goes_before_a_groups_order(patch: pytest.MonkeyPatch) -> None:
    """What a former source keeps is first, whichever clock its time is by."""
    patch.setattr(former_sources, "_overtakes", lambda *_: False)


@plant(REWOUND, found_by=2_000_009)
def a_replay_ends_before_the_last_record(patch: pytest.MonkeyPatch) -> None:
    """The newest record is taken for one that fan-out alone puts."""
    log_between = log_reader.log_between

    def all_but_one(*given: Any) -> Iterator[Any]:
        items = list(log_between(*given))
        return iter(items[:-1])

    patch.setattr(replay, "log_between", all_but_one)


@plant(REWOUND, found_by=2_000_022)
def a_rewind_has_no_new_source(patch: pytest.MonkeyPatch) -> None:
    """The log's messages are put where they were: those that are held or deleted in part stay so,
    and those consumed meanwhile come again."""

    def rewound(self: Subscription, source_id: str, begun: Any, oldest_ms: int) -> Subscription:
        return replace(self, replay=begun)

    patch.setattr(Subscription, "rewound", rewound)


@plant(REWOUND, found_by=2_000_073)
def each_run_of_a_replay_begins_anew(patch: pytest.MonkeyPatch) -> None:
    """What an earlier run has put, and consumers have deleted, is put again."""

    class Anew:
        def __init__(self, run: Any) -> None:
            self.operation = replace(run.operation, progress=Progress())

    steps = replay.steps
    patch.setitem(runner._STEPS, "replay", lambda core, run: steps(core, cast("Any", Anew(run))))
