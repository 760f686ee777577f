"""One run of a scenario: its clients over the deployed handlers, in an order that somebody chooses.

    set-up, once ──> a copy of its store for each run ──> the clients' steps ──> drain ──> checks

Each client has an environment of its own for each function, so that nothing is shared but the
store. What functions have others do (`replay`) is done at the end, or by a client of the scenario.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, TypeVar

from tests.exploring.turns import OF_POSTS, Turns, TurnWire
from tests.simulation.chaos import Chaos, Profile
from tests.simulation.deployment import Deployment, functions, scan
from tests.simulation.environments import Environment, Event, Fleet
from tests.simulation.machinery import describe, execute

from cirrusmq.access.key_cache import KeyCache
from cirrusmq.base import ulid
from cirrusmq.storage.parcels import LOG, PARCELS
from cirrusmq_local.engine import Engine
from cirrusmq_local.judging.check_replacing import read_sent
from cirrusmq_local.judging.clients import ACCOUNT, CallName, Client
from cirrusmq_local.judging.consumers import act, take
from cirrusmq_local.judging.half_producers import CHECK, PREPARE, Checker
from cirrusmq_local.judging.history import Call, History, Outcome
from cirrusmq_local.judging.places import Delivery, Place
from cirrusmq_local.judging.scenario import NEWS, ORDERS, Cast, Scenario
from cirrusmq_local.testing import Posting, is_signed, read_secret

A = TypeVar("A")
B = TypeVar("B")
WEB = "web"
_WEB = {"protocol": "http", "endpoint": "http://web.example/", "retry": {"policy": "backoff"}}
_EXECUTE = "execute"
"""In `Lab.asked`, in place of a function: an execution of the state machine."""
_MAX_ROUNDS = 100
"""Of an execution."""


@dataclass(frozen=True, slots=True)
class Plot:
    """Clients whose every order of steps is played."""

    name: str
    set_up: Callable[[Lab], None]
    """What is there before: it may keep things in `Lab.props`."""
    clients: Mapping[str, Callable[[Lab, Client], object]]
    _: KW_ONLY
    queue: dict[str, Any] = field(default_factory=dict)
    """Attributes of the queue `orders`, but those that all have."""
    groups: tuple[str, ...] = ()
    """Pull subscriptions of the topic `news`."""
    group: dict[str, Any] = field(default_factory=dict)
    """Attributes of the groups."""
    url: bool = False
    """Whether the topic `news` is pushed to a URL, that of the subscription `web`."""
    halves: bool = False
    """Whether messages are published by half messages."""
    alone: str = ""
    """As of `Turns`."""

    @property
    def scenario(self) -> Scenario:
        """The scenario by which the simulation's checks judge it."""
        attributes = {"message_retention_seconds": 3_600, "partitions": 1, "delay_seconds": 0}
        return Scenario(
            family=self.name,
            queues={"dead": dict(attributes), "orders": attributes | self.queue},
            subscriptions={name: {"protocol": "pull", **self.group} for name in self.groups}
            | ({WEB: _WEB} if self.url else {}),
            cast=(),
            pause_ms=0,
            big_bodies=False,
            attempts=0.0,
            deduplication=0.0,
            replacing=1.0,
            halves=self.halves,
        )


class _Noted(KeyCache):
    """Uses of keys are noted already: these writes would be steps that nothing depends on."""

    def first_note(self, place: str, now_ms: int, until_ms: int) -> bool:
        return False


class _OwnFleet(Fleet):
    """The environments of one function: each client has one, and a new one behind a crash."""

    def take(self, name: CallName) -> Environment:
        """The client's environment."""
        own: dict[str, list[Environment]] = self.__dict__.setdefault("own", {})
        had = own.setdefault(name.actor, [])
        if not had or had[-1].ended:
            # Its draws follow from its name: not from calls that other labs made in this process.
            unique = f"{self._role}~{name.actor}.{len(had)}"
            had.append(Environment(self._deployment, unique, self._handler))
            had[-1].core.memories[KeyCache] = _Noted()
        return had[-1]

    def give_back(self, environment: Environment, name: CallName) -> None:
        """It stays the client's."""


