"""The how-tos: short, and what each shows is run: programs, units, manifests and workflows.

What their `console` blocks show is typed by `test_manual_commands.py`.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.manual.pages import MANUAL, ROOT, blocks, commands, scripts
from tests.stack import COMMAND, Stack, Start, environment

from cirrusmq_client import Client, Connection, DeadLetter, Message, Received, Retry
from cirrusmq_local.testing import Service

PROGRAMS = Path(__file__).with_name("how_to")
WEBHOOKS = Path(__file__).with_name("webhooks")
HOW_TOS = sorted(MANUAL.glob("how-to-*.md"))
NODE = ROOT / ".node"
"""Made by `make tools`; it has Express."""
SECONDS = 60


@pytest.mark.parametrize("page", HOW_TOS, ids=lambda page: page.stem)
def test_a_how_to_is_short_begins_with_its_question_and_shows_something(page: Path) -> None:
    text = page.read_text("utf-8")
    printed = sum(len(line.split()) for each in commands(page) for line in each.shown)
    assert 200 <= len(text.split()) - printed <= 450
    first = text.split("\n\n")[1]
    assert "?" in first
    assert any(True for _ in blocks(page, "console", "python", "yaml"))


class Program:
    """A program of a page, running; its lines so far."""

    def __init__(self, arguments: list[str], folder: Path, **variables: str) -> None:
        self._output = folder / f"out-{time.monotonic_ns()}"
        with self._output.open("w") as file:
            self.process = subprocess.Popen(
                arguments,
                cwd=folder,
                env=environment() | {"PYTHONDONTWRITEBYTECODE": "1"} | variables,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    @property
    def text(self) -> str:
        return self._output.read_text()

    def wait_for(self, wanted: str) -> str:
        """Its text, once it has this."""
        ends = time.monotonic() + SECONDS
        while wanted not in self.text:
            assert time.monotonic() < ends, f"{wanted} is not in {self.text}"
            assert self.process.poll() is None, self.text
            time.sleep(0.02)
        return self.text

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    running: list[Program] = []

    def start(arguments: list[str], folder: Path = tmp_path, **variables: str) -> Program:
        running.append(Program(arguments, folder, **variables))
        return running[-1]

    yield start
    for each in running:
        each.process.kill()
        each.process.wait()


class Account:
    """An account of a test's own: a client, and the variables for programs."""

    def __init__(self, stack: Stack, name: str) -> None:
        made = stack.client().post("/keys", json={"account": name}).json()
        self.variables = {
            "CIRRUSMQ_URL": stack.url,
            "CIRRUSMQ_ACCESS_KEY_ID": made["access_key_id"],
            "CIRRUSMQ_SECRET": made["secret"],
        }
        self.client = Client(
            Connection(url=stack.url, access_key_id=made["access_key_id"], secret=made["secret"])
        )


@pytest.fixture
def account(shared_stack: Stack) -> Iterator[Account]:
    made = Account(shared_stack, f"how-to-{uuid.uuid4().hex[:8]}")
    yield made
    made.client.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


# --- a web application and a worker


def test_the_systemd_unit_handles_messages_of_the_web_app(
    account: Account, run: Callable[..., Program], tmp_path: Path
) -> None:
    (unit,) = blocks(MANUAL / "how-to-worker.md", "text")
    read = configparser.ConfigParser()
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string(unit)
    python, program = shlex.split(read["Service"]["ExecStart"])
    assert (Path(python).name, Path(program).name) == ("python", "worker.py")
    worker = run([sys.executable, str(PROGRAMS / "worker.py")], **account.variables)
    port = free_port()
    web = run(
        [sys.executable, "-m", "flask", "--app", "web", "run", "--port", str(port)],
        **account.variables,
        PYTHONPATH=str(PROGRAMS),
    )
    web.wait_for("Running on")

    answer = httpx.post(f"http://127.0.0.1:{port}/orders", content="two coffees", trust_env=False)

    assert answer.status_code == 202
    assert answer.json()["message"].startswith("Msg-")
    worker.wait_for("handled two coffees")
    assert worker.end() == 0


