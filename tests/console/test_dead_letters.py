"""What was given up is told first, on every page, with whose it is."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect
from tests.console.browsing import Console
from tests.console.conftest import Open
from tests.console.test_queues import make_queue, receive, send
from tests.stack import Stack


@pytest.fixture
def account(shared_stack: Stack, name: str) -> tuple[httpx.Client, dict[str, Any]]:
    """A client and the key of an account that holds nothing yet."""
    client = shared_stack.client()
    key = client.post("/keys", json={"account": name}).json()
    client.headers["authorization"] = f"Bearer {key['access_key_id']}:{key['secret']}"
    return client, key


def give_up_from_a_group(service: httpx.Client, topic: str) -> str:
    """Publish a message and give it up; answers the queue that the service makes for it."""
    path = f"/topics/{topic}/subscriptions/group"
    service.put(f"/topics/{topic}")
    id = service.put(path, json={"protocol": "pull"}).json()["id"]
    service.post(f"/topics/{topic}/messages", json={"messages": [{"body": "x"}]})
    ends = time.monotonic() + 60
    held: list[dict[str, Any]] = []
    while not held:
        assert time.monotonic() < ends
        answer = service.post(f"{path}/messages/receive", json={"wait_seconds": 5})
        held = answer.json()["messages"]
    body = {"receipts": [held[0]["receipt"]], "reason": "no such dish"}
    assert service.post(f"{path}/messages/dead-letter", json=body).json()["failed"] == []
    return f"dlq-{id}"


@pytest.mark.long
def test_dead_letters_of_a_subscription_are_told_first_on_every_page_of_queues(
    open_console: Open, account: tuple[httpx.Client, dict[str, Any]], shared_stack: Stack
) -> None:
    service, key = account
    dead = give_up_from_a_group(service, "menu")
    assert shared_stack.client().post("/local/run/meter").is_success
    console = open_console(key=key)
    for place in ("overview", "queues", "queues?prefix=nothing", "retries"):
        page = console.show(place)
        row = page.get_by_role("row").filter(has_text=dead).filter(has_text="no such dish")
        expect(row).to_contain_text("menu / group")
    expect(page.get_by_text("All is delivered")).to_have_count(0)
    row.get_by_role("link", name="menu / group").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("menu / group")

    # A green state alone would hide that the subscription gave up all that it got.
    for place in ("overview", "topics/menu"):
        row = console.show(place).get_by_role("row").filter(has_text="delivering")
        expect(row.get_by_role("link", name="1 given up")).to_be_visible()
    assert console.findings() == []
    console.show("subscriptions/menu/group").get_by_role("link", name="1 given up").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(dead)

    # The card of a dead letter has the time of its death, and none as its sending.
    page = console.show(f"queues/{dead}/dead")
    card = page.get_by_role("article")
    expect(card).to_contain_text("Given up")
    expect(card.get_by_text("Sent", exact=True)).to_have_count(0)


@pytest.mark.long
def test_a_dead_letter_queue_of_any_name_is_told_with_its_source(
    open_console: Open, account: tuple[httpx.Client, dict[str, Any]], shared_stack: Stack
) -> None:
    service, key = account
    make_queue(service, "graveyard")
    make_queue(service, "orders", dead_letter={"queue": "graveyard", "max_receives": 5})
    send(service, "orders", {"body": "soup"})
    console = open_console(key=key)
    lost = console.show("queues").get_by_role("region", name="Given up: dead letters wait")
    expect(lost).to_have_count(0)

    receipt = receive(service, "orders")[0]["receipt"]
    body = {"receipts": [receipt], "reason": "cold"}
    service.post("/queues/orders/messages/dead-letter", json=body)

    assert shared_stack.client().post("/local/run/meter").is_success

    page = console.show("queues?again=1")
    row = page.get_by_role("row").filter(has_text="cold")
    expect(row).to_contain_text("graveyard")
    expect(row.get_by_role("link", name="orders")).to_be_visible()
    page = console.show("queues/orders")
    expect(page.get_by_role("link", name="1 given up")).to_have_attribute(
        "href", "#/queues/graveyard/dead"
    )


def test_the_page_of_queues_ends_its_loading(console: Console, queue: str) -> None:
    page = console.show(f"queues?prefix={queue}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    expect(page.get_by_role("rowheader").filter(has_text=queue)).to_have_count(1)
    page = console.show("queues/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
