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
    keep_work(lab)


def keep_work(lab: Lab) -> None:
    """What a function has another one do is left to the clients (`do_work`)."""
    (lab.props["work"],) = lab.take_asked()


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
    _purge(lab, OWNER)
    keep_work(lab)


def _rewind_begun(lab: Lab) -> None:
    """One of two messages is deleted, the other one held; the steps of a rewind are to be done."""
    lab.send(OWNER, "m1", "m2")
    deleted, *lab.props["held"] = lab.receive(OWNER, max=2)
    lab.act(OWNER, "delete", [deleted])
    to_ms = lab.stage.now_ms() - 1
    lab.operate(OWNER, "rewind", {"to_ms": to_ms}, {"to": format_time(to_ms)})
    keep_work(lab)


def _take_and_delete(lab: Lab, client: Client) -> None:
    lab.act(client, "delete", lab.receive(client))


def _take_by_attempt(lab: Lab, client: Client) -> None:
    """A receive, and its repetition."""
    attempt = lab.attempt(1)
    lab.receive(client, attempt=attempt)
    lab.act(client, "delete", lab.receive(client, attempt=attempt, repeat=True))


def take_dead_letters(lab: Lab, client: Client) -> None:
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


def do_work(lab: Lab, client: Client) -> None:
    lab.do(client, *lab.props["work"])


def _let_leases_end(lab: Lab, client: Client) -> None:
    lab.stage.pause(LEASE_MS + 1)


def _purge(lab: Lab, client: Client) -> None:
    lab.operate(client, "purge", {}, {})


QUEUE_PLOTS = (
    Plot("two receivers", _one, {"r1": _take_and_delete, "r2": _take_and_delete}),
    Plot(
        "two receivers, a parcel of two",
        _two_in_one,
        {"r1": _take_and_delete, "r2": _take_and_delete},
    ),
    Plot(
        "two receivers and a sender",
        _one,
        {"r1": Lab.receive, "r2": Lab.receive, "s": _send_another},
    ),
    Plot(
        "a late delete, another receives",
        _held_too_long,
        {"late": delete_held, "r": _take_and_delete},
    ),
    Plot(
        "given back and deleted late",
        hold_one,
        {"late": _give_back_then_delete, "r": _take_and_delete},
    ),
    Plot(
        "a receive is repeated, another receives",
        _one,
        {"r1": _take_by_attempt, "r2": _take_and_delete},
    ),
    Plot("two movers of a dead letter", _used_up, {"m1": do_work, "m2": do_work}, queue=ONE_TRY),
    Plot(
        "a mover and a late delete",
        _two_used_up,
        {"m": do_work, "late": delete_held, "r": take_dead_letters},
        queue=ONE_TRY,
    ),
    Plot(
        "a lease ends while it is extended",
        hold_one,
        {"late": _hold_longer, "clock": _let_leases_end, "r": Lab.receive},
    ),
    Plot(
        "a send is repeated while it is consumed",
        _sent_by_attempt,
        {"s": _send_again, "r": _take_and_delete},
    ),
    Plot(
        "a send is repeated while it waits for a retry",
        _waits_for_a_retry,
        {"s": _send_again, "r1": Lab.receive, "r2": Lab.receive},
        queue=_RETRIES,
    ),
    Plot(
        "a held message has no try left",
        _one,
        {"r1": Lab.receive, "r2": Lab.receive, "clock": _let_leases_end},
        queue=ONE_TRY,
    ),
    Plot("a purge and a receiver", _one, {"p": _purge, "r": _take_and_delete}),
    Plot("a purge's steps and a receiver", _purge_begun, {"p": do_work, "r": _take_and_delete}),
    Plot(
        "a purge's steps, the send is repeated",
        _purge_begun,
        {"p": do_work, "s": _send_twice_again},
    ),
    Plot(
        "a rewind's steps, a late delete",
        _rewind_begun,
        {"w": do_work, "late": delete_held, "r": Lab.receive},
        queue={"rewind_seconds": 3_600},
    ),
    Plot("two replacers", _replaceable, {"a": _replace("m2"), "b": _replace("m3")}),
    Plot("two replacers, and nothing waits", _nothing, {"a": _replace("m1"), "b": _replace("m2")}),
    Plot("a replacer and a receiver", _replaceable, {"s": _replace("m2"), "r": _take_and_delete}),
    Plot(
        "a replaced send is repeated while it is consumed",
        _replaceable,
        {"s": _replace_again, "b": _replace("m2"), "r": _take_and_delete},
    ),
    Plot("two repliers", _ask, {"a": _reply, "b": _reply}),
    Plot(
        "a late reply, another receives and replies",
        _ask_for_too_long,
        {"late": _reply, "r": _take_and_reply},
    ),
    Plot("a reply, its asker gives up", _ask, {"r": _reply, "asker": _give_up}),
)
