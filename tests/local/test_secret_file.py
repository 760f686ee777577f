"""The deployment's secret on one machine, and in Secrets Manager as moto has it."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import moto
import pytest
from tests.commands import run_command
from tests.stack import Start, environment

from cirrusmq.runtime.secret import USED_AFTER_MS, Generations, Secret, written
from cirrusmq.wiring.adapters import SecretDocument
from cirrusmq_local.cloud.tables import table_specs
from cirrusmq_local.cloud.template import TEMPLATE, load
from cirrusmq_local.commands.secret import rotate_in_account
from cirrusmq_local.engine import Engine
from cirrusmq_local.engine.data_errors import DataError
from cirrusmq_local.stack.secret_file import SecretFile
from cirrusmq_local.testing.clock import START_MS, ManualClock

KEY = "ab" * 32
PLACE = {"pk": {"S": "deployment"}, "sk": {"S": "secret"}}


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(None, table_specs(load(TEMPLATE)), now_ms=lambda: START_MS)
    yield made
    made.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [*arguments, "--data", str(folder)]
    return run_command(command, env=environment(), folder=folder)


def test_a_secret_is_made_once(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    SecretFile(path).begin(engine, "Directory")
    text = path.read_text()
    SecretFile(path).begin(engine, "Directory")
    assert path.read_text() == text
    assert mode(path) == 0o600
    assert len(json.loads(text)["key"]) == 64


def test_the_secret_of_an_older_folder_moves_out_of_its_table(
    engine: Engine, tmp_path: Path
) -> None:
    engine.execute("PutItem", {"TableName": "Directory", "Item": {**PLACE, "document": {"S": KEY}}})
    path = tmp_path / "secret.json"
    SecretFile(path).begin(engine, "Directory")
    assert json.loads(path.read_text())["key"] == KEY
    assert "Item" not in engine.execute("GetItem", {"TableName": "Directory", "Key": PLACE})


def test_a_file_open_to_others_is_closed(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_text(written(Generations(key=KEY)))
    path.chmod(0o644)
    SecretFile(path).begin(engine, "Directory")
    assert mode(path) == 0o600


@pytest.mark.parametrize("text", ["", "{}", '{"key": 1}', '{"key": "ab"}'])
def test_a_damaged_secret_is_told_and_left_as_it_is(
    engine: Engine, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "secret.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"secret\.json is damaged"):
        SecretFile(path).begin(engine, "Directory")
    assert path.read_text() == text


def test_a_running_service_turns_it_over_and_keeps_everything_to_itself(start: Start) -> None:
    stack = start()
    key = json.loads((stack.folder / "secret.json").read_text())["key"]

    turned = run("secret", "rotate", "--json", folder=stack.folder)

    assert turned.returncode == 0, turned.stderr
    assert "signs_from" in json.loads(turned.stdout)
    held = json.loads((stack.folder / "secret.json").read_text())
    assert held["previous"]["key"] == key != held["key"]
    again = run("secret", "rotate", "--json", folder=stack.folder)
    assert again.returncode == 1
    assert "less than a day ago" in again.stderr
    assert mode(stack.folder) == 0o700
    open_to_others = {
        path.name: oct(mode(path))
        for path in stack.folder.iterdir()
        if path.is_file() and mode(path) & 0o077
    }
    assert open_to_others == {}


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_CONFIG_FILE", raising=False)
    with moto.mock_aws():
        yield boto3.client("secretsmanager", region_name="eu-central-1")


def test_in_an_account_it_is_read_and_turned_over(
    account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = account.create_secret(Name="secret", SecretString=json.dumps({"key": KEY}))
    monkeypatch.setenv("SECRET_ARN", made["ARN"])
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    clock = ManualClock(0)
    secret = Secret(clock, SecretDocument(botocore.session.Session()))
    assert secret.signing_key().hex() == KEY

    rotate_in_account(made["ARN"])

    assert secret.accepted_keys() == [bytes.fromhex(KEY)]
    clock.pass_seconds(600)
    assert secret.accepted_keys()[0].hex() == KEY
    assert len(secret.accepted_keys()) == 2
    clock.pass_seconds(4 * 10**9 + USED_AFTER_MS)
    assert secret.signing_key().hex() != KEY
    older = account.get_secret_value(SecretId=made["ARN"], VersionStage="AWSPREVIOUS")
    assert json.loads(older["SecretString"])["key"] == KEY
    with pytest.raises(SystemExit):
        rotate_in_account(made["ARN"])


def test_keys_are_made_rotated_and_deleted_by_command(shared_stack: Any) -> None:
    folder = shared_stack.folder
    scope = '{"send": {"queues": ["orders"]}}'
    made = run("key", "create", "--scope", scope, "--description", "d", "--json", folder=folder)
    assert made.returncode == 0, made.stderr
    shown = json.loads(made.stdout)
    assert shown["scope"] == json.loads(scope)
    rotated = run(
        "key", "rotate", shown["access_key_id"], "--grace-seconds", "60", "--json", folder=folder
    )
    assert json.loads(rotated.stdout)["secret"] != shown["secret"]
    listed = json.loads(run("key", "list", "--json", folder=folder).stdout)
    assert shown["access_key_id"] in {each["access_key_id"] for each in listed}
    assert run("key", "delete", shown["access_key_id"], folder=folder).returncode == 0
