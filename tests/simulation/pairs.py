"""Scenarios in which two features meet, with the checks of both.

Each begins as a scenario of one family, and gets what another one has. What any scenario may be
besides is drawn last: in objects, with small pages, with a secret that is turned over.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.simulation.families import (
    draw_invoke,
    draw_plain_group,
    draw_retry,
    plain_scenario_of,
    topic_scenario,
    trigger_scenario,
)
from tests.simulation.own_families import (
    cancelled_scenario,
    delayed_scenario,
    early_scenario,
    fair_scenario,
    half_scenario,
    replaced_scenario,
    replies_scenario,
    rewound_scenario,
)
from tests.simulation.scenario import (
    BROKEN,
    CANCELLED,
    CHOSEN,
    DELAYED,
    EARLY,
    FAIR,
    FLOW,
    GRANTED,
    HALF,
    PAUSED,
    PRIORITY,
    REDELIVERED,
    REDRIVEN,
    REPLACED,
    REPLIES,
    REWOUND,
    SCHEDULED,
    TRIGGERS,
)
from tests.simulation.specials import in_objects, turned_over

from cirrusmq.storage.bodies.object import DAY_MS
from cirrusmq_local.judging.places import Place
from cirrusmq_local.judging.scenario import (
    DEAD,
    NEWS,
    OBJECTS,
    ORDERS,
    UNTRIED,
    Cast,
    Scenario,
)
from cirrusmq_local.testing.core import FUNCTION

Draw = random.Random
Make = Callable[[Draw], Scenario]
_TENANTS = ("loud", "loud", "loud", "red", "blue", "green", None)
_HALF_AN_HOUR_MS = 1_800_000
_GROUP = Place("news/group", topic=True)
_IN_OBJECTS, _TURNED_OVER, _UNTRIED, _WAITING, _SMALL_PAGES = 0.15, 0.08, 0.25, 0.2, 0.4
"""The shares of scenarios that are besides in objects, turned over, with consumers that give back
untried, with such that wait for long, and with pages of a few parcels."""


def pair_scenario(name: str, draw: Draw) -> Scenario:
    """The scenario of a pair."""
    features, make = PAIRS[name]
    scenario = replace(make(draw), family=name, features=features)
    if draw.random() < _UNTRIED and not scenario.untried:
        scenario = replace(scenario, untried=0.5)
    if draw.random() < _SMALL_PAGES:
        scenario = replace(scenario, small_pages=True)
    if draw.random() < _WAITING:
        scenario = replace(scenario, waits=(0, 2, 10, 20))
    if draw.random() < _TURNED_OVER:
        scenario = turned_over(draw, scenario)
    if draw.random() < _IN_OBJECTS and not scenario.objects_from:
        return in_objects(draw, scenario)
    return scenario


def _until(make: Make, draw: Draw, fits: Callable[[Scenario], bool]) -> Scenario:
    """The first scenario that fits."""
    while not fits(scenario := make(draw)):
        pass
    return scenario


def _with(
    scenario: Scenario,
    *cast: Cast,
    without: tuple[str, ...] = (),
    orders: dict[str, Any] | None = None,
    **changes: Any,
) -> Scenario:
    """The scenario with more actors, more attributes of `orders`, and other changes.

    If that makes it fair, it has tenants. without: parts of actors that are left out.
    """
    left = [each for each in scenario.cast if each.part not in without]
    if (orders or {}).get("fair"):
        changes["tenants"] = _TENANTS
    queues = scenario.queues | {"orders": scenario.queues["orders"] | (orders or {})}
    if "dead_letter" in queues["orders"]:
        queues = {"dead": {"partitions": 1}} | queues
    return replace(scenario, queues=queues, cast=(*left, *cast), **changes)


def _is_unordered(scenario: Scenario) -> bool:
    return not scenario.grouped


def _rewound_functions(draw: Draw) -> Scenario:
    """A group whose function gets everything, and that is rewound."""
    scenario = rewound_scenario(draw)
    group = scenario.subscriptions["group"] | {"invoke": draw_invoke(draw)}
    if "retry" in group:
        group["retry"] = group["retry"] | {"jitter": 0}
    members = [each for each in scenario.cast if each.name.startswith("group")]
    return replace(
        scenario,
        subscriptions=scenario.subscriptions | {"group": group},
        cast=tuple(each for each in scenario.cast if each not in members),
        failing=draw.choice((0, 0.2)),
    )


def _fair_functions(draw: Draw) -> Scenario:
    """A fair queue that names a function."""
    scenario = _until(trigger_scenario, draw, _is_unordered)
    orders: dict[str, Any] = {"fair": True}
    if draw.random() < 0.4:
        orders["max_in_flight"] = draw.choice((1, 2))
    return _with(scenario, orders=orders, attempts=0.5)


def _operated(draw: Draw, scenario: Scenario, *, rewound: float, purged: float) -> Scenario:
    """With who rewinds, changes or purges its queue, so often; one of them at least."""
    orders: dict[str, Any] = {}
    cast: list[Cast] = []
    if draw.random() < rewound:
        orders["rewind_seconds"] = 3_600
        cast.append(Cast("rewinder", "rewinder", ORDERS, 2))
    if draw.random() < 0.4:
        cast.append(Cast("changer", "changer", ORDERS, 2))
    if draw.random() < purged or not cast:
        cast.append(Cast("purger", "purger", ORDERS, 1))
    return _with(scenario, *cast, orders=orders)


def _operated_functions(draw: Draw) -> Scenario:
    """A queue that names a function, and is rewound, purged or changed."""
    scenario = _until(trigger_scenario, draw, lambda each: not each.quiet)
    return _operated(draw, scenario, rewound=0.6, purged=0.2)


def _delayed_functions(draw: Draw) -> Scenario:
    """A group whose function gets what is published for later."""
    scenario = _until(
        trigger_scenario, draw, lambda each: bool(each.subscriptions) and not each.grouped
    )
    return replace(scenario, delayed=True)


def _half_functions(draw: Draw) -> Scenario:
    """A group whose function gets what half messages publish."""
    scenario = half_scenario(draw)
    group = scenario.subscriptions["group"] | {"invoke": draw_invoke(draw)}
    return replace(
        scenario,
        subscriptions=scenario.subscriptions | {"group": group},
        cast=tuple(each for each in scenario.cast if each.place != _GROUP),
        failing=draw.choice((0, 0.2)),
    )


def _early_fair(draw: Draw) -> Scenario:
    """A fair queue that gets a receiver which begins with the backlog."""
    scenario = _until(early_scenario, draw, _is_unordered)
    return _with(scenario, orders={"fair": True}, attempts=0.5)


def _in_fair(make: Make) -> Make:
    """The same in a fair queue: messages replace others of other groups, too."""

    def scenario(draw: Draw) -> Scenario:
        orders: dict[str, Any] = {"fair": True}
        if draw.random() < 0.3:
            orders["max_in_flight"] = draw.choice((1, 2))
        return _with(make(draw), orders=orders)

    return scenario


def _in_priorities(make: Make) -> Make:
    """The same in a queue with priorities: messages replace others of other levels, too."""
    return lambda draw: _with(make(draw), orders=_PRIORITIES)


def _in_operated(make: Make, *, purged: float) -> Make:
    """The same in a queue that is rewound, changed or purged."""
    return lambda draw: _operated(draw, make(draw), rewound=0.5, purged=purged)


def _beside_letters(make: Make, *, retried: float = 0.7, steps: int = 3) -> Make:
    """The same beside dead letters and, with a probability, retries.

    steps: of the consumer of the dead letters.
    """

    def scenario(draw: Draw) -> Scenario:
        limit = {"queue": "dead", "max_receives": draw.choice((1, 2))}
        orders: dict[str, Any] = {"dead_letter": limit}
        if draw.random() < retried:
            orders["retry"] = draw_retry(draw)
        undertaker = Cast("undertaker", "receiver", DEAD, steps)
        return _with(make(draw), undertaker, orders=orders)

    return scenario


def _beside_cancellers(make: Make) -> Make:
    """The same, whose messages are cancelled or put off before anybody receives them."""

    def scenario(draw: Draw) -> Scenario:
        cast = [Cast(f"canceller{n}", "canceller", ORDERS, draw.choice((5, 9))) for n in range(2)]
        return _with(make(draw), *cast)

    return scenario


def _cancelled_receivers(draw: Draw) -> Scenario:
    """Cancelled messages beside a receiver that has its own copy, of which some are cancelled."""
    audit = Place("orders/audit")
    auditor = Cast("auditor", "receiver", audit, 5)
    canceller = Cast("audit canceller", "canceller", audit, 5)
    return _with(cancelled_scenario(draw), auditor, canceller, receivers=("audit",))


def _delayed_rewound(draw: Draw) -> Scenario:
    """Groups that are rewound, of a topic with messages for later."""
    scenario = _until(rewound_scenario, draw, _is_unordered)
    return replace(scenario, delayed=True, attempts=0.5)


def _delayed_flow(draw: Draw) -> Scenario:
    """URLs with a rate, and messages for later."""
    scenario = _until(
        delayed_scenario, draw, lambda each: "http" in {s["protocol"] for s in _hooks(each)}
    )
    hooks = {
        name: each | {"rate": draw.choice((1, 2, 3, 25))} if each["protocol"] == "http" else each
        for name, each in scenario.subscriptions.items()
    }
    return replace(scenario, subscriptions=hooks, pause_ms=draw.choice((0, 300, 1_500)))


def _hooks(scenario: Scenario) -> list[dict[str, Any]]:
    return list(scenario.subscriptions.values())


def _half_rewound(draw: Draw) -> Scenario:
    """Groups that are rewound, or begin with what was before, and half messages."""
    late = Place("news/late", topic=True)
    cast = [
        Cast("opener", "opener", late, 1),
        Cast("late0", "receiver", late, 4),
        Cast("rewinder of group", "group rewinder", _GROUP, draw.choice((1, 2))),
    ]
    scenario = half_scenario(draw)
    return _with(
        scenario,
        *cast,
        subscriptions=scenario.subscriptions | {"group": draw_plain_group(draw)},
        late=draw_plain_group(draw) | {"start": "earliest"},
        rewound=True,
        attempts=0,
    )


def _fair_ages(draw: Draw) -> Scenario:
    """A fair queue whose messages are dead letters at an age."""
    scenario = fair_scenario(draw, ("dead", "retries"))
    limit = scenario.queues["orders"]["dead_letter"] | {"max_age_seconds": 300}
    orders = {"dead_letter": limit, "message_retention_seconds": 345_600}
    return _with(scenario, orders=orders, sleep_ms=draw.choice((0, 600_000)))


def _purged_duplicates(draw: Draw) -> Scenario:
    """Deduplicated messages, and purges."""
    scenario = plain_scenario_of(draw, draw.choice(("plain", "dead", "rewinding", "receivers")))
    orders = {"fair": True} if draw.random() < 0.4 else {}
    return _with(
        scenario,
        Cast("purger", "purger", ORDERS, draw.choice((1, 2))),
        without=("purger",),
        orders=orders,
        deduplication=0.7,
    )


def _paused_groups(draw: Draw) -> Scenario:
    """A group that is paused and resumed, and perhaps rewound."""
    if draw.random() < 0.4:
        scenario = rewound_scenario(draw)
    else:
        scenario = topic_scenario(draw, draw.choice(("pull", "ordered pull")))
    return _with(_busier(scenario), Cast("pauser", "pauser", _GROUP, 2))


def _paused_urls(draw: Draw) -> Scenario:
    """URLs that are paused and resumed."""
    scenario = topic_scenario(draw, "http")
    return _with(_busier(scenario), *_at_urls(scenario, "pauser", 2))


def _at_urls(scenario: Scenario, part: str, steps: int) -> list[Cast]:
    """An actor at each of the topic's URLs."""
    return [
        Cast(f"{part} of {name}", part, Place(f"news/{name}", topic=True), steps)
        for name, each in scenario.subscriptions.items()
        if each["protocol"] == "http"
    ]


