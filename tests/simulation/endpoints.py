"""The URLs that subscriptions are pushed to: they take time, fail for a while, and lose answers."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from tests.simulation.deployment import Deployment
from tests.simulation.environments import Environment

from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.scenario import Cast, Scenario
from cirrusmq_local.testing import START_MS, Posting, is_signed, read_secret

POST_MS = 15_000
"""The longest duration of a post."""
SLOW_POST_MS = 14_000


class Endpoints:
    """Answers posts, and notes them in the history as calls of the invocation that made them."""

    def __init__(self, deployment: Deployment, scenario: Scenario) -> None:
        self._deployment = deployment
        self._scenario = scenario

    def post(
        self, caller: Environment, url: str, headers: Mapping[str, str], body: bytes
    ) -> Posting:
        """One post, from its claim's invocation."""
        stage, history, chaos = (
            self._deployment.stage,
            self._deployment.history,
            self._deployment.chaos,
        )
        draw = chaos.rng("{}.{}.{}".format(*caller.name_call()), 1)
        place = url.removeprefix("http://").partition(".")[0]
        given = {
            "id": headers["webhook-id"],
            "invocation": caller.under_way,
            "claimed_ms": caller.written_ms,
            "signed": self._is_signed(place, headers, body),
        }
        call = history.begin(caller.client.name, "post", place, given, stage.now_ms())
        if self._scenario.slow_until_ms:
            stage.pause(SLOW_POST_MS if self._is_slow() else 5)
        else:
            stage.pause(draw.choice((1, 40, 900, POST_MS - 1)) if draw.random() < 0.3 else 5)
        caller.check_alive()
        error = self._error(draw.random())
        fails = not chaos.calm and not chaos.unfailing
        if fails and draw.random() < 0.02:
            caller.note("crash after", "post")
            raise caller.crash()
        if error is None and fails and draw.random() < 0.03:
            caller.note("lost", "post")
            history.end(call, "failed", None, stage.now_ms())
            return Posting("timeout")
        call.ended, call.ended_ms = history.tick(), stage.now_ms()
        call.outcome, call.answer = ("answered", "taken") if error is None else ("refused", error)
        return Posting(error)

    def _is_signed(self, place: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the subscriber, with the secret that it was told last, finds it signed."""
        secret = read_secret(self._deployment.signing_secrets[place])
        return is_signed(secret, headers, body, self._deployment.stage.now_ms() / 1_000)

    def _is_slow(self) -> bool:
        """Whether all URLs answer after 14 s now."""
        return self._deployment.stage.now_ms() - START_MS < self._scenario.slow_until_ms

    def _error(self, chance: float) -> str | None:
        since_ms = self._deployment.stage.now_ms() - START_MS
        first_ms, last_ms = self._scenario.outage_ms
        if self._deployment.chaos.calm and not self._is_slow():
            return None
        failing = first_ms <= since_ms < last_ms or chance < self._scenario.failing
        return "status 503" if failing else None


class Subscriber:
    """Has its subscription's secret shown, and checks signatures by the answer from then on."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._place = cast.place
        self._client = Client(cast.name)

    def step(self, number: int, draw: Random) -> None:
        """Ask once."""
        self._client.begin(number)
        topic, _, name = self._place.name.partition("/")
        call = self._deployment.http(
            self._client,
            "show secret",
            self._place.name,
            {},
            "POST /topics/{topic}/subscriptions/{subscription}/secret",
            {"topic": topic, "subscription": name},
        )
        if call.known:
            self._deployment.signing_secrets[name] = call.answer["secret"]
