"""Files of a run of `cirrusmq verify`: signing, checking, undoing."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cirrusmq_client import find_connection
from cirrusmq_local.commands.console import fail, print_json
from cirrusmq_local.plurals import counted

_OF_ACCOUNTS = ("concurrency", "maximum", "alias")


def service(url: str | None, data: Path) -> Any:
    """The service at a URL, by the key of the environment, or else the service of a folder."""
    from cirrusmq_client.tls import trusted
    from cirrusmq_local.verifying.remote import Service

    environment = dict(os.environ) if url is None else {**os.environ, "CIRRUSMQ_URL": url}
    given = environment if "CIRRUSMQ_ACCESS_KEY_ID" in environment else {}
    connection = find_connection(data, given)
    secure = connection.url.startswith("https:")
    return Service(
        connection.url.rstrip("/") if given or url is None else url.rstrip("/"),
        connection.authorization,
        verify=trusted(connection) if secure else False,
    )


def dialect_url(url: str, data: Path) -> str | None:
    """The endpoint for other services' SDKs, if the service at a URL has a data folder here."""
    from cirrusmq_local.stack.data import DataFolder

    held = DataFolder(data).read_connection()
    return held.get("dialect_url") if held and held["url"].rstrip("/") == url else None


def commit() -> str | None:
    """The commit of the checkout that this is, with a + if files differ; None if it is none."""
    from cirrusmq_local.cloud.template import TEMPLATE

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(TEMPLATE.parent), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        # A package may lie in a checkout of something else.
        if Path(git("rev-parse", "--show-toplevel")).resolve() != TEMPLATE.parent.resolve():
            return None
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def region(url: str) -> str | None:
    """The AWS region in the URL of an API or a function; None if it has none."""
    found = re.search(r"\.(?:execute-api|lambda-url)\.([a-z0-9-]+)\.", url)
    return None if found is None else found[1]


def account(journal: Any, sleep: Callable[[float], object] = time.sleep) -> Any:
    """The account of the AWS credentials. sleep: waits while a fault lasts."""
    import boto3

    from cirrusmq_local.verifying.account import Account

    return Account(boto3.client("lambda"), boto3.client("dynamodb"), journal, sleep)


def sign(told: dict[str, Any], key: Path | None) -> None:
    """Signs a result in place, if there is a key. Exits if the key cannot be used."""
    if key is None:
        return
    from cirrusmq_local.verifying import signing

    try:
        signing.sign(told, key)
    except (OSError, ValueError) as error:
        fail(str(error))


def check(path: Path, as_json: bool) -> None:
    """Checks the signature of a result, and its history. Exits if one is wrong."""
    from cirrusmq_local.verifying import signing

    try:
        told = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        fail(f"{path}: {error}")
    try:
        key = signing.check(told)
    except signing.BadSignature as error:
        fail(f"{path}: {error}")
    history, digest = path.with_name("history.jsonl"), told.get("history_sha256")
    matches = None
    if digest is not None and history.exists():
        matches = hashlib.sha256(history.read_bytes()).hexdigest() == digest
        if not matches:
            fail(f"{history} is not the history of this result")
    if as_json:
        print_json({"public_key": key, "history": matches})
        return
    print(f"signed by the key {key}; {'its history is beside it' if matches else 'no history'}")


def undo(path: Path, url: str | None, data: Path) -> None:
    """Plays the steps of a journal that are left. Exits if one fails."""
    from cirrusmq_local.commands import verify_engine
    from cirrusmq_local.verifying import accounts, machine

    if not path.is_file():
        fail(f"{path} is no journal: a run names its own undo-….jsonl")
    from cirrusmq_local.verifying.journal import Journal, play, read_steps

    def remove(step: dict[str, Any]) -> None:
        accounts.remove(service(url, data), step["prefix"], step["account"])

    kinds: dict[str, Any] = {
        "continue": machine.let_go_on,
        "let write": machine.let_write,
        "remove": remove,
        "table": verify_engine.remove,
        machine.STARTED: machine.remove_started,
    }
    steps = [step for step in read_steps(path).values() if step is not None]
    if any(step["kind"] == machine.STARTED for step in steps):
        # The service was the run's own, and ended with it: all else ended with the service.
        kinds |= dict.fromkeys(("continue", "let write", "remove"), lambda step: None)
    if any(step["kind"] in _OF_ACCOUNTS for step in steps):
        kinds |= account(Journal(path)).undoing()
    try:
        undone = play(path, kinds)
    except (OSError, KeyError, ValueError) as error:
        fail(f"{path}: {error}")
    print(f"{counted(len(undone), 'step')} undone")
