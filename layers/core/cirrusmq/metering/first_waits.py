"""How long messages waited for their first receive, or for their first post: pure.

    sent 10.0 s ── delayed to 15.0 s ── received 15.4 s     waited 0.4 s
    published 10.0 s ── posted 10.1 s, answered 10.3 s      waited 0.3 s: till the answer is stored

A message that comes again, or that is deleted without a receive, says nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from cirrusmq.metering.usage import ParcelChange


def first_waits(change: ParcelChange) -> Iterator[int]:
    """Milliseconds from when a message could be had to its first receive or post."""
    before, after = change.before, change.after
    if before is None or after is None or before.sent_ms != after.sent_ms:
        return
    for place in range(min(before.count, after.count)):
        if before.receives[place] == 0 < after.receives[place]:
            could_ms = max(after.sent_ms, before.visible_ms[place])
            yield max(0, after.first_received_ms[place] - could_ms)