def _paused_queues(draw: Draw) -> Scenario:
    """A queue or one of its receivers that is paused and resumed, or one that names a function."""
    kinds = ("plain", "retries", "dead", "ordered", "rewinding", "receivers", "function")
    kind = draw.choice(kinds)
    if kind == "function":
        scenario = _until(trigger_scenario, draw, lambda each: not each.subscriptions)
        scenario = replace(scenario, quiet=False)
    else:
        scenario = _busier(plain_scenario_of(draw, kind))
    place = Place("orders/audit") if kind == "receivers" and draw.random() < 0.5 else ORDERS
    return _with(scenario, Cast("pauser", "pauser", place, 2))


def _paused_ages(draw: Draw) -> Scenario:
    """A queue with a limit of age that is paused for longer than that."""
    limit = {"queue": "dead", "max_age_seconds": 300}
    kind = draw.choice(("plain", "dead", "ordered"))
    orders: dict[str, Any] = {"dead_letter": limit, "message_retention_seconds": 345_600}
    if draw.random() < 0.3 and kind != "ordered":
        orders["fair"] = True
    scenario = _with(plain_scenario_of(draw, kind), orders=orders)
    pauser, sweeper = Cast("pauser", "pauser", ORDERS, 1), Cast("sweeper0", "sweeper", ORDERS, 8)
    return _with(scenario, pauser, sweeper, paused_ms=draw.choice((0, 400_000)))


