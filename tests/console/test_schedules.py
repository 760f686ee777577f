"""Schedules in the console, and the badge of a function's breaker."""

from __future__ import annotations

import httpx
from playwright.sync_api import expect
from tests.console.browsing import Console


def test_schedules_are_listed_with_their_next_time_and_deleted(
    console: Console, service: httpx.Client, queue: str
) -> None:
    made = {"queue": queue, "cron": "0 8 * * *", "message": {"body": "count"}}
    assert service.put(f"/schedules/{queue}", json=made).status_code == 201
    page = console.show(f"schedules?prefix={queue}")
    row = page.get_by_role("region", name="Schedules").get_by_role("row").filter(has_text=queue)
    expect(row).to_contain_text("0 8 * * * (UTC)")
    expect(row.get_by_role("link", name=queue)).to_be_visible()
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text(f"No name begins with “{queue}”.")).to_be_visible()
    assert service.get(f"/schedules/{queue}").status_code == 404
