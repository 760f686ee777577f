"""The page of a queue, and of a group, shows which keys received and when last."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import expect
from tests.console.browsing import Console


def test_a_queues_and_its_receivers_last_receives_are_shown(
    console: Console, service: httpx.Client, queue: str
) -> None:
    service.put(f"/queues/{queue}/receivers/audit", json={})
    path = f"/queues/{queue}/messages/receive"
    service.post(path, json={"wait_seconds": 0, "receiver": "audit"})
    page = console.show(f"queues/{queue}/receivers")

    expect(page.get_by_text("No key received in the last seven days.")).to_be_visible()
    page.get_by_label("Receiver", exact=True).select_option("audit")
    table = page.get_by_role("table", name="Last receives")
    (audit,) = service.get(f"/queues/{queue}/consumers?receiver=audit").json()["consumers"]
    expect(table).to_contain_text(audit["access_key_id"])
    assert console.findings() == []

    service.post(path, json={"wait_seconds": 0})
    page.get_by_label("Receiver", exact=True).select_option("")
    expect(page.get_by_text("No key received in the last seven days.")).not_to_be_visible()
    console.press("Read again")
    expect(table.get_by_role("row")).to_have_count(2)
    expect(table).to_contain_text(audit["account"])


@pytest.mark.long
def test_a_groups_last_receives_are_shown(
    console: Console, service: httpx.Client, topic: str
) -> None:
    path = f"/topics/{topic}/subscriptions/group"
    service.put(path, json={"protocol": "pull"})
    service.post(f"{path}/messages/receive", json={"wait_seconds": 0})

    page = console.show(f"subscriptions/{topic}/group")

    (one,) = service.get(f"{path}/consumers").json()["consumers"]
    expect(page.get_by_role("table", name="Last receives")).to_contain_text(one["access_key_id"])
    assert console.findings() == []
