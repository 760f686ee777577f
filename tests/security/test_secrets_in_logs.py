"""No log has secrets, tokens, headers or the content of messages."""

from __future__ import annotations

import base64
import itertools
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from tests.security.contract import CALLS, Stage, names_for, set_stage
from tests.stack import Start

from cirrusmq_lambda.observability import logger
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import Client

BODY = "what-the-message-says-4711"
HOOK = {"protocol": "http", "endpoint": "https://93.184.216.34/hook"}


class Lines(logging.Handler):
    """Every line that is logged, with all that travels with it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []
        self._plain = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(f"{self._plain.format(record)} {record.__dict__!r}")

    def holding(self, secret: str) -> list[str]:
        return [text[:500] for text in self.texts if secret in text]


@contextmanager
def everything_logged() -> Iterator[Lines]:
    """Every line at level DEBUG: of the root logger, and of each of our own."""
    lines = Lines()
    named = [logging.getLogger(name) for name in (*logging.root.manager.loggerDict, logger.name)]
    loggers = [logging.root, *dict.fromkeys(named)]
    before = [(held, held.level, held.disabled) for held in loggers]
    for held in loggers:
        held.disabled = False
        if held is logging.root or held.name.startswith(("cirrusmq", logger.name)):
            held.setLevel(logging.DEBUG)
        if held is logging.root or not held.propagate:
            held.addHandler(lines)
    yield lines
    for held, level, disabled in before:
        held.setLevel(level)
        held.disabled = disabled
        held.removeHandler(lines)


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = set_stage()
    core = made.world.core
    strict = msgspec.structs.replace(core.settings, confirm_endpoints=True)
    made.world.core = msgspec.structs.replace(core, settings=strict)
    yield made
    made.world.engine.close()


def parts_of(authorization: str) -> list[str]:
    """A header's secret, and the header as it was sent."""
    return [authorization.rpartition(":")[2], authorization]


def packed(text: str) -> list[str]:
    """A text as it may be met: as it is, and in base64 wherever it begins."""
    found = [text]
    for skip in range(3):
        inner = base64.b64encode(b" " * skip + text.encode()).decode()
        found.append(inner[4 if skip else 0 : len(inner) - 4])
    return found


def use_everything(stage: Stage) -> list[str]:
    """Every kind of call, good and bad; answers what of it is secret."""
    owner, world = stage.owner, stage.world
    secrets = [*parts_of(owner.authorization), world.core.secret.signing_key().hex()]
    made = owner.post("/keys", {"description": "for logs"}).json
    secrets.append(made["secret"])
    other = Client(world, f"Bearer {made['access_key_id']}:{made['secret']}")
    assert other.get("/queues").status == 200
    wrong = Client(world, f"Bearer {made['access_key_id']}:wrong-{made['secret']}")
    assert wrong.get("/queues").status == 401
    for call in CALLS:
        if call.method != "DELETE":
            stage.make(owner, call, names_for(stage, call))
            stage.make(wrong, call, names_for(stage, call))

    message = {"body": BODY, "attributes": {"note": BODY}, "tags": ["a"]}
    for path in ("/queues/orders", "/topics/news"):
        for held in (message, {"body": BODY}):
            assert owner.post(f"{path}/messages", {"messages": [held]}).status == 201
    subscribed = owner.put("/topics/news/subscriptions/hook", HOOK)
    assert subscribed.status == 201
    secrets += [subscribed.json["secret"], confirm(stage)]
    owner.post("/topics/news/messages", {"messages": [message]})
    world.settle()
    assert any(BODY.encode() in body for _, _, body in world.posts)
    world.endpoint = lambda url: "500"
    owner.post("/topics/news/messages", {"messages": [message]})
    world.settle()
    world.run("sweep")
    for received in owner.receive("orders"):
        assert owner.post("/queues/orders/messages/delete", {"receipts": [received["receipt"]]})

    for bad in (
        f'{{"messages": [{{"body": "{BODY}"',
        f'{{"messages": [{{"body": "{BODY}", "{BODY}": 1}}]}}',
        f'{{"messages": [{{"body": {{"{BODY}": 1}}}}]}}',
        f'{{"messages": "{BODY}"}}',
        f'["{BODY}"]',
    ):
        assert owner.raw("POST", "/queues/orders/messages", bad.encode()).status == 400
    return [*secrets, *packed(BODY)]


