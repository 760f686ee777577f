"""New versions are tried before callers reach them: the hook's handler, through the others'."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import botocore.session
import msgspec
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from msgspec.structs import replace

from cirrusmq.base.errors import InvalidParameter, Unavailable
from cirrusmq.base.limits import CACHE_MS, SLOW_CACHE_MS
from cirrusmq.runtime.cache import Cache
from cirrusmq.runtime.core import Called, Core
from cirrusmq_lambda import lifecycle_hook, trial
from cirrusmq_local.cloud.invocation import running
from cirrusmq_local.testing import Client, World

Answer = dict[str, Any]
Call = Callable[[Answer], Called]
Fault = Callable[[Answer, Call], Called]
EVENT = {"DeploymentId": "d-12345678", "LifecycleEventHookExecutionId": "hook-1"}
HOOK = "codedeploy"


@cache
def _session() -> botocore.session.Session:
    """One for the process: it reads what it needs for a client once."""
    return botocore.session.get_session()


class Rollout:
    """The hook, which calls the deployed handlers in the place of new versions."""

    def __init__(
        self, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.world = world
        self.faulty: dict[str, Fault] = {}
        """Versions that do something else with an event, given what they should do with it."""
        self.events: list[tuple[str, Answer]] = []
        self._monkeypatch = monkeypatch
        self._caplog = caplog
        for role in ("send", "receive", "delete"):
            monkeypatch.setenv(f"{role.upper()}_VERSION", f"cirrusmq-{role}")
        world.core = replace(world.core, call=self._call)

    @property
    def log(self) -> list[str]:
        """The lines of the hook, each with its level."""
        own = os.environ.get("POWERTOOLS_SERVICE_NAME", "service_undefined")
        lines = [each for each in self._caplog.records if each.name == own]
        return [f"{each.levelname} {each.getMessage()}" for each in lines]

    def ends(self, status: Literal["Succeeded", "Failed"]) -> None:
        """Run the hook; it tells CodeDeploy this, once, as CodeDeploy takes it."""
        client = _session().create_client(HOOK, region_name="eu-central-1")
        told = {
            "deploymentId": EVENT["DeploymentId"],
            "lifecycleEventHookExecutionId": EVENT["LifecycleEventHookExecutionId"],
            "status": status,
        }
        answer = {"lifecycleEventHookExecutionId": EVENT["LifecycleEventHookExecutionId"]}
        with Stubber(client) as stub:
            stub.add_response("put_lifecycle_event_hook_execution_status", answer, told)
            self._monkeypatch.setattr(lifecycle_hook, "client", lambda: client)
            self.world.run("pre_traffic", EVENT)
            stub.assert_no_pending_responses()

    def left(self) -> list[str]:
        """What is left of trials in the directory, but the count of their queues."""
        keys = [(item["pk"]["S"], item["sk"]["S"]) for item in self.world.items("directory")]
        beginnings = ("K#trial-", f"A#{trial.ACCOUNT}")
        return [f"{pk} {sk}" for pk, sk in keys if pk.startswith(beginnings) and sk != "account"]

    def _call(self, arn: str, event: bytes, seconds: float) -> Called:
        invocation = running.get()
        assert invocation is not None
        assert invocation.function.may("lambda:InvokeFunction", arn)
        assert seconds > 29
        role = arn.removeprefix("cirrusmq-")

        def works(given: Answer) -> Called:
            hooks_own = self.world.core
            self.world.core = cold(hooks_own)
            try:
                return Called(answer=self.world.run(role, given))
            finally:
                self.world.core = hooks_own

        read = msgspec.json.decode(event)
        self.events.append((role, read))
        return self.faulty[role](read, works) if role in self.faulty else works(read)


def cold(core: Core) -> Core:
    """An environment of a new version, which remembers nothing."""
    return replace(
        core,
        cache=Cache(core.clock, CACHE_MS, shared=False),
        slow_cache=Cache(core.clock, SLOW_CACHE_MS, shared=True),
        memories={},
    )


@pytest.fixture
def rollout(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Rollout:
    return Rollout(world, monkeypatch, caplog)


def body_of(called: Called) -> Answer:
    read: Answer = msgspec.json.decode(called.answer["body"])
    return read


def answered(called: Called, body: object) -> Called:
    text = msgspec.json.encode(body).decode()
    return Called(answer={**called.answer, "body": text})


def test_working_versions_are_taken_and_nothing_is_left(rollout: Rollout) -> None:
    begun_ms = rollout.world.clock.now_ms()
    rollout.ends("Succeeded")
    assert [role for role, _ in rollout.events] == ["send", "receive", "delete", "receive"]
    assert rollout.left() == []
    assert rollout.log == []
    # The lease is over before the last receive begins.
    assert 18_000 <= rollout.world.clock.now_ms() - begun_ms <= 25_000


def test_it_can_be_tried_again_and_again(rollout: Rollout) -> None:
    for _ in range(3):
        rollout.ends("Succeeded")
    queues = {event["pathParameters"]["queue"] for _, event in rollout.events}
    assert len(queues) == 3


def refuses(event: Answer, works: Call) -> Called:
    return answered(Called(answer={"statusCode": 401}), {"code": "Unauthenticated"})


def ends_in_an_error(event: Answer, works: Call) -> Called:
    return Called(error="KeyError: 'messages'")


def answers_no_json(event: Answer, works: Call) -> Called:
    return Called(answer={"statusCode": 201 if '"messages"' in event["body"] else 200})


def is_never_free(event: Answer, works: Call) -> Called:
    return Called(error="TooManyRequestsException", refused=True)


def stores_nothing(event: Answer, works: Call) -> Called:
    answer = {"statusCode": 201, "body": '{"messages":[{"id":"Msg-1"}]}'}
    return Called(answer=answer)


def spoils_the_body(event: Answer, works: Call) -> Called:
    return works({**event, "body": event["body"].encode("ascii", "replace").decode()})


def loses_the_body(event: Answer, works: Call) -> Called:
    called = works(event)
    messages = [{**each, "body": ""} for each in body_of(called)["messages"]]
    return answered(called, {"messages": messages})


def deletes_nothing(event: Answer, works: Call) -> Called:
    receipts = msgspec.json.decode(event["body"])["receipts"]
    answer = {"deleted": receipts, "failed": []}
    return answered(Called(answer={"statusCode": 200}), answer)


def knows_no_receipt(event: Answer, works: Call) -> Called:
    spoiled = {"receipts": [text[::-1] for text in msgspec.json.decode(event["body"])["receipts"]]}
    return works({**event, "body": msgspec.json.encode(spoiled).decode()})


FAULTS = [
    *[
        (role, fault)
        for role in ("send", "receive", "delete")
        for fault in (refuses, ends_in_an_error, answers_no_json, is_never_free)
    ],
    ("send", stores_nothing),
    ("send", spoils_the_body),
    ("receive", loses_the_body),
    ("delete", deletes_nothing),
    ("delete", knows_no_receipt),
]
SEEN_LATER: dict[Fault, str] = {stores_nothing: "receive", spoils_the_body: "receive"}


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("role", "fault"), FAULTS, ids=lambda held: getattr(held, "__name__", held)
)
def test_a_broken_version_is_not_taken(rollout: Rollout, role: str, fault: Fault) -> None:
    rollout.faulty[role] = fault
    rollout.ends("Failed")
    (line,) = rollout.log
    assert line.startswith(f"ERROR the new versions are not taken: {SEEN_LATER.get(fault, role)}: ")
    assert rollout.left() == []

    del rollout.faulty[role]
    rollout.ends("Succeeded")


@pytest.mark.parametrize("role", ["send", "receive", "delete"])
def test_a_version_without_room_for_a_moment_is_tried_again(rollout: Rollout, role: str) -> None:
    answers = [
        Called(answer={"statusCode": 429, "body": "{}"}),
        Called(answer={"statusCode": 503, "body": "{}"}),
        # IAM does not know yet that it may be called.
        *[Called(error="AccessDeniedException", refused=True)] * 4,
    ]
    rollout.faulty[role] = lambda event, works: answers.pop() if answers else works(event)
    rollout.ends("Succeeded")


def test_a_delete_without_effect_is_found_also_without_waiting_receives(
    rollout: Rollout,
) -> None:
    def answers_at_once(event: Answer, works: Call) -> Called:
        asked = {**msgspec.json.decode(event["body"]), "wait_seconds": 0}
        return works({**event, "body": msgspec.json.encode(asked).decode()})

    rollout.faulty["receive"] = answers_at_once
    rollout.ends("Succeeded")
    rollout.faulty["delete"] = deletes_nothing
    rollout.ends("Failed")
    assert "came after it was deleted" in rollout.log[0]


@pytest.mark.parametrize("role", ["receive", "send"])
def test_one_lost_answer_of_a_call_is_no_fault(rollout: Rollout, role: str) -> None:
    """It is made again: a message is then received later, or stored twice."""

    def loses_an_answer(event: Answer, works: Call) -> Called:
        works(event)
        del rollout.faulty[role]
        return Called(answer={"statusCode": 503, "body": "{}"})

    rollout.faulty[role] = loses_an_answer
    rollout.ends("Succeeded")


def test_slow_versions_are_reported_before_the_hook_is_ended(
    rollout: Rollout,
) -> None:
    def hangs(event: Answer, works: Call) -> Called:
        rollout.world.clock.sleep(120)
        return Called(answer={"statusCode": 503, "body": "{}"})

    rollout.faulty["send"] = hangs
    begun_ms = rollout.world.clock.now_ms()
    rollout.ends("Failed")
    assert "send: the time is over; it ended with status 503" in rollout.log[0]
    assert rollout.world.clock.now_ms() - begun_ms < 450_000


def fails(*_: Any) -> Any:
    raise Unavailable


def test_whatever_goes_wrong_in_the_hook_is_reported(
    rollout: Rollout, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(trial, "create_queue", fails)
        rollout.ends("Failed")
    with monkeypatch.context() as patched:
        patched.delenv("DELETE_VERSION")
        rollout.ends("Failed")
    assert [line.startswith("ERROR the new versions") for line in rollout.log] == [True, True]


def test_a_report_refused_by_codedeploy_is_made_again_by_lambda(
    rollout: Rollout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It makes an invocation again that ended in an error."""
    client = _session().create_client(HOOK, region_name="eu-central-1")
    monkeypatch.setattr(lifecycle_hook, "client", lambda: client)
    with Stubber(client) as stub:
        stub.add_client_error("put_lifecycle_event_hook_execution_status", "ThrottlingException")
        with pytest.raises(ClientError, match="ThrottlingException"):
            rollout.world.run("pre_traffic", EVENT)
    rollout.ends("Succeeded")