class Lab(Deployment):
    """A deployment whose clients take turns."""

    stage: Turns

    def __init__(
        self,
        plot: Plot,
        like: Lab | None = None,
        stage: Turns | None = None,
        engine: Engine | None = None,
    ) -> None:
        """`like`: the lab whose store, history, props and requests this one begins with.

        `stage`, `engine`: in place of those that it would have.
        """
        if stage is None:
            stage = Turns() if like is None else Turns(like.stage.now_ms(), plot.alone)
        super().__init__(
            Chaos(0, Profile({}, (0, 0))),
            stage=stage,
            like=None if like is None else like.engine,
            engine=engine,
        )
        self.wire = TurnWire
        self.plot = plot
        self.max_skew_ms = 0
        self.in_parallel = self.side_by_side
        self._fleets = {
            role: _OwnFleet(self, role, function) for role, function in functions().items()
        }
        self.props: dict[str, Any] = {}
        self.asked: list[tuple[str, Event]] = []
        """What functions have others do: role and event."""
        self.invoke = lambda _, role, event: self.ask_for(role, event)
        self.start_execution = lambda _, name, event: self.start(name, event)
        self.post = self._post
        self.executions: set[str] = set()
        """Names of the executions that were started."""
        if like is None:
            self._set_up()
            return
        self.authorizations = dict(like.authorizations)
        self.signing_secrets = dict(like.signing_secrets)
        self.opened_at = like.opened_at
        self.asked, self.executions = [*like.asked], {*like.executions}
        self.history = History([*like.history.calls], [*like.history.faults], like.history.moment)
        self.took_place = dict(like.took_place)
        self.props = copy.deepcopy(like.props)

    def send(
        self,
        client: Client,
        *labels: str,
        place: Place = ORDERS,
        attempt: str | None = None,
        again: bool = False,
        replaces: str | None = None,
        asks: int | None = None,
    ) -> Call:
        """Send messages, or publish them, in one call. `replaces`: the key of a single one, and
        `asks`: the seconds for which it waits for a reply."""
        request: dict[str, Any] = {"messages": [{"body": f"{label} "} for label in labels]}
        if attempt is not None:
            request["attempt"] = attempt
        if replaces is not None:
            request["messages"][0]["replace"] = replaces
        if asks is not None:
            request["messages"][0]["reply"] = {"seconds": asks}
        nothing = [None for _ in labels]
        shown: dict[str, Any] = {
            "labels": list(labels),
            "name": labels[0],
            "attempt": attempt,
            "groups": nothing,
            "replaces": replaces,
            "asks": asks,
        }
        shown |= dict.fromkeys(("keys", "delays", "colors"), nothing)
        shown |= {"tags": [[] for _ in labels], "priorities": [1 for _ in labels]}
        holder = "topic" if place.topic else "queue"
        route = f"POST /{holder}s/{{{holder}}}/messages"
        return self.http(
            *(client, "send again" if again else "send", place.name, shown),
            *(route, {holder: place.name}, request),
            read=read_sent,
        )

    def receive(self, client: Client, place: Place = ORDERS, **given: Any) -> list[Delivery]:
        """Receive one message, if there is one, for 30 seconds; `given` says otherwise."""
        call = take(self, client, place, {"max": 1, "timeout": 30, "wait": 0, **given})
        return list(call.answer) if call.known and call.answer else []

    def act(
        self,
        client: Client,
        verb: str,
        held: Sequence[Delivery],
        place: Place = ORDERS,
        **given: Any,
    ) -> None:
        """Delete, give back or hold longer, if there is something to."""
        if held:
            act(self, client, place, verb, list(held), given)

    def attempt(self, number: int = 0) -> str:
        """The attempt of a send or receive that begins now."""
        return ulid.encode(self.stage.now_ms(), number.to_bytes(10, "big"))

    def operate(
        self, client: Client, kind: str, given: dict[str, Any], body: dict[str, Any]
    ) -> Call:
        """Start an operation on the queue. Its steps are in `asked` then.

        given: what the history shows of `body`.
        """
        route, path = f"POST /queues/{{queue}}/{kind}", {"queue": ORDERS.name}
        return self.http(client, kind, ORDERS.name, given, route, path, body)

    def do(self, client: Client, role: str, event: Event) -> None:
        """Do what a function had another one do."""
        if role == _EXECUTE:
            execute(self.stage, partial(self._push, client), event, _MAX_ROUNDS)
            return
        given = {"operation": event["operation"]["id"]} if "operation" in event else dict(event)
        kind, place = describe(role, event)
        self.run(client, role, kind, place, given, event)

    def fan_out(self, client: Client) -> None:
        """Make the groups' parcels of all records of the log, as one batch of the stream."""
        self._read_stream(client, "fan_out", f"{LOG}#")

    def meter(self, client: Client) -> None:
        """Count all parcels' records as one batch of the stream."""
        self._read_stream(client, "meter", f"{PARCELS}#")

    def _read_stream(self, client: Client, role: str, prefix: str) -> None:
        """Give a reader the records of keys with a prefix."""
        changes = self.engine.read_stream(self.tables.messages, self.opened_at, 1_000)
        records = [
            change.as_lambda_record()
            for change in changes
            if change.keys["pk"]["S"].startswith(prefix) and change.new_image
        ]
        shown = " ".join(change.keys["pk"]["S"] + change.keys["sk"]["S"] for change in changes)
        event = json.loads(json.dumps({"Records": records}))
        self.run(client, role, role, "", {"records": shown}, event)

    def side_by_side(self, call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
        """Calls one by one: a client has one thread."""
        return [call(value) for value in values]

    def run_asked(self, client: Client) -> None:
        """Do what functions have others do until now."""
        for role, event in self.take_asked():
            self.do(client, role, event)

    def ask_for(self, role: str, event: Event) -> None:
        """A function has another one do something."""
        self.asked.append((role, event))

    def take_asked(self) -> list[tuple[str, Event]]:
        """What functions have others do until now, which is forgotten then."""
        asked, self.asked = self.asked, []
        return asked

    def start(self, name: str, event: Event) -> None:
        """Start an execution, once by its name."""
        if name not in self.executions:
            self.executions.add(name)
            self.asked.append((_EXECUTE, json.loads(json.dumps(event))))

    def close(self) -> None:
        """End clients that are not done, and give the store back."""
        self.stage.close()
        self.engine.close()

    def begins(self) -> tuple[Hashable, ...]:
        """All that the rest depends on if clients of other names go on.

        The last of them decides all half messages that the history shows.
        """
        requests = repr(self.asked), repr(sorted(self.executions))
        failed = bool(self.history.faults), self.has_failed("fan_out")
        halves = [
            repr((call.given["messages"] if call.kind == PREPARE else (), call.answer))
            for call in self.history.calls
            if call.known and call.kind in (PREPARE, CHECK)
        ]
        return self.engine.contents(), *requests, *halves, self.stage.now_ms(), failed

    def has_failed(self, kind: str) -> bool:
        """Whether the function of a kind of calls ended early."""
        return any(call.kind == kind and not call.known for call in self.history.calls)

    def end(self) -> str:
        """What the clients were answered, and what the store has, without the order of things."""
        calls = sorted(f"{call.actor} {call.line()}" for call in self.history.calls)
        items = sorted(map(str, scan(self.engine, self.tables.messages)))
        return "\n".join(calls + items)

    def pause_url(self, client: Client, kind: str) -> None:
        """Pause the subscription with a URL, or resume it."""
        route = f"POST /topics/{{topic}}/subscriptions/{{subscription}}/{kind}"
        path = {"topic": NEWS.name, "subscription": WEB}
        self.http(client, kind, f"{NEWS.name}/{WEB}", {}, route, path)

    def prepare(self, client: Client, label: str) -> None:
        """Prepare a publish. It is to be decided within a second and one check."""
        terms = {"check_after_seconds": 1, "max_checks": 1}
        messages = [{"body": f"{label} "}]
        given = {"labels": [label], "messages": messages, **terms}
        body = {"messages": messages, "attempt": self.attempt(), "transaction": terms}
        call = self.http(
            *(client, PREPARE, NEWS.name, given, "POST /topics/{topic}/messages"),
            *({"topic": NEWS.name}, body),
            read=lambda _, answer: str(answer["transaction"]["handle"]),
        )
        self.props["half"] = call.answer, messages

    def decider(self, name: str) -> Checker:
        """Who decides half messages, under a client's name."""
        return Checker(self, self.plot.scenario, Cast(name, "checker", NEWS, 0))

    def _push(self, client: Client, _: int, state: Event) -> Call:
        """A round of an execution."""
        kind, place = describe("push_slow", state)
        return self.run(client, "push_slow", kind, place, {}, state)

    def _post(
        self, caller: Environment, url: str, headers: Mapping[str, str], body: bytes
    ) -> Posting:
        """A post that its URL takes, refuses, or takes while its answer is lost."""
        secret = read_secret(self.signing_secrets[WEB])
        given = {
            "id": headers["webhook-id"],
            "invocation": caller.under_way,
            "claimed_ms": caller.written_ms,
            "signed": is_signed(secret, headers, body, self.stage.now_ms() / 1_000),
        }
        fault = self.stage.ask("begin", "post", (), OF_POSTS)
        caller.check_alive()
        call = self.history.begin(caller.client.name, "post", WEB, given, self.stage.now_ms())
        if fault:
            caller.note(fault, "post")
        if fault == "crash after":
            raise caller.crash()
        if fault == "lost":
            self.history.end(call, "failed", None, self.stage.now_ms())
            return Posting("timeout")
        self._end(call, "refused" if fault else "answered", fault or "taken")
        caller.check_alive()
        return Posting("status 503" if fault else None)

    def http(self, client: Client, *given: Any, **named: Any) -> Call:
        """As everywhere; its beginning and its end are steps of their own."""
        self.stage.ask("begin")
        return super().http(client, *given, **named)

    def run(self, client: Client, *given: Any, **named: Any) -> Call:
        """As everywhere; its beginning and its end are steps of their own."""
        self.stage.ask("begin")
        return super().run(client, *given, **named)

    def _end(self, call: Call, outcome: Outcome, answer: Any) -> None:
        self.stage.ask("end")
        super()._end(call, outcome, answer)

    def _set_up(self) -> None:
        owner = Client("owner")
        asked = {"create_admin_key": {"account": ACCOUNT}}
        made = self.run(owner, "manage", "key", "", {}, asked).answer
        self.authorizations[ACCOUNT] = f"Bearer {made['access_key_id']}:{made['secret']}"
        scenario = self.plot.scenario
        for name, attributes in scenario.queues.items():
            self._put(owner, "PUT /queues/{queue}", attributes, queue=name)
        if scenario.subscriptions or scenario.halves:
            self._put(owner, "PUT /topics/{topic}", {"partitions": 1}, topic=NEWS.name)
        for name, attributes in scenario.subscriptions.items():
            route = "PUT /topics/{topic}/subscriptions/{subscription}"
            made = self._put(owner, route, attributes, topic=NEWS.name, subscription=name)
            if "secret" in made:
                self.signing_secrets[name] = made["secret"]
        self.stage.jump(5_000)
        self.opened_at = self.engine.stream_position(self.tables.messages)
        self.plot.set_up(self)
        self.stage.jump(1)  # the checks tell before and after by milliseconds

    def _put(self, owner: Client, route: str, attributes: dict[str, Any], **path: str) -> Any:
        call = self.http(owner, "create", "", {}, route, path, attributes)
        assert call.known, call.line()
        return call.answer
