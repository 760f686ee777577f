"""Badges of open breakers: of a subscription's URL, and of a queue's function."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Route, expect
from tests.console.browsing import Console


@pytest.mark.long
def test_a_failing_url_shows_its_open_breaker(
    console: Console, service: httpx.Client, topic: str, url: str
) -> None:
    hook = {
        "protocol": "http",
        "endpoint": url,
        "retry": {"policy": "custom", "waits": [3_600]},
        "breaker": {"share": 0.5},
    }
    path = f"/topics/{topic}/subscriptions/hook"
    assert service.put(path, json=hook).status_code == 201
    page = console.show(f"subscriptions/{topic}/hook")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    badge = page.locator(".badge", has_text="breaker open")
    expect(badge).to_have_count(0)

    for _ in range(3):
        messages = {"messages": [{"body": f"order {number}"} for number in range(10)]}
        assert service.post(f"/topics/{topic}/messages", json=messages).status_code == 201

    expect(badge).to_be_visible(timeout=30_000)
    expect(page.get_by_text("Breaker open since")).to_be_visible()
    assert service.get(path).json()["breaker_state"] == "open"
    console.show("retries")
    shown = page.get_by_role("article", name=f"{topic} / hook")
    expect(shown.get_by_text("breaker open")).to_be_visible()
    assert console.findings() == []


@pytest.mark.long
def test_a_failing_function_shows_its_open_breaker(console: Console, queue: str) -> None:
    """The stack runs no functions here: the answer is the service's, with a breaker that opened."""
    opened: dict[str, object] = {"breaker_state": "closed", "breaker_open_since": None}

    def tell(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | opened)

    console.page.route(re.compile(rf"/queues/{queue}$"), tell)
    page = console.show(f"queues/{queue}")
    badge = page.locator(".badge", has_text="breaker open")
    expect(page.get_by_role("heading", level=1)).to_have_text(queue)
    expect(badge).to_have_count(0)

    opened |= {"breaker_state": "open", "breaker_open_since": "2026-11-21T01:18:40.958Z"}

    expect(badge).to_be_visible(timeout=30_000)
    expect(page.get_by_text("Breaker open since")).to_be_visible()
    assert console.findings() == []