def _paused_functions(draw: Draw) -> Scenario:
    """A group that names a function, and is paused and resumed."""
    scenario = _until(
        trigger_scenario, draw, lambda each: bool(each.subscriptions) and not each.quiet
    )
    return _with(scenario, Cast("pauser", "pauser", _GROUP, 2))


def _redriven_queues(draw: Draw) -> Scenario:
    """A queue whose dead letters are redriven in all ways."""
    kind = draw.choice(("dead", "retries", "ordered"))
    orders: dict[str, Any] = {
        "dead_letter": {"queue": "dead", "max_receives": draw.choice((1, 1, 2))}
    }
    if kind != "ordered" and draw.random() < 0.3:
        orders["fair"] = True
    return _redriven(_with(plain_scenario_of(draw, kind), orders=orders))


def _redriven_groups(draw: Draw) -> Scenario:
    """A group whose dead letters are redriven to it."""
    scenario = topic_scenario(draw, draw.choice(("pull", "ordered pull")))
    return _redriven(_with(_busier(scenario), poisoned=draw.random() < 0.5))


def _redriven_functions(draw: Draw) -> Scenario:
    """A queue or group that names a function, whose dead letters are redriven to it."""
    scenario = _until(
        trigger_scenario,
        draw,
        lambda each: (
            not each.quiet and bool(each.subscriptions or "dead_letter" in each.queues["orders"])
        ),
    )
    return _redriven(replace(scenario, failing=draw.choice((0.5, 0.8))))


