"""Filters: which messages reach a subscription of a topic or a receiver of a queue."""

from __future__ import annotations

from cirrusmq.filters.routing import check_routing_key
from cirrusmq.filters.selection import Everything, Filter, Source, compile_filter
from cirrusmq.filters.tags import check_tags

__all__ = [
    "Everything",
    "Filter",
    "Source",
    "check_routing_key",
    "check_tags",
    "compile_filter",
]
