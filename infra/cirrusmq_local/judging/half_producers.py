"""Producers of half messages, which die at any time; checkers that decide for them; and rivals.

producer   prepare ── own transaction ── commit or rollback
                   x                  x                         it dies here, or there
rival                                    rollback or commit     the other one, at the same moment
checker            asks, looks what became of it, decides
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Literal, TypeAlias

from cirrusmq.base import ulid
from cirrusmq.base.timestamps import parse_time
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.deployment import Deployment
from cirrusmq_local.judging.history import Call
from cirrusmq_local.judging.producers import Sender, read_stored
from cirrusmq_local.judging.scenario import NEWS, Cast, Scenario

Verb: TypeAlias = Literal["commit", "rollback"]
PREPARE, CHECK, ROLL_BACK = "prepare", "check", "roll back"
_ROUTE = "POST /topics/{topic}/half/"
_PATH = {"topic": NEWS.name}
_RIVALS = 0.3
"""The share of the producers' decisions that have a rival."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A half message as a check was answered."""

    handle: str
    checks: int
    max_checks: int
    held_until_ms: int
    expires_ms: int
    messages: list[dict[str, Any]]


class Decider:
    """Asks for half messages, and decides them."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._client = Client(cast.name)

    def decide(
        self,
        verb: Verb,
        handle: str,
        messages: list[dict[str, Any]],
        **more: Any,
    ) -> Call:
        """One call; a commit is a send in the history."""
        labels = [message["body"].split(" ")[0] for message in messages]
        given: dict[str, Any] = {
            "handle": handle,
            "labels": labels,
            "name": labels[0].rpartition(".")[0],
            "groups": [message.get("group") for message in messages],
            "keys": [None] * len(messages),
            "delays": [None] * len(messages),
            "tags": [message.get("tags", []) for message in messages],
            **more,
        }
        if verb == "commit":
            return self._call("send", given, "commit", {"handle": handle}, read_stored)
        return self._call(ROLL_BACK, given, "rollback", {"handle": handle}, lambda *_: [])

    def receive(self, limit: int, visibility_seconds: int) -> list[Asked]:
        """Returns the half messages to decide, or none if the call fails."""
        body = {"max": limit, "visibility_timeout_seconds": visibility_seconds}
        call = self._call(CHECK, dict(body), "receive", body, _read_asked)
        return call.answer if call.known else []

    def _outcome(self, handle: str, otherwise: bool) -> bool:
        """Returns True if a producer's transaction took place; `otherwise` if that is not noted."""
        return self._deployment.took_place.setdefault(handle, otherwise)

    def _call(self, kind: str, given: dict[str, Any], verb: str, body: Any, read: Any) -> Call:
        route = f"{_ROUTE}{verb}"
        place = NEWS.name
        return self._deployment.http(
            self._client, kind, place, given, route, _PATH, body, read=read
        )


class HalfProducer(Decider):
    """Prepares publishes of its transactions, and decides them if it does not die."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        super().__init__(deployment, scenario, cast)
        self._sender = Sender(deployment, scenario, cast)
        self._check_after, self._after_ms = scenario.check_after, scenario.decided_after_ms
        self._rival = Decider(deployment, scenario, replace(cast, name=f"rival of {cast.name}"))

    def step(self, number: int, draw: Random) -> None:
        """One transaction."""
        stage = self._deployment.stage
        self._client.begin(number)
        request = self._sender._draw(number, draw)["request"]
        request["attempt"] = ulid.encode(stage.now_ms(), draw.randbytes(10))
        request["transaction"] = {
            "check_after_seconds": draw.choice(self._check_after),
            "max_checks": draw.choice((1, 2, 2, 6)),
        }
        call = self._prepare(request)
        for _ in range(2):
            if call.known:
                break
            stage.pause(draw.choice((500, 3_000, 30_000)))
            call = self._prepare(request)
        if not call.known or draw.random() < 0.2:
            return
        handle = str(call.answer)
        stage.pause(draw.choice(self._after_ms))
        took_place = self._outcome(handle, draw.random() < 0.7)
        if draw.random() < 0.25:
            return
        if draw.random() < 0.2:
            took_place = not took_place  # it breaks its word: the later decision is refused
        verb: Verb = "commit" if took_place else "rollback"
        if Random(f"rival {handle}").random() < _RIVALS:
            self._decide_beside_a_rival(verb, handle, request["messages"], number)
            return
        for _ in range(3):
            call = self.decide(verb, handle, request["messages"])
            if call.outcome in ("answered", "refused") and draw.random() < 0.6:
                return
            stage.pause(draw.choice((0, 500, 3_000, 30_000)))

    def _decide_beside_a_rival(
        self, verb: Verb, handle: str, messages: list[dict[str, Any]], number: int
    ) -> None:
        self._rival._client.begin(number)
        other: Verb = "rollback" if verb == "commit" else "commit"
        self._deployment.stage.side_by_side(
            [
                partial(self.decide, verb, handle, messages),
                partial(self._rival.decide, other, handle, messages),
            ]
        )

    def _prepare(self, request: dict[str, Any]) -> Call:
        given = {
            "labels": [message["body"].split(" ")[0] for message in request["messages"]],
            "messages": request["messages"],
            "max_checks": request["transaction"]["max_checks"],
            "check_after_seconds": request["transaction"]["check_after_seconds"],
        }
        place = NEWS.name
        route = "POST /topics/{topic}/messages"
        return self._deployment.http(
            *(self._client, PREPARE, place, given, route, _PATH, request),
            read=lambda _, answer: str(answer["transaction"]["handle"]),
        )


class Checker(Decider):
    """Asks for what producers left undecided, and decides it, most times."""

    def step(self, number: int, draw: Random) -> None:
        """One look."""
        stage = self._deployment.stage
        stage.pause(draw.choice((0, 1_000, 5_000, 20_000)))
        self._client.begin(number)
        for asked in self.receive(draw.choice((1, 4, 16)), draw.choice((1, 5, 20))):
            if draw.random() < 0.3:
                continue
            stage.pause(draw.choice((0, 0, 500, 4_000, 20_000)))
            outcome = self._outcome(asked.handle, False)
            self.decide("commit" if outcome else "rollback", asked.handle, asked.messages)

    def finish(self) -> None:
        """In the calm: decide whatever is asked for."""
        for asked in self.receive(16, 1):
            outcome = self._outcome(asked.handle, False)
            self.decide("commit" if outcome else "rollback", asked.handle, asked.messages)

    def probe(self) -> None:
        """In the calm, behind all checks: commit each once more, which shows how it was decided."""
        messages: dict[str, list[dict[str, Any]]] = {}
        for call in self._deployment.history.calls:
            if call.kind == PREPARE and call.known:
                messages[call.answer] = call.given["messages"]
            elif call.kind == CHECK and call.known:
                messages |= {each.handle: each.messages for each in call.answer}
        for handle, those in messages.items():
            self.decide("commit", handle, those, probe=True)


def _read_asked(_: Call, answer: Any) -> list[Asked]:
    return [
        Asked(
            handle=each["handle"],
            checks=each["checks"],
            max_checks=each["max_checks"],
            held_until_ms=parse_time("held_until", each["held_until"]),
            expires_ms=parse_time("expires_at", each["expires_at"]),
            messages=each["messages"],
        )
        for each in answer["transactions"]
    ]