def _redriven_urls(draw: Draw) -> Scenario:
    """URLs that give up after two retries, whose dead letters are redriven to them."""
    scenario = _until(
        lambda draw: topic_scenario(draw, "http"),
        draw,
        lambda each: any("dead_letter_queue" in hook for hook in _hooks(each)),
    )
    return _redriven(replace(scenario, failing=draw.choice((0.2, 0.6))))


def _redriven(scenario: Scenario) -> Scenario:
    """The same, with redrives of all kinds, and a consumer of the dead letters."""
    cast = [each for each in scenario.cast if each.part != "redriver" and each.place != DEAD]
    cast += [Cast(f"undertaker{n}", "receiver", DEAD, 6) for n in range(2)]
    cast.append(Cast("redriver", "redriver", DEAD, 5))
    ways = ("all", "ids", "receipts", "receipts", "reason")
    return replace(scenario, cast=tuple(cast), redrives=ways)


def _shared_functions(draw: Draw) -> Scenario:
    """A group that names a function, beside another account's: they share the workers."""
    scenario = _until(
        trigger_scenario, draw, lambda each: bool(each.subscriptions) and not each.quiet
    )
    invoke = {"function": FUNCTION, "max_concurrency": 6, "batch": 1, "timeout_seconds": 60}
    group = scenario.subscriptions["group"] | {"invoke": invoke}
    return _with(
        scenario,
        Cast("neighbour", "neighbour", NEWS, draw.choice((6, 12))),
        subscriptions=scenario.subscriptions | {"group": group},
        pause_ms=draw.choice((300, 1_500, 10_000)),
        failing=draw.choice((0, 0.2)),
        workers=draw.choice((4, 4, 8)),
        unfailing=draw.random() < 0.7,
    )


def _redelivered_groups(draw: Draw) -> Scenario:
    """A group that gets some of its messages again, by their ids."""
    scenario = topic_scenario(draw, draw.choice(("pull", "ordered pull")))
    ordered = scenario.subscriptions["group"].get("ordered", False)
    group = _until_plain(draw, ordered=ordered)
    scenario = replace(
        scenario, subscriptions=scenario.subscriptions | {"group": group}, longer_retries=True
    )
    return _with(_busier(scenario), Cast("redeliverer", "redeliverer", _GROUP, 6))


def _until_plain(draw: Draw, *, ordered: bool) -> dict[str, Any]:
    while (group := draw_plain_group(draw)).get("ordered", False) != ordered:
        pass
    return group


def _redelivered_rewound(draw: Draw) -> Scenario:
    """A group that is rewound, and gets some of its messages again by their ids."""
    scenario = rewound_scenario(draw)
    return _with(scenario, Cast("redeliverer", "redeliverer", _GROUP, 5))


def _redelivered_urls(draw: Draw) -> Scenario:
    """URLs that get some of their messages again."""
    scenario = _until(
        lambda draw: topic_scenario(draw, "http"),
        draw,
        lambda each: not any("dead_letter_queue" in hook for hook in _hooks(each)),
    )
    return _with(scenario, *_at_urls(scenario, "redeliverer", 6))


def _busier(scenario: Scenario) -> Scenario:
    """The same, whose receivers do three times as much."""
    cast = [
        replace(each, steps=3 * each.steps) if each.part == "receiver" else each
        for each in scenario.cast
    ]
    return replace(scenario, cast=tuple(cast))


def _late_objects(draw: Draw) -> Scenario:
    """Copies of a topic in a queue, made late, which outlive the objects of their publishes."""
    scenario = topic_scenario(draw, "ordered copies")
    if draw.random() < 0.5:
        scenario = _with(scenario, orders={"ordered": False, "rewind_seconds": 3_600})
    life_ms = 1_000 * scenario.queues["orders"]["message_retention_seconds"]
    scenario = replace(
        in_objects(draw, _with(scenario, without=("log reader",))),
        objects_from=1,
        fan_out_after_ms=2 * _HALF_AN_HOUR_MS,
        sleep_ms=life_ms - _HALF_AN_HOUR_MS,
    )
    return replace(scenario, object_day_ms=draw.choice((60_000, 60_000, DAY_MS)))


def _overdue_halves(draw: Draw) -> Scenario:
    """Half messages that nobody decides, and whose producers ask again after a day."""
    return _with(
        half_scenario(draw),
        without=("checker",),
        check_after=(60, 3_600),
        sleep_ms=86_400_000 + draw.choice((1_000, 20_000, 600_000)),
    )


