"""A service whose answers a test writes, and the commands as processes of their own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import commands
from tests.stack import environment

from cirrusmq_client import Connection
from cirrusmq_local.stack.data import DataFolder

QUEUE = "/queues/{queue}"
SUBSCRIPTION = "/topics/{topic}/subscriptions/{subscription}"
Run = Callable[..., subprocess.CompletedProcess[str]]


class Service:
    """Answers each route key as a test says, and notes the requests."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, Any]]] = {}
        self.asked: list[tuple[str, Any]] = []
        self.attempts: list[str] = []
        self.authorizations: set[str] = set()

    def handle(self, event: Any, context: Any) -> Any:
        key = event["routeKey"]
        body = json.loads(event.get("body") or "null")
        if isinstance(body, dict) and "attempt" in body:
            self.attempts.append(body.pop("attempt"))
        self.asked.append((key, body))
        self.authorizations.add(event["headers"]["authorization"])
        answers = self.answers[key]
        status, value = answers.pop(0) if len(answers) > 1 else answers[0]
        return {"statusCode": status, "body": json.dumps(value) if value is not None else ""}


def connect_to(folder: Path, port: int) -> Connection:
    """Note in a data folder that the service is at that port; the connection."""
    held = {"url": f"http://127.0.0.1:{port}", "access_key_id": "key", "secret": "hush"}
    DataFolder(folder).write_connection({**held, "account": "local"})
    return Connection(**held)


def run_command(
    *arguments: str,
    folder: Path,
    text: str = "",
    terminal: int | None = None,
    seconds: float = commands.SECONDS,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    chosen = {"COLUMNS": "120", "NO_COLOR": "1"} | variables
    return commands.run_command(
        arguments,
        env=environment() | chosen,
        folder=folder,
        text=text,
        terminal=terminal,
        seconds=seconds,
    )
