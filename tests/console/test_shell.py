"""Signing in, refusals, a service that is down, hidden tabs, languages and the keyboard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from playwright.sync_api import Request, expect
from tests.console.browsing import Console
from tests.console.conftest import Open
from tests.console.test_live_rates import HIDE
from tests.console.test_operations_and_audit import make_key
from tests.stack import Stack

HTML = '<script>window.harmed = 1</script><img src=x onerror="window.harmed = 2"><b>bold</b>'
QUARTER_MIB = 262_144


def test_a_wrong_key_is_told_in_the_services_words_and_a_good_one_stays_in_the_tab(
    open_console: Open, shared_stack: Stack
) -> None:
    console = open_console(key=None)
    page = console.page
    expect(page.get_by_text(".local/connection.json")).to_be_visible()
    console.sign_in("CKnobody0000000000000", "wrong")
    expect(page.get_by_text(re.compile("Unauthenticated:"))).to_be_visible()
    key = shared_stack.connection()
    console.sign_in(key["access_key_id"], key["secret"])
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert key["secret"] not in page.url
    assert page.evaluate("JSON.stringify(localStorage) + document.cookie") == "{}"
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert page.evaluate("sessionStorage.length") == 0


@pytest.mark.long
def test_a_deleted_key_leads_back_to_signing_in(open_console: Open, service: httpx.Client) -> None:
    key = make_key(service)
    console = open_console(key=key)
    console.show("keys")
    assert service.delete(f"/keys/{key['access_key_id']}").status_code == 204
    console.show("overview")
    expect(console.page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(console.page.get_by_role("alert")).to_contain_text("Unauthenticated:")


def test_an_unreachable_service_is_told_and_the_page_goes_on_by_itself(console: Console) -> None:
    page = console.page
    page.clock.install()
    console.show("overview")
    page.context.set_offline(True)
    page.clock.run_for(16_000)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The service does not answer.")
    page.context.set_offline(False)
    page.clock.run_for(16_000)
    expect(alert).to_be_empty()
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()

    # A page that cannot even begin begins when the service is back.
    page.context.set_offline(True)
    page.goto(f"{console.url}/console/index.html#/keys")
    expect(alert).to_contain_text("The service does not answer.")
    page.context.set_offline(False)
    page.clock.run_for(6_000)
    expect(page.get_by_role("heading", name="Access keys")).to_be_visible()


@pytest.mark.long
def test_a_page_tells_its_calls_and_makes_none_while_it_is_hidden(
    console: Console, queue: str
) -> None:
    page = console.page
    page.clock.install()
    console.show(f"queues/{queue}")
    expect(page.get_by_text(re.compile("every 5 s · calls: 2$"))).to_be_visible()
    calls: list[str] = []

    def note(request: Request) -> None:
        calls.append(request.url)

    page.on("request", note)
    with page.expect_request(f"**/queues/{queue}"):
        page.clock.run_for(5_100)
    expect(page.get_by_text(re.compile("calls: 2$"))).to_be_visible()

    page.evaluate(HIDE, True)
    calls.clear()
    page.clock.run_for(600_000)
    assert calls == []
    with page.expect_request(f"**/queues/{queue}"):
        page.evaluate(HIDE, False)
    console.press("Pause")
    calls.clear()
    page.clock.run_for(600_000)
    assert calls == []


def test_bodies_are_text_whatever_they_look_like_and_large_ones_are_shown_on_demand(
    console: Console, service: httpx.Client, name: str
) -> None:
    service.put(f"/queues/{name}", json={"max_message_bytes": QUARTER_MIB})
    for body in (HTML, "é" * (QUARTER_MIB // 2)):
        sent = service.post(f"/queues/{name}/messages", json={"messages": [{"body": body}]})
        assert sent.status_code == 201
    tagged = {"body_base64": "AP8=", "attributes": {"html": HTML}}
    service.post(f"/queues/{name}/messages", json={"messages": [tagged]})
    page = console.show(f"queues/{name}/messages")
    console.press("Look")
    expect(page.get_by_role("article")).to_have_count(3)
    expect(page.get_by_text(HTML, exact=True)).to_have_count(2)
    expect(page.get_by_text("Bytes, in base64:")).to_be_visible()
    assert page.locator("article b, article img, article script").count() == 0
    assert page.evaluate("window.harmed") is None
    large = page.get_by_role("article").filter(has_text="éé")
    assert len(large.locator("pre").inner_text()) == 2_000
    large.get_by_role("button", name="Show all 262.1 kB").click()
    expect(large.get_by_role("button")).to_have_count(0)
    assert len(large.locator("pre").inner_text()) == QUARTER_MIB // 2


def test_it_speaks_chinese_and_keeps_the_choice(open_console: Open) -> None:
    console = open_console(key=None, locale="zh-CN")
    expect(console.page.get_by_role("heading", level=1)).to_have_text("登录")
    console.page.get_by_label("语言").select_option("en")
    expect(console.page.get_by_role("heading", level=1)).to_have_text("Sign in")
    console.page.reload()
    expect(console.page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert console.page.locator("html").get_attribute("lang") == "en"


@pytest.mark.long
def test_a_form_in_chinese_tells_of_its_english_hints(console: Console) -> None:
    page = console.page
    console.show("keys")
    summary = page.locator("details:has(form.attributes) > summary")
    summary.click()
    expect(page.locator("form.attributes")).to_be_visible()
    expect(page.get_by_text("what the service answers, are in English")).to_have_count(0)

    page.get_by_label("Language").select_option("zh")
    expect(summary).to_have_text("新建密钥")
    summary.click()

    note = page.locator("form.attributes").get_by_text("服务返回的消息为英文")
    expect(note).to_be_visible()
    # On a phone a head of two characters stays in one line, and the table is moved sideways.
    page.set_viewport_size({"width": 390, "height": 800})
    heads = "[...document.querySelectorAll('thead th')].map(e => e.clientHeight)"
    assert max(page.evaluate(heads)) < 60


@pytest.mark.long
def test_the_keyboard_reaches_the_page_past_the_header(console: Console) -> None:
    page = console.show("overview")
    page.reload()
    expect(page.locator(".loading, .skeleton")).to_have_count(0)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the page")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Pause")).to_be_focused()


NOTHING = "\N{EN DASH}"
REPORTS: Mapping[str, dict[str, Any]] = {
    "billing": {
        "from": "2026-10-01T00:00:00.000Z", "to": "2026-11-22T00:00:00.000Z",
        "generated_at": "2026-11-22T01:40:00.000Z", "time_zone": "UTC", "gaps": [],
        "unusual": [{"hour": "2026-11-21T08:00:00.000Z", "resource": "orders", "kind": "sent",
                     "count": 90_000, "usual_most": 1_200}],
        "invoices": [{
            "month": "2026-11", "currency": "USD", "closed": False,
            "closes_at": "2026-12-03T00:00:00.000Z", "forecast": "0.0000412", "total": "0.0000301",
            "lines": [{"resource": "orders", "kind": "sent", "correction": None, "count": 12_345,
                       "bytes": 9_000_000, "amount": "0.0000301"}],
        }, {
            "month": "2026-10", "currency": "USD", "closed": True, "number": "INV-local-000002",
            "type": "credit_note", "refers_to": "INV-local-000001",
            "closes_at": "2026-11-03T00:00:00.000Z", "forecast": None, "total": "-2.38",
            "lines": [
                {"resource": "", "kind": "tax", "correction": None, "count": 0, "bytes": 0,
                 "amount": "-0.38"},
                {"resource": "orders", "kind": "kept", "correction": None, "count": 7,
                 "bytes": -3_000, "amount": "-2.00"},
            ],
        }],
    },
    "backlog": {
        "at": "2026-11-22T01:30:00.000Z", "generated_at": "2026-11-22T01:40:00.000Z",
        "resources": [{
            "name": "orders", "kind": "queue", "active": 40, "inactive": 2, "delayed": 0,
            "oldest_age_seconds": 7_200, "backlog_by_time": [
                {"at": "2026-11-21T01:30:00.000Z", "messages": 60},
                {"at": "2026-11-22T01:30:00.000Z", "messages": 42}],
            "growth_per_hour": -0.75, "hours_to_drain": 56.0, "hottest_partition": 3,
            "hottest_partition_share": 0.5,
        }],
    },
}  # fmt: skip


def write_reports(stack: Stack) -> None:
    """As the data pipeline leaves them."""
    for kind, report in REPORTS.items():
        run = stack.folder / "reports" / "runs" / kind / "r1" / "summaries"
        run.mkdir(parents=True)
        (run / "local.json").write_text(httpx.Response(200, json=report).text)
        pointer = stack.folder / "reports" / "current" / f"{kind}.json"
        pointer.parent.mkdir(exist_ok=True)
        pointer.write_text('{"run": "r1"}\n')


def test_reports_say_how_to_make_them_and_then_show_amounts_as_they_are(
    console: Console, shared_stack: Stack
) -> None:
    page = console.show("reports")
    expect(page.get_by_text("cirrusmq report billing")).to_be_visible()
    write_reports(shared_stack)
    page.reload()
    expect(page.get_by_role("img", name="Invoices")).to_contain_text("0.000030 USD")
    page.locator("summary", has_text="2026-11").click()
    expect(page.get_by_text("0.000041 USD")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="12,345")).to_contain_text("0.000030 USD")
    note = page.locator("details", has_text="2026-10, credit note: -2.38 USD")
    note.locator("summary").click()
    expect(note).to_contain_text("INV-local-000001")
    expect(note.get_by_role("row")).to_contain_text(
        ["Amount", "orderskept7 h-3,000 B h-2.00 USD", f"{NOTHING}tax{NOTHING * 2}-0.38 USD"]
    )
    assert console.findings() == []
    row = page.get_by_role("region", name="Backlog").get_by_role("row").filter(has_text="orders")
    expect(row).to_contain_text("2 d 8 h")
    expect(row).to_contain_text("-0.75")
    expect(page.get_by_role("row").filter(has_text="90,000")).to_contain_text("1,200")