def _untried_letters(draw: Draw) -> Scenario:
    """Messages that consumers give back untried, of a queue that gives up after few tries."""
    kind = draw.choice(("dead", "retries", "poison", "ordered"))
    scenario = plain_scenario_of(draw, kind)
    limit = {"queue": "dead", "max_receives": draw.choice((1, 1, 2, 3))}
    orders: dict[str, Any] = {"dead_letter": limit}
    if kind != "ordered" and draw.random() < 0.3:
        orders["fair"] = True
    return _with(_busier(scenario), orders=orders, untried=0.7)


def _untried_groups(draw: Draw) -> Scenario:
    """Messages that members of a group give back untried."""
    scenario = topic_scenario(draw, draw.choice(("pull", "ordered pull")))
    return replace(_busier(scenario), untried=0.6)


def _granted_queues(draw: Draw) -> Scenario:
    """A queue to which another account sends, too, with all that moves messages."""
    kinds = ("dead", "retries", "rewinding", "ordered", "ordered receivers", "receivers")
    return _with_guest(plain_scenario_of(draw, draw.choice(kinds)))


def _granted_topics(draw: Draw) -> Scenario:
    """A topic to which another account publishes, too."""
    return _with_guest(
        topic_scenario(draw, draw.choice(("pull", "ordered pull", "ordered copies")))
    )


def _chosen_groups(draw: Draw) -> Scenario:
    """An ordered queue, or a group of one of a topic, of which receives take one group."""
    if draw.random() < 0.3:
        return replace(topic_scenario(draw, "ordered pull"), choices=0.5)
    kind = draw.choice(("ordered", "ordered receivers"))
    return replace(plain_scenario_of(draw, kind), choices=draw.choice((0.3, 0.8)))


def _chosen_fair(draw: Draw) -> Scenario:
    """A fair queue of which receives take one group out of its turn."""
    return replace(fair_scenario(draw), choices=draw.choice((0.3, 0.6)))


def _chosen_attributes(draw: Draw) -> Scenario:
    """A queue of which receives take what has a color, beside others that take all."""
    kinds = ("plain", "plain", "dead", "retries", "poison", "rewinding", "receivers", "pull")
    kind = draw.choice(kinds)
    made = topic_scenario(draw, kind) if kind == "pull" else plain_scenario_of(draw, kind)
    return replace(_busier(made), choices=draw.choice((0.4, 0.9)))


def _rated_queues(draw: Draw) -> Scenario:
    """A queue with rates, of which more is sent and asked for."""
    kinds = ("plain", "ordered", "dead", "retries", "priorities", "fair")
    kind = draw.choice(kinds)
    rates: dict[str, Any] = {"send_rate": 5, "receive_rate": draw.choice((1, 2))}
    made = plain_scenario_of(draw, "plain" if kind in ("priorities", "fair") else kind)
    if kind == "priorities":
        rates |= _PRIORITIES
    if kind == "fair":
        rates["fair"] = True
    made = _with(_busier(made), orders=rates)
    return replace(made, pause_ms=draw.choice((0, 0, 300)), unfailing=draw.random() < 0.4)


def _broken_urls(draw: Draw) -> Scenario:
    """URLs with a breaker that fail for a while, to which more is posted than opens it."""
    scenario = topic_scenario(draw, "http")
    retries: dict[str, Any] = {"policy": "custom", "waits": [draw.choice((1, 5))] * 2}
    hooks = {
        name: each
        | {
            "retry": retries,
            "dead_letter_queue": "dead",
            "breaker": {"share": draw.choice((0.2, 0.5, 1.0))},
            "max_in_flight": draw.choice((1, 2, 4)),
            "rate": draw.choice((None, None, 25)),
        }
        for name, each in scenario.subscriptions.items()
        if each["protocol"] == "http"
    }
    cast = [
        replace(each, steps=draw.choice((8, 16))) if each.part == "publisher" else each
        for each in scenario.cast
    ]
    if draw.random() < 0.3:
        cast.append(Cast("pauser", "pauser", Place("news/hook0", topic=True), 2))
    return replace(
        scenario,
        subscriptions=scenario.subscriptions | hooks,
        cast=tuple(cast),
        pause_ms=draw.choice((0, 300, 10_000)),
        outage_ms=(0, draw.choice((60_000, 100_000, 300_000))),
        failing=draw.choice((0, 0, 0.1)),
        unfailing=draw.random() < 0.8,
    )


_PRIORITIES: dict[str, Any] = {"priorities": 16, "partitions": 1}


def _priority_queues(draw: Draw) -> Scenario:
    """A queue with priorities, of which messages are held, given back, and come again."""
    scenario = plain_scenario_of(draw, draw.choice(("plain", "plain", "rewinding", "receivers")))
    small = draw.random() < 0.5
    return _with(_busier(scenario), orders=_PRIORITIES, small_pages=small)


