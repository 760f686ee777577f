"""The list of operations, and the audit, as the console shows them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from playwright.sync_api import expect
from tests.console.browsing import Console
from tests.console.conftest import Open


def make_key(service: httpx.Client, **rights: Any) -> dict[str, Any]:
    made: dict[str, Any] = service.post("/keys", json=rights).json()
    return made


def started(service: httpx.Client, queue: str, kind: str = "purge", **body: Any) -> str:
    reply = service.post(f"/queues/{queue}/{kind}", json=body)
    assert reply.status_code == 202, reply.text
    return str(reply.json()["operation"])


def test_operations_of_the_account_are_listed_with_their_queue_their_key_and_their_end(
    console: Console, service: httpx.Client, name: str
) -> None:
    service.put(f"/queues/{name}", json={"rewind_seconds": 600})
    service.post(f"/queues/{name}/messages", json={"messages": [{"body": "x"}] * 3})
    purge = started(service, name)
    rewind = started(service, name, "rewind", to=service.get("/health").json()["time"])
    page = console.show("operations")
    listed = page.get_by_role("region", name="Operations").get_by_role("row")
    row = listed.filter(has_text=purge)
    expect(row).to_contain_text("Purge")
    expect(row).to_contain_text("done")
    expect(row.get_by_role("cell", name="3", exact=True)).to_be_visible()
    expect(row).to_contain_text(service.get(f"/operations/{purge}").json()["key_id"])
    expect(listed.filter(has_text=rewind)).to_contain_text("Rewind")

    page.get_by_label("Kind").select_option("rewind")
    expect(listed.filter(has_text=rewind)).to_have_count(1)
    expect(listed.filter(has_text=purge)).to_have_count(0)
    page.get_by_label("State").select_option("running")
    expect(page.get_by_text("No operation of the last seven days fits.")).to_be_visible()
    expect(page.get_by_label("Kind")).to_have_value("rewind")
    page.get_by_label("State").select_option("")
    listed.filter(has_text=rewind).get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)


@pytest.mark.long
def test_a_key_with_a_scope_sees_the_operations_of_its_queues_page_after_page(
    open_console: Open, service: httpx.Client, name: str
) -> None:
    for each in (name, f"{name}-other"):
        service.put(f"/queues/{each}")
    operations = [started(service, name) for _ in range(52)]
    other = started(service, f"{name}-other")
    key = make_key(service, scope={"manage": {"queues": [name]}})
    console = open_console(key=key)
    page = console.show("operations")
    rows = page.get_by_role("region", name="Operations").get_by_role("rowheader")
    expect(rows).to_have_count(50)
    expect(page.get_by_text(operations[-1])).to_be_visible()
    page.get_by_role("link", name="Next page").click()
    expect(rows).to_have_count(2)
    expect(page.get_by_text(operations[0])).to_be_visible()
    page.get_by_role("link", name="First page").click()
    expect(rows).to_have_count(50)
    expect(page.get_by_text(other)).to_have_count(0)


def test_the_audit_shows_who_changed_what_and_is_filtered(
    open_console: Open, service: httpx.Client, name: str
) -> None:
    key = make_key(service, manages_keys=True)
    console = open_console(key=key)
    service.put(f"/queues/{name}")
    bearer = {"authorization": f"Bearer {key['access_key_id']}:{key['secret']}"}
    service.put(f"/queues/{name}/receivers/copy", headers=bearer)
    service.delete(f"/queues/{name}/receivers/copy", headers=bearer)
    console.show("keys")
    audit = console.section("Audit")
    rows = audit.get_by_role("row").filter(has_text=name)
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("DELETE /queues/{queue}/receivers/{receiver}")
    expect(rows.first).to_contain_text(f"{name}/copy")
    audit.get_by_label("Access key id").fill(key["access_key_id"])
    audit.get_by_role("button", name="Show").click()
    expect(rows).to_have_count(2)
    audit.get_by_label("Access key id").fill("")
    audit.get_by_label("Resource").fill(name)
    audit.get_by_label("From").fill("2020-01-01T00:00")
    audit.get_by_role("button", name="Show").click()
    expect(audit.get_by_role("rowheader")).to_have_count(3)
    audit.get_by_label("Until").fill("2020-01-02T00:00")
    audit.get_by_role("button", name="Show").click()
    expect(audit.get_by_text("There is no such change.")).to_be_visible()


@pytest.mark.long
def test_older_changes_follow_on_demand(console: Console, service: httpx.Client, name: str) -> None:
    service.put(f"/queues/{name}")
    for seconds in range(60):
        service.patch(f"/queues/{name}", json={"delay_seconds": seconds})
    console.show("keys")
    audit = console.section("Audit")
    audit.get_by_label("Resource").fill(name)
    audit.get_by_role("button", name="Show").click()
    expect(audit.get_by_role("rowheader")).to_have_count(50)
    audit.get_by_role("button", name="Older changes").click()
    expect(audit.get_by_role("rowheader")).to_have_count(61)
    expect(audit.get_by_role("button", name="Older changes")).to_be_hidden()


@pytest.mark.long
def test_a_key_without_the_right_to_the_audit_is_told_so_and_sees_the_keys(
    open_console: Open, service: httpx.Client
) -> None:
    key = make_key(service, manages_keys=False)
    page = open_console(key=key).show("keys")
    expect(page.get_by_text("Forbidden:")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text=key["access_key_id"])).to_be_visible()
