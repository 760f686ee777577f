"""Senders and publishers: batches, attempts that are repeated, deduplication."""

from __future__ import annotations

from random import Random
from typing import Any

from cirrusmq.base import ulid
from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq_local.judging.check_replacing import read_sent
from cirrusmq_local.judging.check_replies import WAITING, read_state
from cirrusmq_local.judging.clients import ACCOUNT, GUEST, Client
from cirrusmq_local.judging.deployment import Deployment
from cirrusmq_local.judging.history import MAX_SKEW_MS, Call
from cirrusmq_local.judging.scenario import Cast, Scenario
from cirrusmq_local.judging.tracks import AWAIT

GROUPS = ("red", "blue")
COLORS = ("black", "white", "grey")
PRIORITIES = (1, 1, 2, 5, 16)
NEAR_PRIORITIES = (1, 2, 2, 2, 2)
"""In a queue whose priorities age: a message comes to be one level higher within a run."""
PADDING = "".join(f"{n * 2_654_435_761 % 2**32:08x}" for n in range(400))
_KEYS = ("profile", "search")


class Sender:
    """Sends to one queue, or publishes to one topic."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._scenario = scenario
        self._target = cast.place.name
        self._topic = cast.place.topic
        self._name = cast.name
        account = GUEST if cast.part == "guest" else ACCOUNT
        self._client = Client(cast.name, account)
        self._ref = f"{ACCOUNT}:{cast.place.name}" if account != ACCOUNT else cast.place.name

    def step(self, number: int, draw: Random) -> None:
        """One send, and its repetitions."""
        self._client.begin(number)
        given = self._draw(number, draw)
        call = self._send(given, "send")
        repeats = 0
        while (
            given["repeatable"]
            and repeats < 2
            and (not call.known or draw.random() < self._scenario.repeated)
        ):
            pause_ms = draw.choice(self._scenario.repeats_after_ms)
            self._deployment.stage.pause(pause_ms)
            call = self._send(given, "send again")
            repeats += 1
        if given["asks"] and call.known:
            self._await(call, given["asks"], draw)

    def _await(self, sent: Call, seconds: int, draw: Random) -> None:
        """Look for the reply a few times, the last one behind the deadline."""
        stage = self._deployment.stage
        ((message_id, sent_ms),) = sent.answer
        due_ms = sent_ms + 1_000 * seconds
        for left in range(draw.choice((1, 2, 4)), -1, -1):
            if not left:
                stage.pause(max(0, due_ms + 2 * MAX_SKEW_MS - stage.now_ms()))
            wait = draw.choice((0, 0.3, 3, 20))
            given = {"id": message_id, "due_ms": due_ms, "wait": wait}
            look = look_for_reply(self._deployment, self._client, self._target, self._ref, given)
            if look.known and look.answer != WAITING and draw.random() < 0.7:
                return
            stage.pause(draw.choice((0, 100, 2_000)))

    def _draw(self, number: int, draw: Random) -> dict[str, Any]:
        scenario = self._scenario
        now_ms = self._deployment.stage.now_ms()
        replaces = None
        if scenario.replacing and draw.random() < scenario.replacing:
            replaces = draw.choice(_KEYS)
        asks = None
        if scenario.asking and not self._topic and draw.random() < scenario.asking:
            asks = draw.choice(scenario.asked_seconds)
        count = 1 if replaces or asks else draw.choice((1, 1, 2, 3, 5))
        deduplicated = draw.random() < scenario.deduplication
        messages: list[dict[str, Any]] = []
        for index in range(count):
            label = f"{self._name}.{number}.{index}"
            message: dict[str, Any] = {"body": f"{label} "}
            if deduplicated:
                key = f"key{draw.randrange(4)}"
                label = f"{key}@{self._target}"
                message = {"body": f"{label} ", "deduplication_id": key}
            if scenario.big_bodies and draw.random() < 0.7:
                paddings = scenario.paddings
                message["body"] += PADDING * (
                    paddings[0] if len(paddings) == 1 else draw.choice(paddings)
                )
            if scenario.grouped:
                message["group"] = draw.choice(GROUPS)
            elif scenario.tenants and (tenant := draw.choice(scenario.tenants)):
                message["group"] = tenant
            if scenario.choices:
                message["attributes"] = {"color": draw.choice(COLORS)}
            if not self._topic and scenario.queues["orders"].get("priorities"):
                ages = "ageing_seconds" in scenario.queues["orders"]
                message["priority"] = draw.choice(NEAR_PRIORITIES if ages else PRIORITIES)
            if self._topic:
                tags = draw.choice(([], ["a"], ["a", "b"], ["b"]))
                message["tags"] = ["a"] if deduplicated else tags
                if scenario.delayed and draw.random() < 0.5:
                    message["delay_seconds"] = draw.choice(scenario.delays)
            elif not scenario.grouped and draw.random() < 0.15:
                message["delay_seconds"] = draw.choice((0, 1, 3))
            if replaces:
                message["replace"] = replaces
                if draw.random() < 0.5:
                    message["replace_within_seconds"] = draw.choice((10, 10, 12, 20))
            if asks:
                message["reply"] = {"seconds": asks}
            messages.append(message)
        request: dict[str, Any] = {"messages": messages}
        with_attempt = draw.random() < scenario.attempts
        if with_attempt:
            skew_ms = draw.choice((0, 0, -1_000, 1_500))
            request["attempt"] = ulid.encode(now_ms + skew_ms, draw.randbytes(10))
        return {
            "labels": [message["body"].split(" ")[0] for message in messages],
            "request": request,
            "repeatable": with_attempt or deduplicated,
            "replaces": replaces,
            "asks": asks,
            "name": f"{self._name}.{number}",
        }

    def _send(self, given: dict[str, Any], kind: str) -> Call:
        shown = {key: given[key] for key in ("labels", "name", "replaces", "asks")} | {
            "attempt": given["request"].get("attempt"),
            "groups": [message.get("group") for message in given["request"]["messages"]],
            "keys": [message.get("deduplication_id") for message in given["request"]["messages"]],
            "delays": [message.get("delay_seconds") for message in given["request"]["messages"]],
            "colors": [
                message.get("attributes", {}).get("color")
                for message in given["request"]["messages"]
            ],
            "priorities": [message.get("priority", 1) for message in given["request"]["messages"]],
            "tags": [message.get("tags", []) for message in given["request"]["messages"]],
            "bounded": "replace_within_seconds" in given["request"]["messages"][0],
        }
        holder = "topic" if self._topic else "queue"
        route, path = f"POST /{holder}s/{{{holder}}}/messages", {holder: self._ref}
        return self._deployment.http(
            self._client,
            kind,
            self._target,
            shown,
            *(route, path, given["request"]),
            read=read_sent,
        )


def look_for_reply(
    deployment: Deployment, client: Client, target: str, ref: str, given: dict[str, Any]
) -> Call:
    """One look of an asker, which may wait."""
    query = {"reply_by": format_time(given["due_ms"]), "wait_seconds": str(given["wait"])}
    return deployment.http(
        *(client, AWAIT, target, given, "GET /queues/{queue}/messages/{id}/reply"),
        {"queue": ref, "id": given["id"]},
        query=query,
        read=read_state,
    )


def read_stored(call: Call, answer: Any) -> list[tuple[str, int]]:
    """Id and time of sending of each message that a send stored."""
    return [(each["id"], parse_time("sent_at", each["sent_at"])) for each in answer["messages"]]