def _priority_letters(draw: Draw) -> Scenario:
    """A queue with priorities whose messages die and are redriven, are cancelled and put off."""
    if draw.random() < 0.5:
        return _with(cancelled_scenario(draw), orders=_PRIORITIES)
    scenario = plain_scenario_of(draw, draw.choice(("dead", "retries", "poison")))
    return _with(_busier(scenario), orders=_PRIORITIES)


def _priority_copies(draw: Draw) -> Scenario:
    """A queue with priorities that gets a receiver from the beginning, or names a function."""
    if draw.random() < 0.5:
        scenario = _until(early_scenario, draw, lambda each: not each.grouped)
    else:
        scenario = _until(
            trigger_scenario, draw, lambda each: not each.subscriptions and not each.grouped
        )
    return _with(scenario, orders=_PRIORITIES)


def _with_guest(scenario: Scenario) -> Scenario:
    """The same, with a sender of another account beside each sender."""
    senders = [each for each in scenario.cast if each.part in ("sender", "publisher")]
    guests = [
        replace(each, name=f"guest{number}", part="guest") for number, each in enumerate(senders)
    ]
    return replace(scenario, cast=scenario.cast + tuple(guests))


def _rewound_letters(draw: Draw) -> Scenario:
    """An ordered queue that is rewound to before its dead letters, which ended long ago."""
    orders: dict[str, Any] = {
        "dead_letter": {"queue": "dead", "max_receives": 1},
        "rewind_seconds": 3_600,
        "message_retention_seconds": 345_600,
    }
    rewinder = Cast("rewinder of letters", "rewinder", ORDERS, 3)
    scenario = _with(_busier(plain_scenario_of(draw, "ordered")), rewinder, orders=orders)
    return replace(scenario, pause_ms=draw.choice((4_000, 20_000, 40_000)))


def _notified_copies(draw: Draw) -> Scenario:
    """A queue with a topic's copies that are notifications, beside what is sent to it as it is;
    with a receiver, dead letters and redrives."""
    kind = draw.choice(("pull", "ordered copies"))
    orders: dict[str, Any] = {"dead_letter": {"queue": "dead", "max_receives": draw.choice((1, 2))}}
    if kind == "pull" and draw.random() < 0.3:
        orders["fair"] = True
    receivers = ("audit",) if draw.random() < 0.4 else ()
    cast = [Cast("sender0", "sender", ORDERS, 3), Cast("redriver", "redriver", DEAD, 3)]
    cast += [Cast(f"undertaker{n}", "receiver", DEAD, 4) for n in range(2)]
    cast += [Cast(name, "receiver", Place(f"orders/{name}"), 4) for name in receivers]
    return _with(
        _busier(topic_scenario(draw, kind)),
        *cast,
        orders=orders,
        receivers=receivers,
        notified=True,
        redrives=("all", "ids", "receipts", "reason"),
    )


def _replaced_functions(draw: Draw) -> Scenario:
    """A queue that names a function, with messages that replace others before it gets them."""
    scenario = _until(
        trigger_scenario, draw, lambda each: not each.subscriptions and not each.grouped
    )
    scenario = replace(scenario, replacing=0.8, attempts=0.5, deduplication=0)
    return _with(scenario, orders={"delay_seconds": draw.choice((0, 2, 5))})


def _asked_granted(draw: Draw) -> Scenario:
    """Requests of another account, by a grant."""
    return _with_guest(replies_scenario(draw))


def _rated_groups(draw: Draw) -> Scenario:
    """A fair queue whose groups have a rate, of which more is sent and asked for."""
    kinds = ("plain", "plain", "plain", "retries", "dead", "rewinding", "receivers")
    orders: dict[str, Any] = {"rate": draw.choice((1, 1, 2))}
    if draw.random() < 0.15:
        orders["receive_rate"] = 5
    made = _with(_busier(fair_scenario(draw, kinds)), orders=orders)
    return replace(
        made,
        tenants=(*("loud",) * 12, "red", None),
        pause_ms=draw.choice((0, 0, 300)),
        choices=draw.choice((0, 0, 0.9)),
        unfailing=draw.random() < 0.4,
    )


def _rated_group_functions(draw: Draw) -> Scenario:
    """A fair queue whose groups have a rate, and that names a function."""
    made = _fair_functions(draw)
    rate = draw.choice((1, 2, 5))
    return _with(made, orders={"rate": rate}, tenants=(*("loud",) * 6, "red"))


_AGEING: dict[str, Any] = {"priorities": 2, "ageing_seconds": 10}


def _much_busier(draw: Draw, scenario: Scenario) -> Scenario:
    """The same with so many sends that its receivers do not get all at once."""
    steps = {"sender": draw.choice((8, 16)), "receiver": draw.choice((16, 30))}
    cast = [replace(each, steps=steps.get(each.part, each.steps)) for each in scenario.cast]
    return replace(scenario, cast=tuple(cast))


