"""Scenes that are played at a service, each with its own queues and topics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cirrusmq_local.judging.places import Place
from cirrusmq_local.judging.scenario import DEAD, LATE, NEWS, ORDERS, UNTRIED, Cast, Scenario
from cirrusmq_local.verifying.pair_scenes import pair_scenes
from cirrusmq_local.verifying.priority_scenes import priority_scenes

FOREVER = 1 << 30
"""Steps of an actor: as many as the time lets it make."""
LIFE_SECONDS = 345_600
_PLAIN: dict[str, Any] = {
    "partitions": 2,
    "visibility_timeout_seconds": 5,
    "message_retention_seconds": LIFE_SECONDS,
    "delay_seconds": 0,
}
_DEAD: dict[str, Any] = {"partitions": 1, "message_retention_seconds": LIFE_SECONDS}
_LARGE: dict[str, Any] = {"max_message_bytes": 1_048_576}
_PADDINGS = (1, 10, 60)
"""Most bodies of large scenes are in the bucket: it has sends from 16 KiB on, packed."""
_HALF_PADDINGS = (1, 10, 15)
"""The same for half messages, whose batches have at most 256 KiB and messages 64 KiB."""
MEMBER = Place("news/group", topic=True)
_SHORT: dict[str, Any] = {
    "thinks_ms": (0, 5, 100, 300, 1_100),
    "timeouts": (1, 1, 2, 3, 5),
    "held": (0, 1, 5),
    "given_back": (None, None, 0, 3),
    "repeats_after_ms": (0, 500, 2_000),
    "decided_after_ms": (0, 300, 2_000),
    "pauses_ms": (100, 2_000, 4_000),
}
"""Holds and waits that end while a short run lasts."""
_GROUP = {
    "protocol": "pull",
    "dead_letter_queue": "dead",
    "retry": {"policy": "custom", "waits": [0.5, 1, 2], "jitter": 0.5},
}


def scenes() -> dict[str, Scenario]:
    """Name -> scene: a kind of load, and its queues, topics and actors."""
    return {
        "singles": _queue("singles", {"partitions": 1}, takes=(1,), attempts=0.5),
        "batches": _queue("batches", {}, attempts=0.5, deduplication=0.2),
        "large": _queue("large", _LARGE, big_bodies=True, paddings=_PADDINGS),
        "delayed": _queue("delayed", {"delay_seconds": 1}),
        "cancelled": _queue("cancelled", {"delay_seconds": 2}, more=_one("canceller")),
        "dead letters": _letters("dead letters", {}),
        "redriven": _letters("redriven", {}, more=[Cast("redriver", "redriver", DEAD, FOREVER)]),
        "large dead letters": _letters(
            "large dead letters",
            _LARGE,
            more=[Cast("redriver", "redriver", DEAD, FOREVER)],
            big_bodies=True,
            paddings=_PADDINGS,
            redrives=("all", "ids", "receipts", "reason"),
        ),
        "untried": _letters("untried", {}, untried=0.5),
        "retried": _letters(
            "retried",
            {
                "retry": {"policy": "custom", "waits": [1, 1, 2, 2], "jitter": 0},
                "dead_letter": {"queue": "dead", "max_receives": 5},
            },
        ),
        "rewound": _queue("rewound", {"rewind_seconds": 3_600}, more=_one("rewinder")),
        "purged": _queue("purged", {}, more=_one("purger"), deduplication=0.3),
        "paused": _queue("paused", {}, more=_one("pauser")),
        "ordered": _queue("ordered", {"ordered": True}, attempts=0),
        "fair": _queue(
            "fair", {"fair": True, "max_in_flight": 4}, tenants=(None, "loud", "red", "blue")
        ),
        "rates of groups": _queue(
            "rates of groups",
            {"fair": True, "rate": 2},
            tenants=("loud", "loud", "red", "blue"),
            choices=0.3,
            pause_ms=300,
        ),
        "chosen": _queue("chosen", {"partitions": 1}, choices=0.6),
        **priority_scenes(_queue),
        **pair_scenes(_queue, _letters),
        "requests": _queue("requests", {}, asking=0.6, asked_seconds=(2, 3, 5)),
        "replaced": _queue("replaced", {}, replacing=0.8),
        "receivers": _queue(
            "receivers",
            {},
            receivers=("audit",),
            more=[Cast("auditor", "receiver", Place("orders/audit"), FOREVER)],
        ),
        "late receivers": _queue(
            "late receivers",
            {"partitions": 1},
            early=True,
            attempts=0,
            more=[
                Cast("opener", "opener", LATE, FOREVER),
                *(Cast(f"late{number}", "receiver", LATE, FOREVER) for number in range(2)),
            ],
        ),
        "granted": _queue(
            "granted", {}, more=[Cast("guest0", "guest", ORDERS, FOREVER)], attempts=0.5
        ),
        "topics": _topic("topics", _GROUP),
        "granted topics": _topic(
            "granted topics", _GROUP, more=[Cast("guest0", "guest", NEWS, FOREVER)]
        ),
        "delayed topics": _topic("delayed topics", _GROUP, delayed=True, delays=(1, 3, 6)),
        "paused groups": _topic(
            "paused groups", _GROUP, more=[Cast("pauser", "pauser", MEMBER, FOREVER)]
        ),
        "redriven groups": _topic(
            "redriven groups",
            _GROUP,
            more=[
                Cast("undertaker", "receiver", DEAD, FOREVER),
                Cast("redriver", "redriver", DEAD, FOREVER),
            ],
        ),
        "paused dead letters": _topic(
            "paused dead letters",
            _GROUP,
            more=[
                Cast("undertaker", "receiver", DEAD, FOREVER),
                Cast("pauser", "pauser", MEMBER, FOREVER),
            ],
        ),
        "rewound groups": _rewound_groups("rewound groups", {}),
        "rewound ordered groups": replace(
            _rewound_groups("rewound ordered groups", {"ordered": True}),
            rewinds_ms=(7_000, 12_000),
            timeouts=(2, 8, 12),
            given_back=(None, 0),
        ),
        "filtered": _topic("filtered", _GROUP | {"filter": {"tags": ["a"]}}),
        "ordered groups": _topic(
            "ordered groups",
            {"protocol": "pull", "dead_letter_queue": "dead", "ordered": True},
        ),
        "half messages": _halves("half messages"),
        "large half messages": _halves(
            "large half messages", big_bodies=True, paddings=_HALF_PADDINGS
        ),
    }


def _one(part: str) -> list[Cast]:
    return [Cast(part, part, ORDERS, FOREVER)]


def _queue(
    family: str, attributes: dict[str, Any], *, more: list[Cast] | None = None, **given: Any
) -> Scenario:
    cast = [Cast(f"sender{number}", "sender", ORDERS, FOREVER) for number in range(2)]
    cast += [Cast(f"receiver{number}", "receiver", ORDERS, FOREVER) for number in range(2)]
    chosen: dict[str, Any] = {
        "big_bodies": False,
        "attempts": 0.5,
        "deduplication": 0,
        "pause_ms": 100,
        "queues": {"orders": _PLAIN | attributes},
        **_SHORT,
        **given,
    }
    return Scenario(family=family, cast=(*cast, *(more or ())), **chosen)


def _letters(
    family: str, attributes: dict[str, Any], *, more: list[Cast] | None = None, **given: Any
) -> Scenario:
    policy = {"dead_letter": {"queue": "dead", "max_receives": 2}}
    undertaker = Cast("undertaker", "receiver", DEAD, FOREVER)
    features = (UNTRIED,) if "untried" in given else ()
    return _queue(
        family,
        {},
        queues={"dead": _DEAD, "orders": _PLAIN | policy | attributes},
        more=[undertaker, *(more or ())],
        features=features,
        **given,
    )


def _topic(
    family: str, group: dict[str, Any], *, more: list[Cast] | None = None, **given: Any
) -> Scenario:
    cast = [Cast(f"publisher{number}", "publisher", NEWS, FOREVER) for number in range(2)]
    cast += [Cast(f"member{number}", "receiver", MEMBER, FOREVER) for number in range(2)]
    cast += [Cast("receiver0", "receiver", ORDERS, FOREVER)]
    cast += [Cast("reader0", "log reader", NEWS, FOREVER)]
    copy = {"protocol": "queue", "endpoint": "orders"}
    return Scenario(
        family=family,
        queues={"dead": _DEAD, "orders": _PLAIN},
        subscriptions={"copy": copy, "group": group},
        cast=(*cast, *(more or ())),
        pause_ms=300,
        big_bodies=False,
        attempts=0.5,
        deduplication=0.2,
        **_SHORT,
        **given,
    )


def _rewound_groups(family: str, attributes: dict[str, Any]) -> Scenario:
    """A group that is rewound, and another group that begins with earlier messages."""
    retry = {"policy": "custom", "waits": [0.5] * 100}
    group = {"protocol": "pull", "retry": retry, **attributes}
    late = Place("news/late", topic=True)
    topic = _topic(family, group)
    more = [
        Cast("rewinder", "group rewinder", MEMBER, FOREVER),
        Cast("late0", "receiver", late, FOREVER),
        Cast("opener", "opener", late, FOREVER),
    ]
    return replace(
        topic,
        late=group | {"start": "earliest"},
        rewound=True,
        deduplication=0,
        cast=(*topic.cast, *more),
    )


def _halves(family: str, **given: Any) -> Scenario:
    cast = [Cast(f"producer{number}", "half producer", NEWS, FOREVER) for number in range(2)]
    cast.append(Cast("checker0", "checker", NEWS, FOREVER))
    cast.append(Cast("receiver0", "receiver", ORDERS, FOREVER))
    copy = {"protocol": "queue", "endpoint": "orders"}
    return Scenario(
        family=family,
        queues={"orders": _PLAIN},
        subscriptions={"copy": copy},
        cast=tuple(cast),
        pause_ms=300,
        attempts=0.5,
        deduplication=0,
        halves=True,
        **{"big_bodies": False, **_SHORT, **given},
    )
