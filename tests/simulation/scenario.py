"""The families of scenarios, and the seeds of those that have seeds of their own."""

from __future__ import annotations

REWOUND = "rewound groups"
"""The family whose groups are rewound, or begin with what was before."""
TRIGGERS = "triggers"
"""The family whose queues or groups name a function."""
HALF = "half"
"""The family whose producers publish by half messages."""
CANCELLED = "cancelled"
"""The family whose senders cancel and reschedule."""
REPLACED = "replaced"
"""The family whose messages replace those that wait under their keys."""
REPLIES = "replies"
"""The family whose messages ask for a reply."""
EARLY = "early receivers"
"""The family whose queue gets a receiver that begins with the earliest message."""
FAIR = "fair"
"""The family whose queue is fair."""
FLOW = "flow"
"""The family of URLs with a rate."""
DELAYED = "delayed"
"""The family of messages that are published to be delivered later."""
SLOW = "slow"
"""The family of URLs that are slow, of two accounts."""
PAUSED, REDRIVEN, REDELIVERED = "paused", "redriven", "redelivered"
"""The pairs whose subscriptions are paused, those whose dead letters are redriven by chance, ids,
receipts or reasons, and those whose messages are delivered again by their ids."""
GRANTED = "granted"
"""The pairs in which another account sends, by a grant."""
PRIORITY = "priority"
"""The pairs whose queue has priorities."""
SCHEDULED = "scheduled"
"""The pairs in which schedules put messages."""
BROKEN = "broken"
"""The pairs whose URLs or functions have a breaker."""
CHOSEN = "chosen"
"""The pairs in which receives choose a group, or an attribute."""
FIRST_SEEDS = {
    HALF: 1_000_000,
    REWOUND: 2_000_000,
    CANCELLED: 3_000_000,
    FLOW: 4_000_000,
    DELAYED: 5_000_000,
    FAIR: 6_000_000,
    EARLY: 7_000_000,
    SLOW: 7_500_000,
    REPLACED: 7_700_000,
    REPLIES: 7_800_000,
}
"""Of the families that have seeds of their own, each up to the first one of the next."""
