"""Work on topics, subscriptions, retries and keys by the console."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect
from tests.console.browsing import Console

CLOSED = "http://127.0.0.1:9/"
"""Nothing answers there."""
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


def make_topic(service: httpx.Client, topic: str, **attributes: Any) -> None:
    assert service.put(f"/topics/{topic}", json=attributes).status_code == 201


def subscribe(service: httpx.Client, topic: str, name: str, **attributes: Any) -> None:
    answer = service.put(f"/topics/{topic}/subscriptions/{name}", json=attributes)
    assert answer.status_code == 201, answer.text


def test_receivers_of_a_message_are_seen_before_it_is_published_and_traced(
    console: Console, service: httpx.Client, topic: str
) -> None:
    page = console.show(f"topics/{topic}")
    page.locator("summary", has_text="Subscribe").click()
    page.get_by_label("Name", exact=True).fill("readers")
    page.get_by_label("protocol").select_option("pull")
    console.press("Subscribe")
    expect(page.get_by_role("row").filter(has_text="readers")).to_contain_text("delivering")
    subscribe(service, topic, "paid", protocol="pull", filter={"tags": ["paid"]})
    subscribe(service, topic, "rich", protocol="pull", filter={"sql": "amount > 100"})

    console.show(f"topics/{topic}/publish")
    page.get_by_label("Body").fill("order 1")
    page.get_by_label("Attributes, name=value").fill("amount=250")
    console.press("Who would get it?")
    expect(page.get_by_text("2 of 3 subscriptions would get it.")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="rich")).to_contain_text("yes")
    expect(page.get_by_role("row").filter(has_text="paid")).to_contain_text("no")
    page.get_by_label("Tags, between commas").fill("paid")
    console.press("Publish")
    expect(page.get_by_text("Published to 3 subscriptions:")).to_be_visible()
    page.get_by_role("status").get_by_role("link").click()

    timeline = page.get_by_role("listitem")
    expect(timeline.first).to_contain_text("Published")
    expect(timeline.nth(1)).to_contain_text("Handed out to 3 subscriptions")
    expect(timeline.filter(has_text="readers")).to_contain_text("pending")
    console.show(f"subscriptions/{topic}/readers")
    console.press("Receive")
    held = page.get_by_role("article")
    expect(held).to_contain_text("order 1")
    held.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("is deleted.")).to_be_visible()
    console.show(f"topics/{topic}/log")
    for _ in range(500):  # what may still be overtaken is not shown for two seconds
        if page.get_by_role("article").count():
            break
        console.press("Read on")
    expect(page.get_by_role("article")).to_contain_text("order 1")

    console.show(f"subscriptions/{topic}/readers")
    console.press("Unsubscribe")
    expect(page.get_by_role("dialog")).to_contain_text(f"readers gets nothing of {topic} any more")
    console.press("Unsubscribe", dialog=True)
    expect(page.get_by_role("heading", level=1)).to_have_text(topic)
    answer = service.get(f"/topics/{topic}/subscriptions/readers")
    assert answer.json()["code"] == "SubscriptionNotFound"


@pytest.mark.long
def test_a_filter_is_tried_before_a_subscription_has_it(
    console: Console, service: httpx.Client, topic: str
) -> None:
    page = console.show(f"topics/{topic}/filter")
    page.get_by_label("Filter", exact=True).fill("paid, new")
    console.press("Does it pass?")
    told = page.get_by_role("status")
    expect(told).to_contain_text("It does not pass: it has no tags")
    page.get_by_label("Tags, between commas").fill("new")
    console.press("Does it pass?")
    expect(told).to_contain_text('It passes{"tags":["paid","new"]}')
    page.get_by_label("Kind of filter").select_option("sql")
    page.get_by_label("Filter", exact=True).fill("amount >")
    console.press("Does it pass?")
    refused = service.post(
        f"/topics/{topic}/match", json={"messages": [{"body": "x"}], "filter": {"sql": "amount >"}}
    )
    expect(told).to_contain_text(f"InvalidFilter (filter): {refused.json()['detail']}")

    console.show(f"topics/{topic}")
    page.locator("summary", has_text="Subscribe").click()
    page.get_by_label("Name", exact=True).fill("rich")
    page.get_by_label("protocol").select_option("pull")
    console.press("Try a filter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Kind of filter").select_option("sql")
    dialog.get_by_label("Filter", exact=True).fill("amount > 100")
    dialog.get_by_label("Attributes, name=value").fill("amount=250")
    console.press("Does it pass?", dialog=True)
    expect(dialog.get_by_role("status")).to_contain_text("It passes")
    console.press("Use this filter", dialog=True)
    console.press("Subscribe")
    expect(page.get_by_role("row").filter(has_text="rich")).to_contain_text("delivering")
    made = service.get(f"/topics/{topic}/subscriptions/rich").json()
    assert made["filter"] == {"sql": "amount > 100"}

    routed = f"{topic}-routed"
    make_topic(service, routed, filter="routing_key")
    console.show(f"topics/{routed}/filter")
    page.get_by_label("Filter", exact=True).fill("orders.*.paid")
    page.get_by_label("Routing key").fill("orders.cn.paid")
    console.press("Does it pass?")
    expect(told).to_contain_text("It passes")


@pytest.mark.long
def test_a_delivered_message_is_delivered_again_from_its_trace(
    console: Console, service: httpx.Client, topic: str
) -> None:
    service.put(f"/queues/{topic}", json={})
    subscribe(service, topic, "readers", protocol="pull")
    subscribe(service, topic, "copies", protocol="queue", endpoint=topic)
    sent = service.post(
        f"/topics/{topic}/messages",
        json={"messages": [{"body": "once more"}]},
        headers={"traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-01"},
    )
    message_id = sent.json()["messages"][0]["id"]
    path = f"/topics/{topic}/subscriptions/readers/messages"

    def take() -> list[dict[str, Any]]:
        asked = {"max": 1, "wait_seconds": 20}
        held: list[dict[str, Any]] = service.post(f"{path}/receive", json=asked).json()["messages"]
        service.post(f"{path}/delete", json={"receipts": [each["receipt"] for each in held]})
        return held

    assert len(take()) == 1
    page = console.show(f"topics/{topic}/trace?id={message_id}")
    console.press("Trace")
    traced = page.locator("dl.facts").filter(has_text="Trace id (W3C)")
    expect(traced.get_by_role("code").first).to_have_text(TRACE_ID)
    readers = page.get_by_role("listitem").filter(has_text="readers")
    expect(readers).to_contain_text("delivered")
    copies = page.get_by_role("listitem").filter(has_text="copies")
    expect(copies.get_by_role("button")).to_have_count(0)
    readers.get_by_role("button", name="Deliver again").click()
    console.press("Deliver again", dialog=True)
    expect(page.get_by_text("readers gets it once more.")).to_be_visible()
    assert [each["id"] for each in take()] == [message_id]
    assert console.findings() == []


def test_a_failing_url_is_first_and_is_retried_paused_and_resumed(
    console: Console, service: httpx.Client, name: str
) -> None:
    make_topic(service, name, filter="routing_key")
    subscribe(service, name, "calm", protocol="pull")
    subscribe(service, name, "printer", protocol="http", endpoint=CLOSED)
    page = console.show(f"topics/{name}/publish")
    page.get_by_label("Body").fill("first")
    page.get_by_label("Routing key").fill("orders.cn")
    console.press("Publish")
    trace = page.get_by_role("status").get_by_role("link")
    trace.click()
    failing = page.get_by_role("listitem").filter(has_text="printer")
    expect(failing).to_contain_text("retrying")
    attempts = failing.get_by_role("listitem")
    expect(attempts.first).to_contain_text("attempt 1")
    expect(attempts.first).to_contain_text("connection")
    waits = "1 s, 2 s, 4 s, 8 s, 16 s, 32 s, 1 min 4 s, 2 min 8 s, 4 min 16 s, 8 min 32 s"
    # A value stays on the line of its unit.
    waits = re.sub(r"(?<!,) ", "\u00a0", waits)
    ladder = failing.get_by_role("img")
    expect(ladder).to_have_attribute("aria-label", f"Waits before each retry: {waits}")

    console.show(f"overview?prefix={name}")
    expect(page.get_by_role("rowheader").first).to_have_text(f"{name} / printer")
    console.show(f"retries?prefix={name}")
    card = page.get_by_role("article", name=f"{name} / printer")
    expect(card).to_contain_text(CLOSED)
    expect(page.get_by_role("article")).to_have_count(1)
    card.get_by_role("button", name="Retry now").click()
    expect(page.get_by_text("printer: what waits is posted now.")).to_be_visible()
    card.get_by_role("button", name="Pause").click()
    expect(card).to_contain_text("paused")
    card.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("printer goes on.")).to_be_visible()
    assert service.get(f"/topics/{name}/subscriptions/printer").json()["paused"] is False

    console.show(f"topics/{name}")
    console.press("Delete the topic")
    console.press(f"Delete {name}", dialog=True)
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics")


def test_a_key_is_made_rotated_and_deleted_and_its_secret_is_shown_once(
    console: Console, service: httpx.Client, name: str
) -> None:
    page = console.show("keys")
    page.get_by_text("New key").click()
    page.get_by_label("description", exact=True).fill(name)
    console.press("Make the key")
    dialog = page.get_by_role("dialog")
    id, secret = dialog.locator("pre").inner_text().split("\n")
    console.press("Close", dialog=True)
    listed = [each["access_key_id"] for each in service.get("/keys").json()["keys"]]
    assert id in listed
    row = page.get_by_role("row").filter(has_text=name)
    expect(row).to_contain_text(id)
    row.get_by_role("button", name="Rotate").click()
    console.press("Rotate", dialog=True)
    expect(dialog.locator("pre")).to_contain_text(id)
    assert secret not in dialog.inner_text()
    console.press("Close", dialog=True)
    row.get_by_role("button", name="Delete").click()
    console.press("Delete", dialog=True)
    expect(row).to_have_count(0)
