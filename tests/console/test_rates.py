"""The last hour, as the console draws what the service counted."""

from __future__ import annotations

import uuid

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.console.browsing import Console
from tests.console.test_queues import make_queue, receive, send


@pytest.fixture(scope="module")
def counted(service: httpx.Client) -> str:
    """A queue and a topic of one name, with a group: five messages sent, two deleted."""
    name = f"n{uuid.uuid4().hex[:10]}"
    make_queue(service, name)
    topic = f"/topics/{name}"
    assert service.put(topic).status_code == 201
    made = service.put(f"{topic}/subscriptions/group", json={"protocol": "pull"})
    assert made.status_code == 201
    send(service, name, *({"body": str(number)} for number in range(5)))
    receipts = [message["receipt"] for message in receive(service, name)][:2]
    assert service.post(f"/queues/{name}/messages/delete", json={"receipts": receipts}).is_success
    assert service.post(f"{topic}/messages", json={"messages": [{"body": "x"}] * 3}).is_success
    group = f"{topic}/subscriptions/group/messages/receive"
    assert service.post(group, json={"wait_seconds": 20}).json()["messages"]
    assert service.post("/local/run/meter").is_success
    return name


def line(page: Page, what: str) -> list[int]:
    """The numbers of a small line, as they are read aloud."""
    label = page.get_by_role("img", name=f"{what}, every five minutes: ").get_attribute(
        "aria-label"
    )
    assert label is not None
    return [int(number) for number in label.partition(": ")[2].split(", ")]


def test_a_just_opened_tab_shows_the_counts_of_the_service(console: Console, counted: str) -> None:
    page = console.show(f"overview?prefix={counted}")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=counted))
    expect(row.first.locator(".rate")).to_have_text("5")
    assert sum(line(page, "Sent")) == 5
    assert sum(line(page, "Delivered")) == 3

    page = console.show(f"topics?prefix={counted}")
    assert sum(line(page, "Published")) == 3


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("place", "lines"),
    [
        ("queues/{}", ["Sent", "Received", "Deleted"]),
        pytest.param("topics/{}", ["Published"], marks=pytest.mark.long),
        pytest.param(
            "subscriptions/{}/group", ["Delivered", "Received", "Deleted"], marks=pytest.mark.long
        ),
    ],
)
def test_a_page_draws_a_line_for_each_kind_and_the_kept_messages(
    console: Console, counted: str, place: str, lines: list[str]
) -> None:
    console.show(place.format(counted))
    hour = console.section("The last hour")
    expect(hour.get_by_role("img", name="The last hour").locator("polyline")).to_have_count(
        len(lines)
    )
    for each in lines:
        expect(hour).to_contain_text(each)
    expect(hour.get_by_role("img", name="Kept")).to_have_count(0 if lines == ["Published"] else 1)
    assert console.findings() == []


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("place", "lines", "kept"),
    [("queues/{}", 3, 1), ("topics/{}", 1, 0), ("subscriptions/{}/group", 3, 1)],
)
def test_a_day_and_a_week_are_read_when_they_are_opened(
    console: Console, counted: str, place: str, lines: int, kept: int
) -> None:
    read: list[str] = []
    console.page.on("request", lambda request: read.append(request.url))
    page = console.show(place.format(counted))
    assert not [url for url in read if "hours=168" in url]
    page.locator("summary", has_text="A day and a week").click()
    for title in ("The last day, by the hour", "The last week, by the hour"):
        expect(page.get_by_role("img", name=title).locator("polyline")).to_have_count(lines)
    expect(page.get_by_role("img", name="Kept, at the end of each hour")).to_have_count(kept)
    assert len([url for url in read if "hours=168" in url]) == 1
    assert console.findings() == []


@pytest.mark.long
def test_the_hour_is_read_once_a_minute_however_often_the_figures_are(
    console: Console, counted: str
) -> None:
    read: list[str] = []
    page = console.show(f"overview?prefix={counted}")
    # Signing in shows all queues, whose hours may still be on their way: a new page has no hours.
    page.on("request", lambda request: read.append(request.url))
    page.reload()
    expect(page.locator(".rate").first).to_be_visible()
    for _ in range(3):
        console.press("Pause")
        with page.expect_response("**/queues?*"):
            console.press("Resume")
    assert len([url for url in read if "/rates?" in url and counted in url]) == 1

    read.clear()
    console.show(f"queues/{counted}")
    expect(page.get_by_role("img", name="Kept")).to_be_visible()
    for _ in range(3):
        console.press("Pause")
        with page.expect_response(f"**/queues/{counted}"):
            console.press("Resume")
    # The overview has read the hour. What is read here are the seconds, never twice within two.
    assert 1 <= len([url for url in read if "/rates?" in url and counted in url]) <= 3


@pytest.mark.long
def test_a_queue_deleted_meanwhile_takes_no_page_down(
    console: Console, service: httpx.Client, counted: str
) -> None:
    page = console.page
    page.route(
        "**/rates?*",
        lambda route: route.fulfill(status=404, json={"code": "QueueNotFound", "detail": "gone"}),
    )
    console.show(f"overview?prefix={counted}")
    expect(page.get_by_role("rowheader", name=counted).first).to_be_visible()
    expect(page.get_by_text("gone")).to_have_count(0)
