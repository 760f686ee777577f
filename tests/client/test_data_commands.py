"""`cirrusmq data`: an account as a file, on the running service."""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import Run, connection_by, variables_of

from cirrusmq_client import Client
from cirrusmq_local.declarations import document

EXAMPLE = Path(__file__).resolve().parents[2] / "infra/examples/shop.yaml"
EMPTY = "version: 1\nqueues: {}\ntopics: {}\n"


class Account:
    """A new account, as the holder of its key works on it."""

    def __init__(self, client: Client, run_command: Run, folder: Path) -> None:
        self.folder, self._run = folder, run_command
        self.name = f"shop-{uuid.uuid4().hex[:12]}"
        key = client.create_key(self.name)
        self.connection = connection_by(client.url, key)
        self._variables = variables_of(self.connection)

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self._run("data", *map(str, arguments), **self._variables)

    def done(self, *arguments: str | Path) -> str:
        """What a command prints that succeeds."""
        run = self.run(*arguments)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def write(self, text: str) -> Path:
        path = self.folder / f"{uuid.uuid4().hex[:6]}.yaml"
        path.write_text(text)
        return path


@pytest.fixture
def account(client: Client, run_command: Run, tmp_path: Path) -> Account:
    return Account(client, run_command, tmp_path)


def test_the_example_is_planned_applied_exported_and_removed(account: Account) -> None:
    planned = account.run("import", "plan", EXAMPLE, "--exit-code")
    assert planned.returncode == 3, planned.stderr
    assert planned.stdout.splitlines()[-1] == (
        "9 to create, 0 to change, 0 to delete, 0 as the file says"
    )
    assert account.run("export").stdout == EMPTY
    assert account.done("import", "apply", EXAMPLE).count("\ndone + ") == 9
    again = account.done("import", "plan", EXAMPLE, "--exit-code", "--delete")
    assert again == "0 to create, 0 to change, 0 to delete, 9 as the file says\n"
    exported = account.folder / "exported.yaml"
    account.done("export", exported)
    wanted = document.parse(EXAMPLE.read_text())
    assert document.parse(exported.read_text()).keys() == wanted.keys()
    for place, each in document.parse(exported.read_text()).items():
        assert each.attributes == wanted[place].attributes
    account.done("import", "apply", account.write("version: 1\n"), "--delete")
    assert account.run("export").stdout == EMPTY
    account.done("import", "apply", exported)
    assert account.run("export").stdout == exported.read_text()


def test_a_file_of_another_system_is_read(account: Account) -> None:
    path = account.folder / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbfversion: 1\r\nqueues:\r\n  a: {}\r\n")

    assert "done + queue a" in account.done("import", "apply", path)


def test_a_wrong_file_is_told_line_by_line_and_nothing_is_written(account: Account) -> None:
    path = account.write("version: 1\nqueues:\n  a: {}\n  b: {delay_seconds: -1}\n  c: {size: 3}\n")
    for command in ("plan", "apply"):
        refused = account.run("import", command, path)
        assert refused.returncode == 2
        assert refused.stdout == ""
        first, second = refused.stderr.splitlines()
        assert first.startswith(f"cirrusmq: {path}:4: queue b: delay_seconds: must be an integer")
        assert second == f"cirrusmq: {path}:5: queue c: size: this field is not known"
    assert account.run("export").stdout == EMPTY
    missing = account.run("import", "plan", account.folder / "none.yaml")
    assert missing.returncode == 2
    assert "none.yaml cannot be read: No such file" in missing.stderr


def test_a_conflict_ends_a_plan_and_an_apply_before_anything_is_written(account: Account) -> None:
    assert account.run("import", "apply", account.write("version: 1\nqueues: {a: {}}\n")).stdout
    path = account.write("version: 1\nqueues:\n  a: {ordered: true}\n  b: {}\n")
    for command in ("plan", "apply"):
        refused = account.run("import", command, path)
        assert refused.returncode == 1
        assert "! queue a: ordered: is fixed when the queue is created\n" in refused.stdout
        assert "cannot become what the file says: queue a" in refused.stderr
    assert "  b" not in account.run("export").stdout


def test_secrets_of_new_urls_go_to_a_file_of_their_owner_alone(account: Account) -> None:
    path = account.write(
        "version: 1\ntopics:\n  sales:\n    subscriptions:\n"
        "      web: {protocol: http, endpoint: 'https://example.com/in'}\n"
    )
    refused = account.run("import", "apply", path)
    assert refused.returncode == 1
    assert "name a file for them: --secrets" in refused.stderr
    assert account.run("export").stdout == EMPTY
    secrets = account.folder / "secrets"
    applied = account.run("import", "apply", path, "--secrets", secrets)
    assert applied.returncode == 0, applied.stderr
    kept: dict[str, Any] = json.loads(secrets.read_text())
    assert (kept["topic"], kept["subscription"]) == ("sales", "web")
    assert kept["secret"].startswith("whsec_")
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert kept["secret"] not in applied.stdout + applied.stderr + account.run("export").stdout
    nowhere = account.folder / "none" / "secrets"
    account.done("import", "apply", path, "--secrets", nowhere)


def test_a_queue_with_messages_is_deleted_with_force(account: Account) -> None:
    account.run("import", "apply", account.write("version: 1\nqueues: {a: {}}\n"))
    with Client(account.connection) as client:
        client.call("POST", "/queues/a/messages", {"messages": [{"body": "hello"}]})
    empty = account.write("version: 1\n")
    refused = account.run("import", "apply", empty, "--delete")
    assert refused.returncode == 1
    assert "! queue a: holds 1 message, and is not in the file\n" in refused.stdout
    account.done("import", "apply", empty, "--delete", "--force")
    assert account.run("export").stdout == EMPTY


def test_a_refused_step_ends_the_apply_and_the_next_one_goes_on(account: Account) -> None:
    text = f"version: 1\nqueues: {{a: {{grants: {{{account.name}: send}}}}, b: {{}}}}\n"
    stopped = account.run("import", "apply", account.write(text))
    assert stopped.returncode == 1
    assert stopped.stdout.splitlines()[-2:] == ["done + queue a", "done + queue b"]
    assert f"+ grant a/{account.name}: account: must be another account" in stopped.stderr
    assert "done: 2 of 3 steps (apply again: it goes on from there)" in stopped.stderr
    other = account.write(text.replace(account.name, "other"))
    assert account.done("import", "apply", other).splitlines()[-1] == "done + grant a/other"


def test_a_plan_in_json_has_every_step(account: Account) -> None:
    steps = json.loads(account.done("import", "plan", EXAMPLE, "--json"))["steps"]
    assert {"action": "create", "kind": "queue", "name": "orders-dead"}.items() <= steps[1].items()
    assert [step["of"] for step in steps if step["kind"] == "subscription"] == ["sales"] * 3


def test_an_apply_in_json_has_the_plan_and_then_its_steps(account: Account) -> None:
    text = "version: 1\nqueues: {a: {}}\ntopics: {news: {}}\n"
    done = account.done("import", "apply", account.write(text), "--json")
    plan, *steps = map(json.loads, done.splitlines())
    assert [step["action"] for step in plan["steps"]] == ["create", "create"]
    assert steps == [
        {"done": {"action": "create", "kind": "queue", "name": "a"}},
        {"done": {"action": "create", "kind": "topic", "name": "news"}},
    ]