def confirm(stage: Stage) -> str:
    """Bring the token back that the endpoint got, after a wrong one; answers it."""
    path = "/topics/news/subscriptions/hook/confirm"
    nobody = Client(stage.world, "")
    stage.world.settle()
    asked = (body for _, _, body in reversed(stage.world.posts) if b'"token"' in body)
    token = str(json.loads(next(asked))["token"])
    assert nobody.post(path, {"token": token + "x"}).status == 403
    assert nobody.post(path, {"token": token}).status == 204
    return token


def test_no_secret_is_in_any_log_line(stage: Stage) -> None:
    with everything_logged() as lines:
        secrets = use_everything(stage)
        logger.debug("that lines are seen")

    assert lines.holding("that lines are seen")
    for secret in secrets:
        assert lines.holding(secret) == []


@pytest.mark.parametrize(
    "fault",
    [EngineError("ValidationException", "refused"), KeyError("refused"), TypeError("refused")],
    ids=repr,
)
def test_a_failure_inside_is_logged_without_secrets(stage: Stage, fault: Exception) -> None:
    world, key = stage.world, stage.owner.post("/keys").json
    secrets = [
        *parts_of(stage.owner.authorization),
        key["secret"],
        world.core.secret.signing_key().hex(),
    ]
    hook = stage.owner.put("/topics/news/subscriptions/hook", HOOK).json
    token = confirm(stage)
    body = {"messages": [{"body": BODY}]}
    calls: list[tuple[str, str, object]] = [
        ("POST", "/queues/orders/messages", body),
        ("POST", "/topics/news/messages", body),
        ("POST", "/queues/orders/messages/receive", {"max": 16}),
        ("POST", "/topics/news/subscriptions/hook/confirm", {"token": token}),
        ("PUT", "/topics/news/subscriptions/other", HOOK),
        ("POST", "/keys", {}),
    ]
    works = world.engine.execute
    with everything_logged() as lines:
        for (method, path, asked), spared in itertools.product(calls, range(4)):
            left = itertools.count(spared, -1)

            def fail(operation: str, request: Any) -> Any:
                if next(left) <= 0:  # noqa: B023
                    raise fault
                return works(operation, request)

            world.clock.pass_seconds(61)  # nothing is remembered: each call asks the store
            world.engine.execute = fail  # type: ignore[method-assign]
            stage.owner.call(method, path, asked)
            world.engine.execute = works  # type: ignore[method-assign]

    assert lines.holding("unexpected")
    for secret in [*secrets, hook["secret"], token, *packed(BODY)]:
        assert lines.holding(secret) == []


def test_no_secret_is_in_the_output_of_a_running_stack(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "DEBUG")
    up = start()
    client = up.client()
    key = client.post("/keys").json()
    connection = up.connection()
    client.put("/queues/orders")
    client.put("/topics/news")
    hook = {"protocol": "http", "endpoint": "http://127.0.0.1:9/hook"}
    secret = client.put("/topics/news/subscriptions/hook", json=hook).json()["secret"]
    message = {"messages": [{"body": BODY}]}
    for path in ("/queues/orders/messages", "/topics/news/messages"):
        assert client.post(path, json=message).status_code == 201
        broken = json.dumps(message)[:-1].encode()
        assert client.post(path, content=broken).status_code in (400, 415)
    bad = {"authorization": f"Bearer {key['access_key_id']}:wrong-{key['secret']}"}
    assert client.get("/queues/orders", headers=bad).status_code == 401
    client.post("/local/run/sweep")
    _, out, err = up.end()
    secrets = [key["secret"], connection["secret"], secret, *packed(BODY)]
    logs = [held.read_text() for held in up.folder.glob("*.log*")]
    assert logs
    for secret in secrets:
        assert not any(secret in text for text in (out, err, *logs))