def _aged_priorities(draw: Draw) -> Scenario:
    """A queue whose priorities age, with more messages than its receivers get at once."""
    scenario = plain_scenario_of(draw, draw.choice(("plain", "plain", "rewinding", "receivers")))
    scenario = _much_busier(draw, scenario)
    orders = _PRIORITIES | _AGEING | {"visibility_timeout_seconds": 70}
    return _with(
        scenario,
        orders=orders,
        small_pages=draw.random() < 0.5,
        takes=draw.choice(((1,), (1, 2))),
        pause_ms=draw.choice((1_500, 4_000)),
        unfailing=draw.random() < 0.6,
    )


def _aged_copies(draw: Draw) -> Scenario:
    """Priorities that age beside dead letters, retries, backlogs of receivers and functions."""
    kind = draw.choice((_priority_letters, _priority_copies))
    return _with(kind(draw), orders=_AGEING, pause_ms=draw.choice((300, 4_000)))


def _spread_priorities(draw: Draw) -> Scenario:
    """Priorities in several partitions, with more messages than its receivers get at once.

    Some age. Receivers are quick, so that they go by looks of others, which are soon too old.
    """
    kind = draw.choice((_priority_queues, _aged_priorities))
    scenario = kind(draw)
    scenario = _much_busier(draw, scenario)
    return _with(
        scenario,
        orders={"partitions": draw.choice((2, 3, 5))},
        pause_ms=draw.choice((200, 700, 1_500)),
        takes=draw.choice(((1,), (1, 2), scenario.takes)),
        unfailing=draw.random() < 0.6,
    )


def _spread_copies(draw: Draw) -> Scenario:
    """Priorities in several partitions, beside dead letters, retries, receivers and functions."""
    kind = draw.choice((_priority_letters, _priority_copies, _aged_copies))
    return _with(kind(draw), orders={"partitions": draw.choice((2, 3, 5))})


def _broken_functions(draw: Draw) -> Scenario:
    """Functions with a breaker that fail for a while, at more than opens it.

    Their queue is plain, ordered, fair or has priorities, or they are a group's; some are paused.
    """
    kind = draw.choice(("plain", "ordered", "fair", "priorities", "group"))

    def fits(made: Scenario) -> bool:
        if made.quiet or bool(made.subscriptions) != (kind == "group"):
            return False
        return made.grouped == (kind == "ordered")

    scenario = _until(trigger_scenario, draw, fits)
    breaker = {"breaker": {"share": draw.choice((0.2, 0.5, 1.0))}}
    orders: dict[str, Any] = {
        "invoke": scenario.queues["orders"]["invoke"] | breaker,
        "visibility_timeout_seconds": draw.choice((1, 5)),
    }
    if kind == "fair":
        orders["fair"] = True
    if kind == "priorities":
        orders |= _PRIORITIES
    groups = {
        name: each | {"invoke": each["invoke"] | breaker} if "invoke" in each else each
        for name, each in scenario.subscriptions.items()
    }
    cast = [
        replace(each, steps=draw.choice((8, 16))) if each.part in ("publisher", "sender") else each
        for each in scenario.cast
    ]
    if draw.random() < 0.2:
        cast.append(Cast("pauser", "pauser", ORDERS, 2))
    return _with(
        replace(scenario, cast=tuple(cast), subscriptions=scenario.subscriptions | groups),
        orders=orders,
        pause_ms=draw.choice((0, 300, 10_000)),
        outage_ms=(0, draw.choice((60_000, 100_000, 300_000))),
        failing=draw.choice((0, 0, 0.1)),
        unfailing=draw.random() < 0.8,
    )


def _scheduled_queues(draw: Draw) -> Scenario:
    """A queue beside another one, into which schedules put messages while two sweeps run."""
    scenario = plain_scenario_of(draw, draw.choice(("plain", "dead")))
    cast = [Cast("scheduler0", "scheduler", ORDERS, draw.choice((3, 6)))]
    cast += [Cast(f"sweeper{n}", "sweeper", ORDERS, draw.choice((8, 20))) for n in range(2)]
    kept = {"message_retention_seconds": 345_600}
    return _with(scenario, *cast, without=("meter", "sweeper"), orders=kept, attempts=0)


def _scheduled_topics(draw: Draw) -> Scenario:
    """Schedules that publish to a topic, or put into the queue that has its copies."""
    return replace(_scheduled_queues(draw), scheduled_topic=True)


def _set_clocks(draw: Draw) -> Scenario:
    """Schedules in a zone whose clocks are set forward or back while they fire."""
    minutes = draw.choice((60, 30, -30, -60))
    clock_set = draw.randint(4, 30) * 60_000, minutes
    return replace(_scheduled_queues(draw), clock_set=clock_set)


