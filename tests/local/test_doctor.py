"""What `cirrusmq doctor` says of services that are wrong in one way each, and of data folders."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.local.scripted_service import connect_to
from typer.testing import CliRunner

from cirrusmq_client import Connection
from cirrusmq_local.commands import doctor as doctoring
from cirrusmq_local.commands import machine_checks, service_checks

Doctor = Callable[..., tuple[int, dict[str, tuple[str, str]]]]
Answer = Callable[[Any, Any], Any]


def answer(value: Any, status: int = 200) -> Answer:
    return lambda event, _: {"statusCode": status, "body": json.dumps(value)}


def health(ahead: timedelta = timedelta(), scale: float = 1.0) -> Answer:
    def tell(event: Any, _: Any) -> Any:
        now = (datetime.now(UTC) + ahead).isoformat(timespec="milliseconds")
        told = {"status": "ok", "version": "0.1.0", "time": now, "time_scale": scale}
        return {"statusCode": 200, "body": json.dumps(told)}

    return tell


LISTED = answer({"queues": []})


@pytest.fixture
def doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Its exit code and findings: `doctor("--port", "9000")["service"] == ("ok", "…")`."""
    for name in ("CIRRUSMQ_URL", "CIRRUSMQ_ACCESS_KEY_ID", "CIRRUSMQ_SECRET"):
        monkeypatch.delenv(name, raising=False)
    # Spark takes seconds to be asked; a test of its own asks it.
    monkeypatch.setattr(machine_checks, "find_spec", lambda name: None)
    app = typer.Typer()
    app.command()(doctoring.doctor)

    def run(*arguments: str, **variables: str) -> Any:
        options = ["--json", "--data", str(tmp_path), *arguments]
        done = CliRunner().invoke(app, options, env=variables)
        assert done.exception is None or isinstance(done.exception, SystemExit)
        found = json.loads(done.stdout)
        return done.exit_code, {each["about"]: (each["state"], each["text"]) for each in found}

    return run


def test_all_is_well_if_a_service_answers_and_takes_the_key(
    doctor: Doctor, serve: Any, tmp_path: Path
) -> None:
    port = serve({"GET /health": health(), "GET /queues": LISTED}).port
    connect_to(tmp_path, port)
    code, found = doctor()
    assert code == 0
    assert {about: state for about, (state, _) in found.items()} == {
        "python": "ok",
        "service": "ok",
        "clock": "ok",
        "key": "ok",
        "disk": "ok",
        "reports": "note",
    }
    assert found["service"][1] == f"http://127.0.0.1:{port} answers, version 0.1.0"
    assert "make report" in found["reports"][1]


def test_a_line_each_is_printed(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doctor: Doctor
) -> None:
    connect_to(tmp_path, serve({"GET /health": health(), "GET /queues": LISTED}).port)
    app = typer.Typer()
    app.command()(doctoring.doctor)
    lines = CliRunner().invoke(app, ["--data", str(tmp_path)]).stdout.splitlines()
    assert lines[0].startswith("ok    python   3.")
    assert [line.split()[0] for line in lines] == ["ok"] * 5 + ["note"]


def test_before_the_first_start_the_port_is_looked_at(doctor: Doctor, unused_port: int) -> None:
    code, found = doctor("--port", str(unused_port))
    assert (code, found["service"][0], found["port"][0]) == (0, "note", "ok")
    assert "cirrusmq up" in found["service"][1]
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, found = doctor("--port", str(other.getsockname()[1]))
    assert (code, found["port"][0]) == (1, "wrong")
    assert "taken by another program: cirrusmq up --port" in found["port"][1]


def test_nothing_answers(doctor: Doctor, tmp_path: Path, unused_port: int) -> None:
    connect_to(tmp_path, unused_port)
    code, found = doctor()
    assert code == 1
    state, text = found["service"]
    assert (state, text.endswith("start it with: cirrusmq up")) == ("wrong", True)
    assert f"nothing answers at http://127.0.0.1:{unused_port}" in text
    assert found["data"][0] == "ok"
    assert "key" not in found


def test_another_program_without_http_has_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connection = Connection(
            url=f"http://127.0.0.1:{listening.getsockname()[1]}", access_key_id="k", secret="s"
        )
        service = subprocess.Popen(
            [sys.executable, "-c", _GREETER, str(listening.fileno())],
            pass_fds=[listening.fileno()],
        )
        found = service_checks.check_service(connection).finding
        service.kill()
        service.wait()
    assert "another program answers" in found.text


_GREETER = """
import socket, sys
taken, _ = socket.socket(fileno=int(sys.argv[1])).accept()
taken.sendall(b"220 mail.example.com ESMTP\\r\\n")
"""


def test_a_hanging_service_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_checks, "SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        connection = Connection(url=url, access_key_id="k", secret="s")
        assert "does not answer" in service_checks.check_service(connection).finding.text