def test_each_stop_of_a_worker_waits_longer_than_its_grace() -> None:
    page = MANUAL / "how-to-worker.md"
    (program,) = (text for text in blocks(page, "python") if "grace_seconds" in text)
    found = re.search(r"grace_seconds=(\d+)", program)
    assert found is not None
    (unit,), (compose, deployment) = blocks(page, "text"), blocks(page, "yaml")
    held = yaml.safe_load(deployment)["spec"]["template"]
    assert held["spec"]["containers"][0]["command"] == ["python", "worker.py"]
    assert held["metadata"]["labels"] == {"app": "worker"}
    services = yaml.safe_load(compose)["services"]
    assert services["worker"]["command"] == ["python", "worker.py"]
    waits = [
        int(re.findall(r"TimeoutStopSec=(\d+)", unit)[0]),
        int(services["worker"]["stop_grace_period"].removesuffix("s")),
        held["spec"]["terminationGracePeriodSeconds"],
    ]
    assert min(waits) > int(found[1]) + 2  # settling takes two seconds at most


# --- webhooks


def subscribe(client: Client, port: int) -> str:
    """The secret of a subscription that posts to this port."""
    client.create_topic("orders")
    url = f"http://127.0.0.1:{port}/hook"
    made = client.create_subscription("orders", "shop", {"protocol": "http", "endpoint": url})
    return str(made["secret"])


def check_webhook(account: Account, program: Program, port: int) -> None:
    """It takes a post of the service once, and no forged one."""
    forged = httpx.post(f"http://127.0.0.1:{port}/hook", json={"msgBody": "x"}, trust_env=False)
    assert forged.status_code == 401
    account.client.publish("orders", [Message("two coffees")])
    program.wait_for("received two coffees")
    ends = time.monotonic() + SECONDS
    while account.client.show_subscription("orders", "shop")["counts"]["active"]:
        assert time.monotonic() < ends
        time.sleep(0.05)
    assert program.text.count("received") == 1


