"""Scenarios of a queue's clients, each small enough for every order of its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.exploring.lab import Lab, Plot

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.consumers import reply
from cirrusmq_local.judging.producers import look_for_reply
from cirrusmq_local.judging.scenario import DEAD, ORDERS

OWNER = Client("owner's")
ONE_TRY: dict[str, Any] = {"dead_letter": {"queue": DEAD.name, "max_receives": 1}}
_RETRIES = ONE_TRY | {"retry": {"policy": "custom", "waits": [60]}}
LEASE_MS = 30_000


def _one(lab: Lab) -> None:
    lab.send(OWNER, "m1")


def _two_in_one(lab: Lab) -> None:
    lab.send(OWNER, "m1", "m2")


def hold_one(lab: Lab) -> None:
    """A message, held by who keeps it in `held`."""
    _one(lab)
    lab.props["held"] = lab.receive(OWNER)


def _held_too_long(lab: Lab) -> None:
    hold_one(lab)
    lab.stage.jump(LEASE_MS + 1)


def _used_up(lab: Lab) -> None:
    """Its only try is over, and a receive asks that it be moved."""
    _held_too_long(lab)
    _ask_for_the_move(lab)


def _two_used_up(lab: Lab) -> None:
    """Two of one parcel; the first is in `held`."""
    _two_in_one(lab)
    lab.props["held"] = lab.receive(OWNER, max=2)[:1]
    lab.stage.jump(LEASE_MS + 1)
    _ask_for_the_move(lab)


def _ask_for_the_move(lab: Lab) -> None:
    assert lab.receive(OWNER) == []
    ((_, lab.props["moves"]),) = lab.asked
    lab.asked.clear()


def _sent_by_attempt(lab: Lab) -> None:
    lab.props["attempt"] = lab.attempt()
    lab.send(OWNER, "m1", attempt=lab.props["attempt"])


def _waits_for_a_retry(lab: Lab) -> None:
    """It was given back, and waits under another key."""
    _sent_by_attempt(lab)
    lab.act(OWNER, "give back", lab.receive(OWNER))


def _purge_begun(lab: Lab) -> None:
    """A message below the floor; its purge's steps are to be done."""
    _sent_by_attempt(lab)
    lab.operate(OWNER, "purge", {}, {})
    ((_, lab.props["steps"]),) = lab.asked
    lab.asked.clear()


def _rewind_begun(lab: Lab) -> None:
    """One of two messages is deleted, the other one held; the steps of a rewind are to be done."""
    lab.send(OWNER, "m1", "m2")
    deleted, *lab.props["held"] = lab.receive(OWNER, max=2)
    lab.act(OWNER, "delete", [deleted])
    to_ms = lab.stage.now_ms() - 1
    lab.operate(OWNER, "rewind", {"to_ms": to_ms}, {"to": format_time(to_ms)})
    ((_, lab.props["steps"]),) = lab.asked
    lab.asked.clear()


def take(lab: Lab, client: Client) -> None:
    lab.receive(client)


def _take_and_delete(lab: Lab, client: Client) -> None:
    lab.act(client, "delete", lab.receive(client))


def _take_by_attempt(lab: Lab, client: Client) -> None:
    """A receive, and its repetition."""
    attempt = lab.attempt(1)
    lab.receive(client, attempt=attempt)
    lab.act(client, "delete", lab.receive(client, attempt=attempt, repeat=True))


def _take_dead_letters(lab: Lab, client: Client) -> None:
    lab.receive(client, DEAD)


def delete_held(lab: Lab, client: Client) -> None:
    lab.act(client, "delete", lab.props["held"])


def _hold_longer(lab: Lab, client: Client) -> None:
    lab.act(client, "visibility", lab.props["held"], seconds=100)


def _give_back_then_delete(lab: Lab, client: Client) -> None:
    lab.act(client, "give back", lab.props["held"], seconds=0)
    lab.act(client, "delete", lab.props["held"])


def _send_another(lab: Lab, client: Client) -> None:
    lab.send(client, "m2")


def _nothing(lab: Lab) -> None:
    """An empty queue."""


def _replaceable(lab: Lab) -> None:
    """A message that waits under the key `k`."""
    lab.props["attempt"] = lab.attempt()
    lab.send(OWNER, "m1", attempt=lab.props["attempt"], replaces="k")


def _replace(label: str) -> Callable[[Lab, Client], None]:
    def send(lab: Lab, client: Client) -> None:
        lab.send(client, label, replaces="k")

    return send


def _replace_again(lab: Lab, client: Client) -> None:
    """The send of the first message under the key, repeated."""
    lab.send(client, "m1", attempt=lab.props["attempt"], again=True, replaces="k")


def _ask(lab: Lab) -> None:
    """A request of a minute, held by who keeps it in `held`."""
    ((lab.props["asked"], sent_ms),) = lab.send(OWNER, "m1", asks=60).answer
    lab.props["due_ms"] = sent_ms + 60_000
    lab.props["held"] = lab.receive(OWNER)


def _ask_for_too_long(lab: Lab) -> None:
    _ask(lab)
    lab.stage.jump(LEASE_MS + 1)


def _reply(lab: Lab, client: Client) -> None:
    reply(lab, client, ORDERS, lab.props["held"][0], f"of {client.name}")


