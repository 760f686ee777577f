"""Messages that come alone into a group, and rewinds, which must not leave them behind.

A dead letter that is given back and a message that is delivered again are not in the topic's log at
their present time, so no rewind brings them back. A rewind keeps the group's source for them, even
if it keeps nothing else, if the group says that they may be there:

    source Y, since a rewind to 09:00
    redrive   notes 10:15 ── puts m3 into Y
    rewind    to 08:00: a new source; Y keeps what came alone, until all of that has expired
"""

from __future__ import annotations

from msgspec.structs import replace

from cirrusmq.model.topic import Subscription
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions.writes import update_subscription

_NOTED_MS = 900_000
"""How far ahead it is noted: one write for all messages of a quarter of an hour."""
_SPARE_MS = 60_000
"""A message that is put within this time before the end is noted again, whatever the clocks say."""


def expect_alone(core: Core, subscription: Subscription) -> Subscription:
    """The subscription, as it is kept now, with a note that messages may come alone into it.

    Two write units for a group without a note; nothing for a URL, which is never rewound. Raises
    SubscriptionNotFound if it was removed.
    """
    now_ms = core.now_ms()
    if subscription.protocol != "pull" or now_ms + _SPARE_MS <= subscription.alone_until_ms:
        return subscription

    def noted(before: Subscription) -> Subscription:
        if now_ms + _SPARE_MS <= before.alone_until_ms:
            return before
        return replace(before, alone_until_ms=now_ms + _NOTED_MS)

    return update_subscription(core, subscription.topic_id, subscription.name, noted)
