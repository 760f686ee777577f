"""Scenarios of what no client calls: batches of the stream, posts to a URL, and the sweep.

A sweep reads some hundred partitions that nobody else touches, most of them empty: those calls are
no steps (`Plot.alone`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tests.exploring.lab import Lab, Plot
from tests.exploring.plots import (
    LEASE_MS,
    OWNER,
    QUEUE_PLOTS,
    delete_held,
    do_work,
    hold_one,
    keep_work,
    take_dead_letters,
)

from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.places import Place
from cirrusmq_local.judging.scenario import DEAD, NEWS

_GROUP = Place("news/group", topic=True)
_DAY_MS = 86_400_000
_SWEPT = "[CIPS]#[0-9]+|sweep|gauges|running"
"""Of the sweep alone, if nothing is pushed: counters, ids of resources, shares of records put
aside, delivery states, its notes, operations."""
_OLD = {"dead_letter": {"queue": DEAD.name, "max_age_seconds": 300}}
_LIMIT_MS = 300_000
_TO_DEAD = {"dead_letter_queue": DEAD.name}


def _published(lab: Lab) -> None:
    lab.send(OWNER, "m1", place=NEWS)


def _to_be_posted(lab: Lab) -> None:
    """A message, and the event of its poster; one before it has shown that the URL is fast."""
    lab.send(OWNER, "m0", place=NEWS)
    lab.fan_out(OWNER)
    while lab.asked:
        lab.run_asked(OWNER)
    lab.opened_at = lab.engine.stream_position(lab.tables.messages)
    lab.stage.jump(1_000)
    _published(lab)
    lab.fan_out(OWNER)
    keep_work(lab)


def _paused_then_published(lab: Lab) -> None:
    """Paused long ago: every worker knows it. The message came since."""
    _to_be_posted(lab)
    lab.pause_url(OWNER, "pause")
    lab.stage.jump(20_000)


def _held_and_too_old(lab: Lab) -> None:
    """Its lease is over, and its age the limit's."""
    hold_one(lab)
    lab.stage.jump(_LIMIT_MS + 1)


def _half_and_overdue(lab: Lab) -> None:
    """Its only check is over; nobody has decided."""
    _to_be_checked(lab)
    lab.decider(OWNER.name).receive(1, 1)
    lab.stage.jump(_DAY_MS)


def _received_and_expired(lab: Lab) -> None:
    """Held by a member of a group to the end of its life. Counters say where messages are."""
    _published(lab)
    lab.fan_out(OWNER)
    lab.meter(OWNER)
    lab.stage.jump(_DAY_MS - LEASE_MS // 2)
    lab.receive(OWNER, _GROUP)
    lab.stage.jump(LEASE_MS)


def _take_of_group(lab: Lab, client: Client) -> None:
    lab.receive(client, _GROUP)


def _publish_and_post(lab: Lab, client: Client) -> None:
    """A second message, and what its batch of the stream asks for."""
    lab.send(client, "m2", place=NEWS)
    lab.fan_out(client)
    lab.run_asked(client)


def _pause_and_resume(lab: Lab, client: Client) -> None:
    lab.pause_url(client, "pause")
    _resume(lab, client)


def _resume(lab: Lab, client: Client) -> None:
    lab.pause_url(client, "resume")


def _sweep(lab: Lab, client: Client) -> None:
    """A sweep, and what it asks of others."""
    lab.run(client, "sweep", "sweep", "", {}, {})
    lab.run_asked(client)


def _decide(how: Literal["commit", "rollback"]) -> Callable[[Lab, Client], None]:
    def decide(lab: Lab, client: Client) -> None:
        lab.decider(client.name).decide(how, *lab.props["half"])

    return decide


def _prepared(lab: Lab) -> None:
    lab.prepare(OWNER, "m1")


def _take_and_delete_dead(lab: Lab, client: Client) -> None:
    lab.act(client, "delete", lab.receive(client, DEAD), place=DEAD)


def _ask_and_roll_back(lab: Lab, client: Client) -> None:
    """A producer that is asked, whose transaction did not take place."""
    decider = lab.decider(client.name)
    for asked in decider.receive(1, 30):
        decider.decide("rollback", asked.handle, asked.messages)


def _to_be_checked(lab: Lab) -> None:
    _prepared(lab)
    lab.stage.jump(2_000)


_EVENT_PLOTS = (
    Plot(
        "a batch is fanned out twice, a member receives",
        _published,
        {"f1": Lab.fan_out, "f2": Lab.fan_out, "r": _take_of_group},
        groups=("group",),
    ),
    Plot("two posters of a URL", _to_be_posted, {"p1": do_work, "p2": do_work}, url=True),
    Plot("a poster, and a resume", _paused_then_published, {"p": do_work, "o": _resume}, url=True),
    Plot(
        "a poster, a pause and its end",
        _to_be_posted,
        {"p": do_work, "o": _pause_and_resume},
        url=True,
    ),
    Plot(
        "a poster and a publisher", _to_be_posted, {"p": do_work, "s": _publish_and_post}, url=True
    ),
    Plot(
        "a sweep finds an old message, a late delete",
        _held_and_too_old,
        {"s": _sweep, "late": delete_held, "r": take_dead_letters},
        queue=_OLD,
        alone=_SWEPT,
    ),
    Plot(
        "a sweep finds an old message, another receives",
        _held_and_too_old,
        {"s": _sweep, "r": Lab.receive},
        queue=_OLD,
        alone=_SWEPT,
    ),
    Plot(
        "a sweep ends a half message that is committed",
        _half_and_overdue,
        {"s": _sweep, "c": _decide("commit")},
        halves=True,
        alone=_SWEPT,
    ),
    Plot(
        "a half message is committed and rolled back",
        _prepared,
        {"c": _decide("commit"), "b": _decide("rollback")},
        halves=True,
    ),
    Plot(
        "two producers are asked for a half message",
        _to_be_checked,
        {"k1": _ask_and_roll_back, "k2": _ask_and_roll_back},
        halves=True,
    ),
    Plot(
        "a producer is asked for what is committed",
        _to_be_checked,
        {"k": _ask_and_roll_back, "c": _decide("commit")},
        halves=True,
    ),
    Plot(
        "a sweep moves what a group received, it is received",
        _received_and_expired,
        {"s": _sweep, "r": _take_and_delete_dead},
        groups=("group",),
        group=_TO_DEAD,
        alone=_SWEPT,
    ),
)
PLOTS = {plot.name: plot for plot in (*QUEUE_PLOTS, *_EVENT_PLOTS)}
"""All scenarios, by name."""
