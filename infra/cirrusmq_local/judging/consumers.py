"""Receivers: they take, hold, give back, delete, give up and forget, early and too late."""

from __future__ import annotations

from random import Random
from typing import Any

from cirrusmq.base import ulid
from cirrusmq.base.timestamps import parse_time
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.deployment import Deployment
from cirrusmq_local.judging.history import Call
from cirrusmq_local.judging.places import Delivery, Place, read_deliveries
from cirrusmq_local.judging.producers import COLORS, GROUPS
from cirrusmq_local.judging.scenario import Cast, Scenario
from cirrusmq_local.judging.tracks import REPLY

_ACTS = ("delete",) * 6 + ("visibility",) * 2 + ("give back",) * 2 + ("dead letter", "nothing")
_POISONED = ("give back", "nothing", "nothing", "delete")
"""The acts of consumers that fail at most messages."""
_VERBS = {
    "delete": ("delete", "deleted"),
    "dead letter": ("dead-letter", "deleted"),
    "visibility": ("visibility", "changed"),
    "give back": ("give-back", "given_back"),
}
"""Our name of a call -> its name in the path, and the name of its result in the answer."""
_CARRIED = 8
"""One in this number of receives carries deletes, if there is something to delete."""


class Receiver:
    """Receives from one place, and acts on what it has or had."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._place = cast.place
        self._poisoned = scenario.poisoned
        self._gives_up = not (scenario.rewound or scenario.longer_retries)
        self._waits, self._untried = scenario.waits, scenario.untried
        self._takes = (1,) if scenario.poisoned else scenario.takes
        self._timeouts, self._held = scenario.timeouts, scenario.held
        self._given_back, self._thinks_ms = scenario.given_back, scenario.thinks_ms
        self._attempted, self._repeats = scenario.attempted, scenario.repeats
        self._client = Client(cast.name)
        self._choices, self._names = scenario.choices, _names_of(scenario, cast.place)
        self._walks: dict[str, list[Call]] = {}
        """By what a receive asks for: the calls of which the next one goes on behind the last."""
        self._asked = bool(scenario.asking)
        self._had: list[Delivery] = []

    def step(self, number: int, draw: Random) -> None:
        """Receive, think, act; now and then with receipts of long ago."""
        stage = self._deployment.stage
        self._client.begin(number)
        received = self._receive(draw, self._carried(number))
        for _ in range(draw.choice((1, 1, 2))):
            if received:
                stage.pause(draw.choice(self._thinks_ms))
                chosen = received if draw.random() < 0.6 else draw.sample(received, 1)
                self._act(draw.choice(_POISONED if self._poisoned else _ACTS), chosen, draw)
        if self._had and draw.random() < 0.3:
            old = draw.sample(self._had, min(len(self._had), draw.choice((1, 2))))
            self._act(draw.choice(_ACTS), old, draw)
        self._had = (self._had + received)[-6:]

    def _carried(self, number: int) -> list[Delivery]:
        """The deliveries that the receive of this step deletes, drawn by separate chances."""
        chance = self._deployment.chaos.draw(self._client.name, number, 17)
        return self._had[-1 - (chance >> 8) % 2 :] if chance % _CARRIED == 0 else []

    def _receive(self, draw: Random, carried: list[Delivery]) -> list[Delivery]:
        if self._choices and not self._names and draw.random() < self._choices:
            return self._receive_where(draw, carried)
        given: dict[str, Any] = {
            "max": self._takes[0] if len(self._takes) == 1 else draw.choice(self._takes),
            "timeout": draw.choice(self._timeouts),
            "wait": draw.choice(self._waits),
        }
        if draw.random() < self._attempted:
            entropy = draw.randbytes(10)
            given["attempt"] = ulid.encode(self._deployment.stage.now_ms(), entropy)
        if carried:
            given["delete"] = carried
        if self._choices and self._names and draw.random() < self._choices:
            given["group"] = draw.choice(self._names)
        call = take(self._deployment, self._client, self._place, given)
        if "attempt" in given and (not call.known or draw.random() < self._repeats):
            self._deployment.stage.pause(draw.choice((0, 200, 1_500)))
            again = {**given, "repeat": True}
            call = take(self._deployment, self._client, self._place, again)
        return list(call.answer) if call.known else []

    def _receive_where(self, draw: Random, carried: list[Delivery]) -> list[Delivery]:
        color = draw.choice(COLORS)
        given: dict[str, Any] = {
            "max": draw.choice(self._takes),
            "timeout": draw.choice(self._timeouts),
            "wait": 0,
            "where": color,
        }
        walk = self._walks.setdefault(color, [])
        if walk and draw.random() < 0.8:
            given["after"] = next(call.after for call in reversed(walk) if call.after is not None)
        else:
            walk = self._walks[color] = []
        given["walk"] = tuple(walk)
        if carried:
            given["delete"] = carried
        call = take(self._deployment, self._client, self._place, given)
        walk.append(call)
        if (call.known and call.after is None) or not any(each.after for each in walk):
            walk.clear()
        return list(call.answer) if call.known else []

    def _act(self, verb: str, deliveries: list[Delivery], draw: Random) -> None:
        asked = [each for each in deliveries if each.asks] if self._asked else []
        if asked and verb == "delete" and draw.random() < 0.8:
            self._reply(draw.choice(asked), draw)
            return
        if verb == "nothing" or (verb == "dead letter" and not self._gives_up):
            return
        given: dict[str, Any] = {}
        if verb == "visibility":
            given["seconds"] = draw.choice(self._held)
        elif verb == "give back":
            given["seconds"] = draw.choice(self._given_back)
            if self._untried and draw.random() < self._untried:
                given["tried"] = False
        call = act(self._deployment, self._client, self._place, verb, deliveries, given)
        if call.outcome in ("failed", "crashed") and draw.random() < 0.6:
            act(self._deployment, self._client, self._place, verb, deliveries, given)

    def _reply(self, delivery: Delivery, draw: Random) -> None:
        """Reply to one message; after a lost answer perhaps once more, or otherwise."""
        body = f"{self._client.name}.{draw.randrange(1 << 30)}"
        for _ in range(2):
            call = reply(self._deployment, self._client, self._place, delivery, body)
            if call.outcome not in ("failed", "crashed") and draw.random() < 0.8:
                return
            if draw.random() < 0.3:
                body += "!"


def _names_of(scenario: Scenario, place: Place) -> tuple[str, ...]:
    """The groups of a place that a receive may name; none if it has no groups."""
    if place.topic:
        kind = scenario.subscriptions.get(place.name.partition("/")[2], {})
    else:
        kind = scenario.queues[place.holder]
    if kind.get("fair"):
        return tuple(sorted({each for each in scenario.tenants if each} or {*GROUPS}))
    return GROUPS if kind.get("ordered") else ()


def take(deployment: Deployment, client: Client, place: Place, given: dict[str, Any]) -> Call:
    """One receive."""
    request: dict[str, Any] = {
        "max": given["max"],
        "wait_seconds": given["wait"],
        "visibility_timeout_seconds": given["timeout"],
    }
    if "where" in given:
        request["where"] = {"name": "color", "value": given["where"]}
    for name in ("attempt", "repeat", "group", "after"):
        if name in given:
            request[name] = given[name]
    if place.receiver:
        request["receiver"] = place.receiver
    if "delete" in given:
        request["delete"] = [delivery.receipt for delivery in given["delete"]]
    route, path = place.route("receive")
    call = deployment.http(
        client, "receive", place.name, given, route, path, request, read=read_deliveries
    )
    if call.known and call.deleted is not None and call.answer is None:
        call.outcome = "failed"  # the deletes alone were answered
    return call


def reply(
    deployment: Deployment, client: Client, place: Place, delivery: Delivery, body: str
) -> Call:
    """One reply to a message."""
    return deployment.http(
        client,
        REPLY,
        place.name,
        {"id": delivery.id, "messages": [delivery], "body": body},
        "POST /queues/{queue}/messages/{id}/reply",
        {"queue": place.holder, "id": delivery.id},
        {"receipt": delivery.receipt, "reply": {"body": body}},
    )


def act(
    deployment: Deployment,
    client: Client,
    place: Place,
    verb: str,
    deliveries: list[Delivery],
    given: dict[str, Any],
) -> Call:
    """One call by receipts, with a result for each in its answer."""
    receipts = list(dict.fromkeys(delivery.receipt for delivery in deliveries))
    seconds = given.get("seconds")
    request: dict[str, Any] = {"receipts": receipts}
    if verb == "visibility":
        entries = [{"receipt": r, "visibility_timeout_seconds": seconds} for r in receipts]
        request = {"entries": entries}
    elif seconds is not None:
        request["delay_seconds"] = seconds
    if "tried" in given:
        request["tried"] = given["tried"]
    name, done = _VERBS[verb]

    def read(call: Call, answer: Any) -> list[int | str]:
        fates: dict[str, int | str] = {each["receipt"]: each["code"] for each in answer["failed"]}
        for each in answer[done]:
            if isinstance(each, str):
                fates[each] = 0
            else:
                fates[each["receipt"]] = parse_time("visible_at", each["visible_at"])
        return [fates[delivery.receipt] for delivery in deliveries]

    shown = {"messages": deliveries, **given}
    route, path = place.route(name)
    return deployment.http(client, verb, place.name, shown, route, path, request, read=read)
