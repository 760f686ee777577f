"""What `create`, `subscribe` and `change` print: one line, or everything as JSON."""

from __future__ import annotations

import json
import uuid

import pytest
from tests.client.conftest import Run

from cirrusmq_client import Client


@pytest.fixture
def name() -> str:
    return f"s-{uuid.uuid4().hex[:8]}"


def test_a_queue_is_shown_in_a_line(run_command: Run, name: str) -> None:
    made = run_command("queue", "create", name)
    again = run_command("queue", "create", name, "-a", "delay_seconds=0")
    ordered = run_command(
        *("queue", "create", f"{name}-o", "-a", "ordered=true"),
        *("-a", "visibility_timeout_seconds=90", "-a", "rewind_seconds=3600"),
    )
    changed = run_command(
        "queue", "change", name, "-a", "delay_seconds=5", "-a", "dead_letter=null"
    )

    see = f"(cirrusmq queue show {name})"
    assert made.stdout == f"queue {name}: visibility timeout 30 seconds, kept 4 days {see}\n"
    assert again.stdout == made.stdout.replace(" (", ", delay_seconds 0 (")
    assert ordered.stdout == (
        f"queue {name}-o: ordered, visibility timeout 90 seconds, kept 4 days, rewind_seconds 3600"
        f" (cirrusmq queue show {name}-o)\n"
    )
    assert changed.stdout == f"queue {name}: delay_seconds 5, dead_letter null {see}\n"


def test_everything_is_in_the_json(run_command: Run, client: Client, name: str) -> None:
    made = json.loads(run_command("queue", "create", name, "--json").stdout)

    shown = client.show_queue(name)
    assert made == {key: value for key, value in shown.items() if key not in ("counts", "region")}


def test_a_topic_and_its_subscriptions_are_shown_in_a_line(
    run_command: Run, client: Client, name: str
) -> None:
    run_command("queue", "create", name)
    url = "http://127.0.0.1:9/hook"
    lines = [
        run_command("topic", "create", name).stdout,
        run_command("subscribe", name, "pulled", "--ordered").stdout,
        run_command("subscribe", name, "queued", "--queue", name, "--tag", "paid").stdout,
        run_command("topic", "pause", name, "pulled").stdout,
        run_command("queue", "add-receiver", name, "audit", "--start", "latest").stdout,
    ]
    posted = run_command("subscribe", name, "posted", "--url", url, "--rate", "5").stdout

    see = f"(cirrusmq topic show-subscription {name}"
    assert lines == [
        f"topic {name}: filter tags, 8 partitions (cirrusmq topic show {name})\n",
        f"subscription {name}/pulled: consumers pull, ordered true {see} pulled)\n",
        f'subscription {name}/queued: to queue {name}, filter {{"tags": ["paid"]}} {see} queued)\n',
        f"subscription {name}/pulled: paused true {see} pulled)\n",
        f"receiver {name}/audit: start latest (cirrusmq queue receiver {name} audit)\n",
    ]
    secret = client.show_signing_secret(name, "posted")
    assert posted == (
        f"subscription {name}/posted: posts to {url}, rate 5 {see} posted)\n"
        f"secret {secret} (cirrusmq topic secret {name} posted)\n"
    )
