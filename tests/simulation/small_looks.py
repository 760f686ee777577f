"""Pages of one to four parcels, and looks of a unit: scenarios have more parcels than a page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from cirrusmq.fanout import parked
from cirrusmq.lifecycle.dead_letters import age_limit
from cirrusmq.publishing import log_reader
from cirrusmq.publishing.half_messages import items
from cirrusmq.push import scan_pending
from cirrusmq.receiving import by_priority, fair, ordered_pages, polling, rounds
from cirrusmq.receiving.heads import ended
from cirrusmq.receiving.heads import scan as search
from cirrusmq.receiving.lookup import find
from cirrusmq.storage import queries, walk
from cirrusmq.subscriptions.delivery import due_marks

_LOOKS = (
    (walk, "MIN_PARCELS", 1),
    (walk, "FIRST_PARCELS", 2),
    (walk, "MAX_PARCELS", 4),
    (rounds, "LOOK_UNITS", 1.0),
    (rounds, "PARTITION_UNITS", 0.5),
    (rounds, "FREE_UNITS", 0.0),
    (polling, "LOOK_UNITS", 1.0),
    (ordered_pages, "_FEWEST_PER_PAGE", 1),
    (ordered_pages, "_FIRST_PAGE", 2),
    (ordered_pages, "_MAX_PER_PAGE", 4),
    (ended, "LONG", 1),
    (ended, "_EXTRA_UNITS", 0.5),
    (age_limit, "STEP_PAGES", 1),
)
_PAGES = (
    (search, "FEWEST_PER_PAGE", 1),
    (search, "_MAX_PER_PAGE", 4),
    (by_priority, "FEWEST_PER_PAGE", 1),
    (by_priority, "_FEW", 1),
    (fair, "FEWEST_PER_PAGE", 1),
    (fair, "_FEW", 1),
    (fair, "_MAX_PER_PAGE", 4),
    (find, "_PAGE", 2),
    (log_reader, "_PAGE_RECORDS", 2),
    (parked, "_PAGE", 2),
    (items, "_PAGE", 2),
    (queries, "_PORTION", 2),
    (scan_pending, "_FEWEST_PER_PAGE", 2),
    (scan_pending, "_MAX_PER_PAGE", 4),
    (due_marks, "_PAGE", 2),
)


def make_looks_small(patch: pytest.MonkeyPatch) -> None:
    """Have looks around groups end in the middle."""
    for module, name, value in _LOOKS:
        patch.setattr(module, name, value)


@contextlib.contextmanager
def pages_of(small: bool) -> Iterator[None]:
    """Have looks end in the middle, and every page be small, if `small`."""
    with pytest.MonkeyPatch.context() as patch:
        if small:
            make_looks_small(patch)
            for module, name, value in _PAGES:
                patch.setattr(module, name, value)
        yield
