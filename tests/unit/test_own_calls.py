"""Where each try of a call is made: in the process, by the URL, or one after the other."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from cirrusmq.base.formats import FORMAT
from cirrusmq_client.attempts import make_attempt
from cirrusmq_in_process import calls
from cirrusmq_in_process.allowances import REST_SECONDS, SECONDS, Allowances
from cirrusmq_in_process.calls import Call
from cirrusmq_in_process.conditions import Conditions
from cirrusmq_in_process.process import Process
from cirrusmq_in_process.wiring import Told, make_core
from cirrusmq_local.engine import EngineClient
from cirrusmq_local.testing import Client, World


class Faulty:
    """The engine's client, of which chosen operations end in an error."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.fails: dict[str, str] = {}
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(**request: Any) -> Any:
            self.called.append(name)
            if code := self.fails.get(name):
                told: Any = {"Error": {"Code": code, "Message": code}}
                status = 400 if code == "AccessDeniedException" else 500
                told["ResponseMetadata"] = {"HTTPStatusCode": status}
                raise ClientError(told, name)
            return getattr(self._client, name)(**request)

        return call


class Here:
    """A process beside a world, its queue, and the URL's answers."""

    def __init__(self) -> None:
        self.world = World(in_process=True)
        self.world.own = None
        self.alice: Client = self.world.client("alice")
        assert self.alice.put("/queues/orders").status == 201
        tables = self.world.tables
        told = Told("local", tables.directory, tables.messages, "alice", 1)
        self.client = Faulty(EngineClient(self.world.engine))
        core = make_core(self.client, self.world.clock, told, randomness=self.world.random)
        self.core = replace(core, cache=self.world.core.cache)
        self.seconds = 1_000.0
        self.allowances = Allowances(lambda: self.seconds)
        self.conditions = Conditions(self.core, ("alice", "CK1"), self.allowances, 1)
        self.process = Process(self.conditions)

    def begin(self, kind: str = "") -> Call:
        call = self.process.begin("POST", f"/queues/orders/messages{kind}")
        assert call is not None
        return call

    def attempt(self) -> str:
        return make_attempt(self.world.clock.now_ms() / 1_000)

    def allow(self) -> None:
        """The URL accepted a call of each kind just now."""
        self.allowances.grant("orders", "send", self.seconds)
        self.allowances.grant("orders", "receive", self.seconds)

    def send(self, body: str = "a") -> tuple[int, Any] | None:
        return self.begin().answer({"messages": [{"body": body}], "attempt": self.attempt()})


@pytest.fixture
def here() -> Any:
    made = Here()
    yield made
    made.world.engine.close()


def test_the_first_call_of_a_minute_goes_by_the_url(here: Here) -> None:
    call = here.begin()
    body = {"messages": [{"body": "a"}]}
    assert call.answer(body) is None
    assert call.by_url(body) == body
    assert call.accepted({"messages": []}) == {"messages": []}

    assert here.send() is not None
    here.seconds += SECONDS
    assert here.send() is None


def test_a_minute_is_counted_from_when_the_url_was_called(here: Here) -> None:
    call = here.begin()
    call.answer({})
    call.by_url({})
    here.seconds += 25.0
    call.accepted({})

    here.seconds += SECONDS - 25.0

    assert here.send() is None


def test_a_send_allows_no_receive(here: Here) -> None:
    here.allowances.grant("orders", "send", here.seconds)

    assert here.begin("/receive").answer({"max": 1}) is None
    assert here.begin("/delete").answer({"receipts": ["a"]}) is None


def test_a_refusal_is_left_to_the_url(here: Here) -> None:
    here.allow()

    assert here.begin().answer({"messages": []}) is None
    assert here.begin().answer({"messages": [{"body": "a", "delay_seconds": -1}]}) is None
    assert here.begin().answer({"messages": [{"body": "\ud800"}]}) is None
    assert here.send() is not None


def test_an_unknown_send_is_repeated_by_the_url_and_stored_once(here: Here) -> None:
    here.allow()
    body = {"messages": [{"body": "a"}], "attempt": here.attempt()}
    call = here.begin()
    here.client.fails["put_item"] = "InternalServerError"
    answered = call.answer(body)
    assert answered is not None
    assert (answered[0], answered[1]["code"]) == (503, "Unavailable")

    assert call.answer(body) is None
    here.alice.post("/queues/orders/messages", call.by_url(body))
    here.alice.post("/queues/orders/messages", body)

    assert len(here.alice.receive("orders")) == 1