def test_failed_tidying_up_says_nothing_of_the_versions(
    rollout: Rollout, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(trial, "delete_queue", fails)
        patched.setattr(trial, "delete_passing_key", fails)
        rollout.ends("Succeeded")
    assert rollout.log == ["WARNING a trial left something behind"] * 2
    assert len(rollout.left()) == 2

    rollout.ends("Succeeded")  # it may be of a trial that still runs
    assert len(rollout.left()) == 2
    rollout.world.clock.sleep(trial.LEFT_BEHIND_MS / 1_000 + 1)
    rollout.world.engine.remove_expired()
    rollout.ends("Succeeded")
    assert rollout.left() == []


def test_its_key_opens_its_queue_alone_and_only_for_its_time(rollout: Rollout) -> None:
    world = rollout.world
    seen: list[Client] = []

    def notes(event: Answer, works: Call) -> Called:
        seen.append(Client(world, event["headers"]["authorization"]))
        queue = event["pathParameters"]["queue"]
        assert seen[0].put("/queues/other").code == "Forbidden"
        assert seen[0].post("/queues/other/messages", {"messages": [{"body": "x"}]}).status == 403
        assert seen[0].delete(f"/queues/{queue}").code == "Forbidden"
        assert seen[0].post("/keys", {}).code == "Forbidden"
        return works(event)

    rollout.faulty["delete"] = notes
    rollout.ends("Succeeded")
    assert seen[0].get("/queues").code == "Unauthenticated"


def test_a_key_left_behind_expires(rollout: Rollout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "delete_passing_key", lambda core, key_id: None)
    rollout.ends("Succeeded")
    client = Client(rollout.world, rollout.events[0][1]["headers"]["authorization"])
    assert client.get("/queues").code == "Forbidden"
    rollout.world.clock.sleep(trial.KEY_SECONDS)
    assert client.get("/queues").code == "Unauthenticated"


def test_nobody_can_have_the_account_of_the_trials(world: World) -> None:
    with pytest.raises(InvalidParameter, match=r"^account: "):
        world.client(trial.ACCOUNT)
    admin = world.client("root", admin=True)
    assert admin.post("/keys", {"account": trial.ACCOUNT}).code == "InvalidParameter"
    assert admin.put("/queues/orders").status == 201
    granted = admin.put(f"/queues/orders/grants/{trial.ACCOUNT}", {"permission": "send"})
    assert granted.code == "InvalidParameter"
