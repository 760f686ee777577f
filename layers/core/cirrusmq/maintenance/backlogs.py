"""The largest backlogs, once a minute, for an operator's figures.

It reads the meter's counters, and the names of the largest ones: half a read unit for each shard of
the counters and each 4 KB beyond, and half a one for a name.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

import msgspec

from cirrusmq.queues.resources import Resource, find_existing
from cirrusmq.runtime.core import Core
from cirrusmq.storage.counters import read_all_counters


class Backlogs(msgspec.Struct, frozen=True, kw_only=True):
    """Stored messages, up to a minute ago; messages of a deleted queue count until they expire."""

    messages: int
    bytes: int
    largest: Mapping[Resource, int]
    """Messages of the queues, receivers and subscriptions that have the most."""
    left_out: int
    """How many others have messages."""


def read_backlogs(core: Core, limit: int) -> Backlogs:
    """Returns the sums over all resources, and the `limit` largest backlogs by name."""
    keeping = [each for each in read_all_counters(core) if each.kept.messages]
    first = heapq.nlargest(limit, keeping, key=lambda each: each.kept.messages)
    named = core.in_own_pool(lambda each: find_existing(core, each.resource_id), first)
    return Backlogs(
        messages=sum(each.kept.messages for each in keeping),
        bytes=sum(each.kept.bytes for each in keeping),
        largest={
            resource: each.kept.messages
            for each, resource in zip(first, named, strict=True)
            if resource is not None
        },
        left_out=len(keeping) - len(first),
    )