def test_a_slow_send_is_unknown(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    here.allow()
    put = here.client._client.put_item

    def slow(**request: Any) -> Any:
        here.world.clock.pass_seconds(5.1)
        return put(**request)

    monkeypatch.setattr(here.client._client, "put_item", slow)
    body = {"messages": [{"body": "a"}], "attempt": here.attempt()}
    call = here.begin()

    answered = call.answer(body)

    assert answered is not None
    assert answered[0] == 503
    assert call.answer(body) is None
    assert here.alice.post("/queues/orders/messages", body).status == 201
    assert len(here.alice.receive("orders")) == 1


def test_a_suspended_machine_is_seen_by_either_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls._is_late((10.0, 5.0), (10.1, 10.2))
    assert calls._is_late((10.0, 5.0), (15.1, 5.2))
    assert not calls._is_late((10.0, 5.0), (14.9, 9.9))


def test_a_repeated_receive_stays_here_and_finds_its_messages(here: Here) -> None:
    here.allow()
    here.send("a")
    call = here.begin("/receive")
    body = {"max": 1, "wait_seconds": 0, "attempt": here.attempt()}
    first = call.answer(body)
    assert first is not None

    again = call.answer({**body, "repeat": True})

    assert again is not None
    assert again[1]["messages"][0]["receipt"] == first[1]["messages"][0]["receipt"]


def test_a_due_receive_asks_the_url_without_a_wait_and_waits_here(here: Here) -> None:
    body = {"max": 1, "wait_seconds": 20}
    call = here.begin("/receive")
    assert call.answer(body) is None
    assert call.by_url(body) == {"max": 1, "wait_seconds": 0}
    assert call.accepted({"messages": []}) is None

    before = here.world.clock.now_ms()
    assert call.answer(body) == (200, {"messages": []})
    assert here.world.clock.now_ms() - before >= 20_000


def test_the_urls_result_is_the_answer(here: Here) -> None:
    call = here.begin("/receive")
    body = {"max": 1, "wait_seconds": 20}
    assert call.answer(body) is None
    call.by_url(body)
    found = {"messages": [{"id": "x"}]}

    assert call.accepted(found) == found


def test_deletes_of_a_receive_are_made_once_and_told_with_its_messages(here: Here) -> None:
    body = {"max": 1, "wait_seconds": 20, "delete": ["r1"]}
    call = here.begin("/receive")
    assert call.answer(body) is None
    assert call.by_url(body)["delete"] == ["r1"]
    assert call.accepted({"messages": [], "deleted": ["r1"], "failed": []}) is None

    answered = call.answer(body)

    assert answered == (200, {"messages": [], "deleted": ["r1"], "failed": []})


def test_a_non_plain_queue_waits_by_the_url(here: Here) -> None:
    here.alice.put("/queues/orders/receivers/billing")
    body = {"max": 1, "wait_seconds": 20}
    call = here.begin("/receive")
    assert call.answer(body) is None
    call.by_url(body)
    here.allow()
    assert here.send() is None

    assert call.accepted({"messages": []}) is None
    assert call.answer(body) is None
    assert call.by_url(body) == body
    assert call.accepted({"messages": []}) == {"messages": []}

    here.seconds += REST_SECONDS
    assert here.begin("/receive").by_url(body)["wait_seconds"] == 0


def test_a_call_refused_by_aws_is_left_to_the_url_and_told_once(
    here: Here, caplog: pytest.LogCaptureFixture
) -> None:
    here.allow()
    here.client.fails["put_item"] = "AccessDeniedException"

    assert here.send() is None
    here.seconds += REST_SECONDS
    here.allow()
    assert here.send() is None

    lines = [line for line in caplog.messages if "AccessDeniedException" in line]
    assert len(lines) == 1


def test_unfit_formats_are_left_to_the_url_within_a_minute(here: Here) -> None:
    here.allow()
    assert here.send() is not None
    place = {"pk": {"S": "deployment"}, "sk": {"S": "formats"}}
    writes = str(FORMAT + 1)
    later = place | {"reads": {"N": writes}, "writes": {"N": writes}}
    here.world.engine.execute("PutItem", {"TableName": here.world.tables.directory, "Item": later})

    here.seconds += 59.0
    here.allow()
    assert here.send() is not None
    here.seconds += 2.0
    here.allow()
    assert here.send() is None


def test_a_service_of_a_later_format_is_not_asked_for_formats(here: Here) -> None:
    conditions = Conditions(here.core, ("alice", "CK1"), here.allowances, FORMAT + 1)
    assert not conditions.works()
    assert "get_item" not in here.client.called


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/queues/orders/messages"),
        ("POST", "/queues/bob:orders/messages"),
        ("POST", "/queues/orders/messages/give-back"),
        ("POST", "/queues/orders/messages/dead-letter"),
        ("POST", "/topics/news/messages"),
        ("POST", "/topics/news/subscriptions/copy/messages/receive"),
    ],
)
def test_other_calls_are_never_made_here(here: Here, method: str, path: str) -> None:
    assert here.process.begin(method, path) is None
