"""Publishes exceeded budgets to a topic; its subscriptions are webhooks, queues or groups."""

from __future__ import annotations

import json
from pathlib import Path

from cirrusmq_client import Client, Message

OPEN = "open"
_TOLD = "budgets.told"
"""File in the reports' folder with account, month and state of each published alert."""
_MAX = 16
"""Maximum number of messages in one publish."""


def tell_budgets(client: Client, topic: str, run: Path, data: Path) -> int:
    """Publishes a run's exceeded budgets that were not published before. Returns their number.

    They are noted after the publish: after a stop between the two they are published again. A
    message has the account's state as JSON, and the state as its tag: `forecast` or `spent`.
    """
    path = data / "reports" / _TOLD
    told = set(path.read_text().splitlines()) if path.exists() else set()
    fresh = {
        " ".join((each["account"], each["month"], each["state"])): each
        for each in json.loads((run / "budgets.json").read_text())
        if each["state"] != OPEN
    }
    lines = [line for line in fresh if line not in told]
    for start in range(0, len(lines), _MAX):
        some = lines[start : start + _MAX]
        client.publish(
            topic,
            [Message(json.dumps(fresh[line]), tags=[fresh[line]["state"]]) for line in some],
        )
        with path.open("a") as file:
            file.writelines(f"{line}\n" for line in some)
    return len(lines)
