"""A topic is told of each budget that is exceeded, once a month and state."""

from __future__ import annotations

import json
from pathlib import Path

from cirrusmq_client import Client, Subscription
from cirrusmq_local.stack.budget_alerts import tell_budgets


def test_a_topic_is_told_of_each_exceeded_budget_once(client: Client, tmp_path: Path) -> None:
    run = tmp_path / "reports/runs/billing/1"
    run.mkdir(parents=True)
    client.create_topic("budgets-exceeded")
    client.create_subscription("budgets-exceeded", "all", {"protocol": "pull"})

    def tell(*states: tuple[str, str]) -> int:
        shown = [
            {"account": account, "month": "2026-11", "amount": "5.00", "state": state}
            for account, state in states
        ]
        (run / "budgets.json").write_text(json.dumps(shown))
        return tell_budgets(client, "budgets-exceeded", run, tmp_path)

    assert tell(("acme", "forecast"), ("other", "open")) == 1
    assert tell(("acme", "forecast"), ("other", "open")) == 0
    assert tell(("acme", "spent"), *((f"a{number}", "spent") for number in range(17))) == 18

    source = Subscription("budgets-exceeded", "all")
    found: list[tuple[str, str]] = []
    while len(found) < 19:
        received = client.receive(source, max_messages=16, wait_seconds=20)
        assert received
        found += [(each.tags[0], json.loads(each.body)["account"]) for each in received]
        client.delete(source, [each.receipt for each in received])
    assert sorted(found) == sorted(
        [
            ("forecast", "acme"),
            ("spent", "acme"),
            *(("spent", f"a{number}") for number in range(17)),
        ]
    )