@pytest.mark.parametrize(
    ("name", "serve", "running"),
    [
        ("webhook_flask", ["flask", "--app", "webhook_flask", "run"], "Running on"),
        ("webhook_fastapi", ["uvicorn", "webhook_fastapi:app"], "running on"),
    ],
)
def test_flask_and_fastapi_take_posts_of_the_service_and_no_forged_one(
    account: Account,
    run: Callable[..., Program],
    tmp_path: Path,
    name: str,
    serve: list[str],
    running: str,
) -> None:
    port = free_port()
    # As the page says: the program, with `verify.py` beside it.
    for path in (PROGRAMS / f"{name}.py", WEBHOOKS / "verify.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    command = [sys.executable, "-m", *serve, "--port", str(port)]
    program = run(command, tmp_path, WEBHOOK_SECRET=subscribe(account.client, port))
    program.wait_for(running)
    check_webhook(account, program, port)


def test_express_takes_posts_of_the_service_and_no_forged_one(
    account: Account, run: Callable[..., Program]
) -> None:
    if not (NODE / "node_modules/express").is_dir():
        pytest.skip("Express is not there: make tools")
    port = free_port()
    secret = subscribe(account.client, port)
    with tempfile.TemporaryDirectory(dir=NODE) as name:
        for path in (PROGRAMS / "webhook_express.mjs", WEBHOOKS / "verify.mjs"):
            (Path(name) / path.name).write_bytes(path.read_bytes())
        variables = {"WEBHOOK_SECRET": secret, "PORT": str(port)}
        program = run(["node", "webhook_express.mjs"], Path(name), **variables)
        program.wait_for("listening")
        check_webhook(account, program, port)


# --- handlers


def load(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, Any]:
    """What a program of a page defines, run in a folder of the test's own."""
    monkeypatch.chdir(folder)
    held: dict[str, Any] = {}
    exec(compile((PROGRAMS / name).read_text("utf-8"), name, "exec"), held)
    return held


def test_an_idempotent_handler_bears_a_second_delivery(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = load("idempotent.py", monkeypatch, tmp_path)

    def handle_and_die(message: Received) -> None:
        program["handle"](message)
        raise ConnectionError("the work is done, and the delete is not")

    with Service() as service:
        service.client.create_queue("payments")
        service.client.send("payments", [Message(json.dumps({"cents": 250}))])
        assert len(service.consume("payments", handle_and_die)) == 1
        service.pass_seconds(60)
        assert len(service.consume("payments", program["handle"])) == 1
    kept = program["shop"].execute("SELECT sum(cents), count(*) FROM payments").fetchone()
    assert kept == (250, 1)
    program["shop"].close()


@pytest.mark.parametrize(
    ("status", "headers", "wanted"),
    [
        (200, {}, None),
        (429, {"retry-after": "7"}, Retry(after=7)),
        (429, {}, Retry(after=30)),
        (422, {}, DeadLetter("the bank refuses it")),
    ],
)
def test_a_handler_says_what_becomes_of_its_message(
    status: int,
    headers: dict[str, str],
    wanted: object,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    handle = with_bank(load("retries.py", monkeypatch, tmp_path), status, headers)
    results = []
    with Service() as service:
        service.client.create_queue("payments")
        service.client.send("payments", [Message("250 cents")])
        service.consume("payments", lambda message: results.append(handle(message)))
    assert results == [wanted]


def with_bank(program: dict[str, Any], status: int, headers: dict[str, str]) -> Any:
    """The handler, with a bank that answers so."""
    program["bank"].close()
    answering = httpx.MockTransport(lambda _: httpx.Response(status, headers=headers))
    program["bank"] = httpx.Client(transport=answering)
    return program["handle"]


# --- local development


def test_the_workflows_steps_start_a_service_for_the_tests_and_end_it(
    tmp_path: Path, start: Start
) -> None:
    _, workflow = blocks(MANUAL / "how-to-local.md", "yaml")
    steps = [step["run"] for step in yaml.safe_load(workflow)["jobs"]["test"]["steps"][1:]]
    install, up, env, tests, down = steps
    assert install.startswith("pip install cirrusmq")
    (tmp_path / "queues.yaml").write_text("version: 1\nqueues: {orders: {}}\n")
    shared = environment() | {
        "PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_ENV": str(tmp_path / "env"),
    }

    def step(line: str, **more: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=tmp_path,
            env=shared | more,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"
        return done.stdout

    step(f"{up.replace('8080', str(free_port()))} --dialect-port 0")
    try:
        step(env)
        held = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
        assert held.keys() >= {"CIRRUSMQ_URL", "CIRRUSMQ_ACCESS_KEY_ID", "CIRRUSMQ_SECRET"}
        assert tests == "pytest"
        assert "orders" in step("cirrusmq queue list", **held)
    finally:
        step(down)


def test_the_compose_file_starts_the_worker_when_the_service_answers() -> None:
    compose, _ = map(yaml.safe_load, blocks(MANUAL / "how-to-local.md", "yaml"))
    own = yaml.safe_load((ROOT / "infra/docker/compose.yaml").read_text("utf-8"))
    services = compose["services"]
    assert services["worker"]["depends_on"] == {"cirrusmq": {"condition": "service_healthy"}}
    assert "HEALTHCHECK" in (ROOT / "infra/docker/Dockerfile").read_text("utf-8")
    assert services["cirrusmq"]["ports"][0] in own["services"]["cirrusmq"]["ports"]
    assert any("cirrusmq env --for dotenv" in each for each in scripts(MANUAL / "how-to-local.md"))


# --- migrating


# An idle consumer takes ten seconds to end.
@pytest.mark.long
def test_one_worker_empties_the_old_queue_and_takes_the_new_one(
    account: Account, run: Callable[..., Program]
) -> None:
    client = account.client
    client.create_queue("orders")
    client.send("orders", [Message("old")])
    worker = run([sys.executable, str(PROGRAMS / "two_queues.py")], **account.variables)
    worker.wait_for("handled old")

    client.create_queue("orders-v2", {"ordered": True})
    client.send("orders-v2", [Message("new", group="g")])

    worker.wait_for("handled new")
    assert worker.end() == 0, worker.text
    for queue in ("orders", "orders-v2"):
        counts = client.show_queue(queue)["counts"]
        assert counts["active"] + counts["inactive"] == 0, (queue, counts, worker.text)
