"""Scenarios of what no client calls: batches of the stream, posts to a URL, and the sweep.

A sweep reads some hundred partitions that nobody else touches, most of them empty: those calls are
no steps (`Plot.alone`).
"""

from __future__ import annotations

from tests.exploring.lab import Lab, Plot
from tests.exploring.plots import LEASE_MS, OWNER, QUEUE_PLOTS, delete_held, hold_one, take

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
    ((_, lab.props["push"]),) = lab.asked
    lab.asked.clear()


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
    lab.prepare(OWNER, "m1")
    lab.stage.jump(2_000)
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


def _fan_out(lab: Lab, client: Client) -> None:
    lab.fan_out(client)


def _take_of_group(lab: Lab, client: Client) -> None:
    lab.receive(client, _GROUP)


def _post(lab: Lab, client: Client) -> None:
    lab.do(client, "push", lab.props["push"])


def _publish_and_post(lab: Lab, client: Client) -> None:
    """A second message, and what its batch of the stream asks for."""
    lab.send(client, "m2", place=NEWS)
    lab.fan_out(client)
    lab.run_asked(client)


def _pause_and_resume(lab: Lab, client: Client) -> None:
    lab.pause_url(client, "pause")
    lab.pause_url(client, "resume")


def _resume(lab: Lab, client: Client) -> None:
    lab.pause_url(client, "resume")


def _sweep(lab: Lab, client: Client) -> None:
    """A sweep, and what it asks of others."""
    lab.run(client, "sweep", "sweep", "", {}, {})
    lab.run_asked(client)


def _commit(lab: Lab, client: Client) -> None:
    lab.decider(client.name).decide("commit", *lab.props["half"])


def _roll_back(lab: Lab, client: Client) -> None:
    lab.decider(client.name).decide("rollback", *lab.props["half"])


def _prepared(lab: Lab) -> None:
    lab.prepare(OWNER, "m1")


def _take_dead(lab: Lab, client: Client) -> None:
    lab.receive(client, DEAD)


def _take_and_delete_dead(lab: Lab, client: Client) -> None:
    lab.act(client, "delete", lab.receive(client, DEAD), place=DEAD)


def _ask_and_roll_back(lab: Lab, client: Client) -> None:
    """A producer that is asked, whose transaction did not take place."""
    decider = lab.decider(client.name)
    for asked in decider.receive(1, 30):
        decider.decide("rollback", asked.handle, asked.messages)


def _to_be_checked(lab: Lab) -> None:
    lab.prepare(OWNER, "m1")
    lab.stage.jump(2_000)


_EVENT_PLOTS = (
    Plot(
        name="a batch is fanned out twice, a member receives",
        groups=("group",),
        set_up=_published,
        clients={"f1": _fan_out, "f2": _fan_out, "r": _take_of_group},
    ),
    Plot(
        name="two posters of a URL",
        url=True,
        set_up=_to_be_posted,
        clients={"p1": _post, "p2": _post},
    ),
    Plot(
        name="a poster, and a resume",
        url=True,
        set_up=_paused_then_published,
        clients={"p": _post, "o": _resume},
    ),
    Plot(
        name="a poster, a pause and its end",
        url=True,
        set_up=_to_be_posted,
        clients={"p": _post, "o": _pause_and_resume},
    ),
    Plot(
        name="a poster and a publisher",
        url=True,
        set_up=_to_be_posted,
        clients={"p": _post, "s": _publish_and_post},
    ),
    Plot(
        name="a sweep finds an old message, a late delete",
        queue=_OLD,
        set_up=_held_and_too_old,
        clients={"s": _sweep, "late": delete_held, "r": _take_dead},
        alone=_SWEPT,
    ),
    Plot(
        name="a sweep finds an old message, another receives",
        queue=_OLD,
        set_up=_held_and_too_old,
        clients={"s": _sweep, "r": take},
        alone=_SWEPT,
    ),
    Plot(
        name="a sweep ends a half message that is committed",
        halves=True,
        set_up=_half_and_overdue,
        clients={"s": _sweep, "c": _commit},
        alone=_SWEPT,
    ),
    Plot(
        name="a half message is committed and rolled back",
        halves=True,
        set_up=_prepared,
        clients={"c": _commit, "b": _roll_back},
    ),
    Plot(
        name="two producers are asked for a half message",
        halves=True,
        set_up=_to_be_checked,
        clients={"k1": _ask_and_roll_back, "k2": _ask_and_roll_back},
    ),
    Plot(
        name="a producer is asked for what is committed",
        halves=True,
        set_up=_to_be_checked,
        clients={"k": _ask_and_roll_back, "c": _commit},
    ),
    Plot(
        name="a sweep moves what a group received, it is received",
        groups=("group",),
        group=_TO_DEAD,
        set_up=_received_and_expired,
        clients={"s": _sweep, "r": _take_and_delete_dead},
        alone=_SWEPT,
    ),
)
PLOTS = {plot.name: plot for plot in (*QUEUE_PLOTS, *_EVENT_PLOTS)}
"""All scenarios, by name."""
