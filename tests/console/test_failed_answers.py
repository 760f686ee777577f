"""The page of a subscription shows what its URL answered to posts that failed."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import expect
from tests.console.browsing import Console


@pytest.mark.long
def test_the_answer_of_a_url_is_on_its_page_with_keep_answers(
    console: Console, service: httpx.Client, topic: str, url: str
) -> None:
    asked = {"protocol": "http", "endpoint": url, "retry": {"policy": "custom", "waits": [3_600]}}
    path = f"/topics/{topic}/subscriptions/hook"
    assert service.put(path, json=asked).status_code == 201
    page = console.show(f"subscriptions/{topic}/hook")
    expect(page.get_by_text("Turn on keep_answers to see it.")).to_be_visible()

    assert service.patch(path, json={"keep_answers": True}).status_code == 200
    (message,) = service.post(
        f"/topics/{topic}/messages", json={"messages": [{"body": "order 1"}]}
    ).json()["messages"]

    expect(page.get_by_role("heading", name="What came back")).to_be_visible()
    answer = page.locator("details", has_text="status 503")
    expect(answer).to_contain_text(f"Message {message['id']}, answered after")
    expect(answer).to_contain_text("X-Request-Id: r-7")
    expect(answer).to_contain_text("<b>no room</b> in table orders")
    expect(answer).not_to_contain_text("hidden")
    assert console.findings() == []