PAIRS: dict[str, tuple[tuple[str, ...], Make]] = {
    "rewound functions": ((REWOUND, TRIGGERS), _rewound_functions),
    "fair functions": ((FAIR, TRIGGERS), _fair_functions),
    "operated functions": ((TRIGGERS,), _operated_functions),
    "delayed functions": ((DELAYED, TRIGGERS), _delayed_functions),
    "half functions": ((HALF, TRIGGERS), _half_functions),
    "early fair": ((EARLY, FAIR), _early_fair),
    "cancelled fair": ((CANCELLED, FAIR), _in_fair(cancelled_scenario)),
    "cancelled letters": ((CANCELLED,), _beside_letters(cancelled_scenario)),
    "cancelled receivers": ((CANCELLED,), _cancelled_receivers),
    "cancelled operated": ((CANCELLED,), _in_operated(cancelled_scenario, purged=0.3)),
    "delayed rewound": ((DELAYED, REWOUND), _delayed_rewound),
    "delayed flow": ((DELAYED, FLOW), _delayed_flow),
    "half rewound": ((HALF, REWOUND), _half_rewound),
    "fair ages": ((FAIR,), _fair_ages),
    "purged duplicates": ((), _purged_duplicates),
    "paused groups": ((PAUSED,), _paused_groups),
    "paused URLs": ((PAUSED,), _paused_urls),
    "paused functions": ((PAUSED, TRIGGERS), _paused_functions),
    "redriven queues": ((REDRIVEN,), _redriven_queues),
    "redriven groups": ((REDRIVEN,), _redriven_groups),
    "redriven functions": ((REDRIVEN, TRIGGERS), _redriven_functions),
    "redriven URLs": ((REDRIVEN,), _redriven_urls),
    "late objects": ((OBJECTS,), _late_objects),
    "overdue halves": ((HALF,), _overdue_halves),
    "untried letters": ((UNTRIED,), _untried_letters),
    "untried groups": ((UNTRIED,), _untried_groups),
    "rewound letters": ((), _rewound_letters),
    "shared functions": ((TRIGGERS,), _shared_functions),
    "redelivered groups": ((REDELIVERED,), _redelivered_groups),
    "redelivered rewound": ((REDELIVERED, REWOUND), _redelivered_rewound),
    "redelivered URLs": ((REDELIVERED,), _redelivered_urls),
    "granted queues": ((GRANTED,), _granted_queues),
    "granted topics": ((GRANTED,), _granted_topics),
    "chosen groups": ((CHOSEN,), _chosen_groups),
    "chosen fair": ((CHOSEN, FAIR), _chosen_fair),
    "chosen attributes": ((CHOSEN,), _chosen_attributes),
    "paused queues": ((PAUSED,), _paused_queues),
    "paused ages": ((PAUSED,), _paused_ages),
    "priority queues": ((PRIORITY,), _priority_queues),
    "priority letters": ((PRIORITY,), _priority_letters),
    "priority copies": ((PRIORITY,), _priority_copies),
    "notified copies": ((REDRIVEN,), _notified_copies),
    "rated queues": ((), _rated_queues),
    "broken URLs": ((BROKEN,), _broken_urls),
    "replaced fair": ((REPLACED, FAIR), _in_fair(replaced_scenario)),
    "replaced letters": ((REPLACED,), _beside_letters(replaced_scenario)),
    "replaced priorities": ((REPLACED, PRIORITY), _in_priorities(replaced_scenario)),
    "replaced cancelled": ((REPLACED, CANCELLED), _beside_cancellers(replaced_scenario)),
    "replaced operated": ((REPLACED,), _in_operated(replaced_scenario, purged=0.4)),
    "replaced functions": ((REPLACED, TRIGGERS), _replaced_functions),
    "asked fair": ((REPLIES, FAIR), _in_fair(replies_scenario)),
    "asked letters": ((REPLIES,), _beside_letters(replies_scenario, retried=0.5, steps=4)),
    "asked priorities": ((REPLIES, PRIORITY), _in_priorities(replies_scenario)),
    "asked operated": ((REPLIES,), _in_operated(replies_scenario, purged=0.4)),
    "asked cancelled": ((REPLIES, CANCELLED), _beside_cancellers(replies_scenario)),
    "asked granted": ((REPLIES, GRANTED), _asked_granted),
    "rated groups": ((FAIR,), _rated_groups),
    "rated group functions": ((FAIR, TRIGGERS), _rated_group_functions),
    "aged priorities": ((PRIORITY,), _aged_priorities),
    "aged copies": ((PRIORITY,), _aged_copies),
    "broken functions": ((BROKEN, TRIGGERS), _broken_functions),
    "scheduled queues": ((SCHEDULED,), _scheduled_queues),
    "spread priorities": ((PRIORITY,), _spread_priorities),
    "spread copies": ((PRIORITY,), _spread_copies),
    "scheduled topics": ((SCHEDULED,), _scheduled_topics),
    "set clocks": ((SCHEDULED,), _set_clocks),
}
"""Name -> the families of which it has something, and what makes its scenario."""
FIRST_SEEDS_OF_PAIRS = {name: 8_000_000 + 10_000 * number for number, name in enumerate(PAIRS)}
