"""Parts of a batch: a message that was received before is handed over alone.

It may have ended the function that had it, and the messages beside it would be lost to that call
too, each time, until they are dead letters that nobody has handled.

    claimed     1   2 again   3   4 again        all in one group    1   2 again   3
    handed      2 ── 4 ── 1 3                    handed              1 ── 2 ── 3
"""

from __future__ import annotations

from collections.abc import Sequence

from cirrusmq.receiving.receive_request import Received


def next_part(batch: Sequence[Received]) -> list[Received]:
    """Returns the messages to hand over next; an empty list at the end. Groups keep their order."""
    seen: set[str] = set()
    new: list[Received] = []
    for each in batch:
        group = each.message.group
        if group is not None and group in seen:
            continue
        if not is_again(each):
            new.append(each)
        elif group is None or all(other.message.group != group for other in new):
            return [each]
        else:
            seen.add(group)
    return new


def is_again(received: Received) -> bool:
    """Returns True if a message was received before, and handed over then."""
    return received.parcel.tries(received.index) > 1
