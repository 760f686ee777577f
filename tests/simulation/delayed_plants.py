"""Faults planted into delayed publishing: URLs, groups and the log."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.plants import plant
from tests.simulation.scenario import DELAYED

from cirrusmq.fanout import record_shares
from cirrusmq.publishing.records import TopicRecord
from cirrusmq.push import scan_pending
from cirrusmq.subscriptions.delivery import rules as delivery_rules


@plant(DELAYED, found_by=5_000_009)
def urls_get_what_is_delayed_when_it_is_seen(patch: pytest.MonkeyPatch) -> None:
    """A look tells of messages that it finds, also a little before their time."""
    patch.setattr(scan_pending, "is_delayed", lambda *_: False)


@plant(DELAYED, found_by=5_000_010)
def fan_out_forgets_the_delay(patch: pytest.MonkeyPatch) -> None:
    """Copies are to be had at once."""
    patch.setattr(TopicRecord, "due_ms", lambda *_: 0)


@plant(DELAYED, found_by=5_000_010)
def the_log_has_no_pointer_to_what_is_delayed(patch: pytest.MonkeyPatch) -> None:
    """Readers leave a delayed message out, and do not find it later."""
    patch.setattr(record_shares, "show_delayed", lambda *_: None)


@plant(DELAYED, found_by=5_000_003)
def nobody_is_left_to_post_what_is_delayed(patch: pytest.MonkeyPatch) -> None:
    """A notice does not say that something is delayed, and looks pass it over for ever."""

    def waiting(*given: Any, delayed: bool = False, **more: Any) -> dict[str, Any]:
        return as_it_is(*given, **more)

    as_it_is = delivery_rules.waiting
    patch.setattr(delivery_rules, "waiting", waiting)
    begun = scan_pending.Look.__init__

    def early(self: Any, *given: Any) -> None:
        begun(self, *given)
        self.began_ms = 0

    patch.setattr(scan_pending.Look, "__init__", early)
