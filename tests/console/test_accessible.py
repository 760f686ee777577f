"""Each page by axe's rules, in the colours of day and night, and on a phone; quickly a sample."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from playwright.sync_api import expect
from tests.console.conftest import Open

QUEUE_TABS = ("now", "send", "messages", "dead", "attributes", "receivers", "grants", "work")
TOPIC_TABS = ("subscriptions", "publish", "filter", "trace", "log", "attributes", "grants")
ON_A_PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}


@pytest.fixture(scope="module")
def places(service: httpx.Client) -> list[str]:
    """All pages of the console, with something to see on each."""
    service.put("/queues/seen-dead")
    attributes = {"rewind_seconds": 600, "dead_letter": {"queue": "seen-dead", "max_receives": 9}}
    assert service.put("/queues/seen", json=attributes).status_code == 201
    messages = {"messages": [{"body": "one", "tags": ["new"]}, {"body": "two"}]}
    service.post("/queues/seen/messages", json=messages)
    held = service.post("/queues/seen/messages/receive", json={"wait_seconds": 5}).json()[
        "messages"
    ]
    receipts = {"receipts": [held[0]["receipt"]]}
    service.post("/queues/seen/messages/dead-letter", json=receipts)
    service.put("/queues/seen/receivers/audit")
    service.put("/queues/seen/grants/acme", json={"permission": "send"})
    service.put("/topics/seen")
    subscription = {"protocol": "http", "endpoint": "http://127.0.0.1:9/"}
    service.put("/topics/seen/subscriptions/printer", json=subscription)
    service.put("/topics/seen/subscriptions/readers", json={"protocol": "pull"})
    published = service.post("/topics/seen/messages", json={"messages": [{"body": "x"}]}).json()
    trace = f"topics/seen/trace?id={published['messages'][0]['id']}"
    return [
        *("overview", "queues", "topics", "retries", "reports", "keys", "operations"),
        *(f"queues/seen/{tab}" for tab in QUEUE_TABS),
        "queues/seen-dead/dead",
        *(f"topics/seen/{tab}" for tab in TOPIC_TABS),
        trace,
        "subscriptions/seen/printer",
        "subscriptions/seen/readers",
    ]


@pytest.mark.parametrize("each", [6, pytest.param(1, marks=pytest.mark.long)])
def test_axe_finds_nothing_on_any_page_and_no_page_is_wider_than_its_screen(
    open_console: Open, places: list[str], each: int
) -> None:
    assert look_at(open_console, places[::each]) == {}


@pytest.mark.long
def test_on_a_phone_at_night_neither(open_console: Open, places: list[str]) -> None:
    assert look_at(open_console, places, **ON_A_PHONE) == {}


def look_at(open_console: Open, places: list[str], **options: Any) -> dict[str, Any]:
    """What axe finds on signing in and on these pages, none of which is wider than the screen."""
    console = open_console(key=None, **options)
    found = {"sign_in": console.findings()}
    console = open_console(**options)
    dark = options.get("color_scheme") == "dark"
    for place in places:
        page = console.show(place)
        # What is folded away is looked at, too.
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        found[place] = console.findings()
        # Colours differ, and nothing else does.
        page.emulate_media(color_scheme="light" if dark else "dark")
        found[f"{place}, the other colours"] = console.findings("color-contrast")
        page.emulate_media(color_scheme="dark" if dark else "light")
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, place
    return {place: each for place, each in found.items() if each}


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [{}, ON_A_PHONE])
def test_the_first_page_leads_on_and_has_no_findings(
    open_console: Open, options: dict[str, Any]
) -> None:
    console = open_console(key=None, **options)
    page = console.page
    page.goto(f"{console.url}/")
    assert console.findings() == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.get_by_role("link", name="Console", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.long
def test_the_page_of_the_api_has_the_sites_head_and_is_dark_at_night(open_console: Open) -> None:
    console = open_console(key=None, color_scheme="dark")
    page = console.page
    page.goto(f"{console.url}/docs/api")
    expect(page.get_by_role("heading", name="CirrusMQ").first).to_be_visible()
    drawn = "getComputedStyle(document.body).filter"
    assert "invert" in page.evaluate(drawn)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(drawn) == "none"
    page.get_by_role("link", name="Console").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.long
def test_a_dialog_has_no_findings_and_gives_its_focus_back(
    open_console: Open, places: list[str]
) -> None:
    console = open_console()
    page = console.show("queues/seen/work")
    console.press("Purge")
    expect(page.get_by_role("dialog", name="Purge")).to_be_visible()
    assert console.findings() == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