LOST = {"status": "degraded", "detail": "the log was damaged", "version": "1", "time_scale": 1.0}
LOST |= {"time": datetime.now(UTC).isoformat(timespec="milliseconds")}
ANOTHER = "another program answers"
NO_KEY = "The access key is missing or wrong."


@pytest.mark.parametrize(
    ("told", "listed", "about", "state", "text"),
    [
        (answer(LOST), LISTED, "service", "wrong", "answers, and lost data: the log was damaged"),
        (answer({"hello": "world"}), LISTED, "service", "wrong", ANOTHER),
        (answer([]), LISTED, "service", "wrong", ANOTHER),
        (answer("text"), LISTED, "service", "wrong", ANOTHER),
        (answer({"time": "noon", "version": "1"}), LISTED, "service", "wrong", ANOTHER),
        (health(), answer({"detail": NO_KEY}, 401), "key", "wrong", "missing or wrong"),
        (health(), answer({"detail": NO_KEY}, 401), "key", "wrong", "cirrusmq key create"),
        (health(), answer({"detail": "has expired"}, 401), "key", "wrong", "expired"),
        (health(), answer({"detail": "has expired"}, 401), "key", "wrong", "cirrusmq key create"),
        (health(), answer({"detail": "its scope"}, 403), "key", "ok", "scope"),
        (health(), answer({"detail": "too many"}, 429), "key", "wrong", "429"),
        (health(timedelta(hours=1)), LISTED, "clock", "wrong", "s behind the service's"),
        (health(timedelta(hours=-1)), LISTED, "clock", "wrong", "s ahead of the service's"),
        (
            health(timedelta(days=3), scale=60),
            *(LISTED, "clock", "ok", "the service's time runs 60 times as fast, as asked"),
        ),
    ],
    ids=[
        *("lost data", "an object", "a list", "a text", "no time"),
        *("no key", "no key: what to do", "an old key", "an old key: what to do"),
        *("a scope", "too many calls", "behind", "ahead", "faster"),
    ],
)
def test_a_single_fault_of_a_service_is_told(
    doctor: Doctor,
    serve: Any,
    tmp_path: Path,
    told: Answer,
    listed: Answer,
    about: str,
    state: str,
    text: str,
) -> None:
    connect_to(tmp_path, serve({"GET /health": told, "GET /queues": listed}).port)
    code, found = doctor()
    assert (code, found[about][0]) == (1 if state == "wrong" else 0, state)
    assert text in found[about][1]


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"CIRRUSMQ_URL": "http://127.0.0.1:1"}, "CIRRUSMQ_SECRET not set"),
        (
            {"CIRRUSMQ_URL": "x", "CIRRUSMQ_ACCESS_KEY_ID": "k", "CIRRUSMQ_SECRET": "s"},
            "is not a URL",
        ),
    ],
)
def test_a_fault_of_the_environment_is_told(
    doctor: Doctor, variables: dict[str, str], text: str
) -> None:
    code, found = doctor(**variables)
    assert (code, found["service"][0]) == (1, "wrong")
    assert text in found["service"][1]


def test_little_space_is_said_before_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usage = namedtuple("usage", "free")
    below = tmp_path / "not" / "there"
    for free, state in ((5 * 10**9, "ok"), (5 * 10**8, "note"), (5 * 10**7, "wrong")):
        monkeypatch.setattr(shutil, "disk_usage", lambda place, free=free: usage(free))
        found = machine_checks.check_disk(below)
        assert (found.state, str(tmp_path) in found.text) == (state, True)


def test_spark_without_a_java_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from cirrusmq_local.stack import report_run

    monkeypatch.setattr(machine_checks, "find_spec", lambda name: object())
    monkeypatch.setattr(report_run, "find_java", lambda: None)
    found = machine_checks.check_reports()
    assert (found.state, "JAVA_HOME" in found.text) == ("wrong", True)
    monkeypatch.setattr(report_run, "find_java", lambda: "/usr/bin/java")
    assert machine_checks.check_reports().state == "ok"


def test_the_jobs_java_is_found() -> None:
    from cirrusmq_local.stack.report_run import find_java

    found = find_java()
    assert found is not None
    assert Path(found).name == "java"


def test_an_older_python_is_refused_in_one_line() -> None:
    code = "import sys; sys.version_info = (3, 10, 2); import cirrusmq_local.commands"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("cirrusmq: Python 3.11 or newer is needed, this is 3.10:")
    assert done.stderr.count("\n") == 1


def test_a_damaged_folder_is_said_by_the_command(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_text("not a database, however long this text may be made")
    code, found = doctor("--port", "1024")
    assert (code, found["data"][0]) == (1, "wrong")
    assert "move the folder away" in found["data"][1]
