"""The families of scenarios, the pairs of them, and their seeds."""

from __future__ import annotations

from cirrusmq_local.judging.scenario import OBJECTS, UNTRIED

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
PAIRS: dict[str, tuple[str, ...]] = {
    "rewound functions": (REWOUND, TRIGGERS),
    "fair functions": (FAIR, TRIGGERS),
    "operated functions": (TRIGGERS,),
    "delayed functions": (DELAYED, TRIGGERS),
    "half functions": (HALF, TRIGGERS),
    "early fair": (EARLY, FAIR),
    "cancelled fair": (CANCELLED, FAIR),
    "cancelled letters": (CANCELLED,),
    "cancelled receivers": (CANCELLED,),
    "cancelled operated": (CANCELLED,),
    "delayed rewound": (DELAYED, REWOUND),
    "delayed flow": (DELAYED, FLOW),
    "half rewound": (HALF, REWOUND),
    "fair ages": (FAIR,),
    "purged duplicates": (),
    "paused groups": (PAUSED,),
    "paused URLs": (PAUSED,),
    "paused functions": (PAUSED, TRIGGERS),
    "redriven queues": (REDRIVEN,),
    "redriven groups": (REDRIVEN,),
    "redriven functions": (REDRIVEN, TRIGGERS),
    "redriven URLs": (REDRIVEN,),
    "late objects": (OBJECTS,),
    "overdue halves": (HALF,),
    "untried letters": (UNTRIED,),
    "untried groups": (UNTRIED,),
    "rewound letters": (),
    "shared functions": (TRIGGERS,),
    "redelivered groups": (REDELIVERED,),
    "redelivered rewound": (REDELIVERED, REWOUND),
    "redelivered URLs": (REDELIVERED,),
    "granted queues": (GRANTED,),
    "granted topics": (GRANTED,),
    "chosen groups": (CHOSEN,),
    "chosen fair": (CHOSEN, FAIR),
    "chosen attributes": (CHOSEN,),
    "paused queues": (PAUSED,),
    "paused ages": (PAUSED,),
    "priority queues": (PRIORITY,),
    "priority letters": (PRIORITY,),
    "priority copies": (PRIORITY,),
    "notified copies": (REDRIVEN,),
    "rated queues": (),
    "broken URLs": (BROKEN,),
    "replaced fair": (REPLACED, FAIR),
    "replaced letters": (REPLACED,),
    "replaced priorities": (REPLACED, PRIORITY),
    "replaced cancelled": (REPLACED, CANCELLED),
    "replaced operated": (REPLACED,),
    "replaced functions": (REPLACED, TRIGGERS),
    "asked fair": (REPLIES, FAIR),
    "asked letters": (REPLIES,),
    "asked priorities": (REPLIES, PRIORITY),
    "asked operated": (REPLIES,),
    "asked cancelled": (REPLIES, CANCELLED),
    "asked granted": (REPLIES, GRANTED),
    "rated groups": (FAIR,),
    "rated group functions": (FAIR, TRIGGERS),
    "aged priorities": (PRIORITY,),
    "aged copies": (PRIORITY,),
    "broken functions": (BROKEN, TRIGGERS),
    "scheduled queues": (SCHEDULED,),
    "spread priorities": (PRIORITY,),
    "spread copies": (PRIORITY,),
    "scheduled topics": (SCHEDULED,),
    "set clocks": (SCHEDULED,),
}
"""Name -> the families of which it has something."""
FIRST_SEEDS_OF_PAIRS = {name: 8_000_000 + 10_000 * number for number, name in enumerate(PAIRS)}