def _take_and_reply(lab: Lab, client: Client) -> None:
    for delivery in lab.receive(client):
        reply(lab, client, ORDERS, delivery, f"of {client.name}")


def _give_up(lab: Lab, client: Client) -> None:
    """Looks before the deadline, and behind it."""
    given = {"id": lab.props["asked"], "due_ms": lab.props["due_ms"], "wait": 0}
    look_for_reply(lab, client, ORDERS.name, ORDERS.name, given)
    lab.stage.pause(64_000)
    look_for_reply(lab, client, ORDERS.name, ORDERS.name, given)


def _send_twice_again(lab: Lab, client: Client) -> None:
    """Later, the second time: its messages would be under another key."""
    _send_again(lab, client)
    lab.stage.pause(1)
    _send_again(lab, client)


def _send_again(lab: Lab, client: Client) -> None:
    lab.send(client, "m1", attempt=lab.props["attempt"], again=True)


def _move(lab: Lab, client: Client) -> None:
    lab.do(client, "replay", lab.props["moves"])


def _do_steps(lab: Lab, client: Client) -> None:
    lab.do(client, "replay", lab.props["steps"])


def _let_leases_end(lab: Lab, client: Client) -> None:
    lab.stage.pause(LEASE_MS + 1)


def _purge(lab: Lab, client: Client) -> None:
    lab.operate(client, "purge", {}, {})


QUEUE_PLOTS = (
    Plot(
        name="two receivers",
        set_up=_one,
        clients={"r1": _take_and_delete, "r2": _take_and_delete},
    ),
    Plot(
        name="two receivers, a parcel of two",
        set_up=_two_in_one,
        clients={"r1": _take_and_delete, "r2": _take_and_delete},
    ),
    Plot(
        name="two receivers and a sender",
        set_up=_one,
        clients={"r1": take, "r2": take, "s": _send_another},
    ),
    Plot(
        name="a late delete, another receives",
        set_up=_held_too_long,
        clients={"late": delete_held, "r": _take_and_delete},
    ),
    Plot(
        name="given back and deleted late",
        set_up=hold_one,
        clients={"late": _give_back_then_delete, "r": _take_and_delete},
    ),
    Plot(
        name="a receive is repeated, another receives",
        set_up=_one,
        clients={"r1": _take_by_attempt, "r2": _take_and_delete},
    ),
    Plot(
        name="two movers of a dead letter",
        queue=ONE_TRY,
        set_up=_used_up,
        clients={"m1": _move, "m2": _move},
    ),
    Plot(
        name="a mover and a late delete",
        queue=ONE_TRY,
        set_up=_two_used_up,
        clients={"m": _move, "late": delete_held, "r": _take_dead_letters},
    ),
    Plot(
        name="a lease ends while it is extended",
        set_up=hold_one,
        clients={"late": _hold_longer, "clock": _let_leases_end, "r": take},
    ),
    Plot(
        name="a send is repeated while it is consumed",
        set_up=_sent_by_attempt,
        clients={"s": _send_again, "r": _take_and_delete},
    ),
    Plot(
        name="a send is repeated while it waits for a retry",
        queue=_RETRIES,
        set_up=_waits_for_a_retry,
        clients={"s": _send_again, "r1": take, "r2": take},
    ),
    Plot(
        name="a held message has no try left",
        queue=ONE_TRY,
        set_up=_one,
        clients={"r1": take, "r2": take, "clock": _let_leases_end},
    ),
    Plot(
        name="a purge and a receiver",
        set_up=_one,
        clients={"p": _purge, "r": _take_and_delete},
    ),
    Plot(
        name="a purge's steps and a receiver",
        set_up=_purge_begun,
        clients={"p": _do_steps, "r": _take_and_delete},
    ),
    Plot(
        name="a purge's steps, the send is repeated",
        set_up=_purge_begun,
        clients={"p": _do_steps, "s": _send_twice_again},
    ),
    Plot(
        name="a rewind's steps, a late delete",
        queue={"rewind_seconds": 3_600},
        set_up=_rewind_begun,
        clients={"w": _do_steps, "late": delete_held, "r": take},
    ),
    Plot(
        name="two replacers",
        set_up=_replaceable,
        clients={"a": _replace("m2"), "b": _replace("m3")},
    ),
    Plot(
        name="two replacers, and nothing waits",
        set_up=_nothing,
        clients={"a": _replace("m1"), "b": _replace("m2")},
    ),
    Plot(
        name="a replacer and a receiver",
        set_up=_replaceable,
        clients={"s": _replace("m2"), "r": _take_and_delete},
    ),
    Plot(
        name="a replaced send is repeated while it is consumed",
        set_up=_replaceable,
        clients={"s": _replace_again, "b": _replace("m2"), "r": _take_and_delete},
    ),
    Plot(name="two repliers", set_up=_ask, clients={"a": _reply, "b": _reply}),
    Plot(
        name="a late reply, another receives and replies",
        set_up=_ask_for_too_long,
        clients={"late": _reply, "r": _take_and_reply},
    ),
    Plot(
        name="a reply, its asker gives up",
        set_up=_ask,
        clients={"r": _reply, "asker": _give_up},
    ),
)
