"""Keys of another account, which an admin key names on the page of keys."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import expect
from tests.console.browsing import Console
from tests.console.conftest import Open
from tests.console.test_operations_and_audit import make_key


def keys_of(service: httpx.Client, account: str) -> list[str]:
    listed = service.get("/keys", params={"account": account}).json()["keys"]
    return [each["access_key_id"] for each in listed]


def test_an_admin_lists_and_makes_keys_of_another_account(
    console: Console, service: httpx.Client, name: str
) -> None:
    theirs = make_key(service, account=name, description="for the till")
    page = console.show("keys")
    field = page.get_by_label("Account", exact=True)
    expect(field).to_have_value("")
    expect(page.get_by_text("this one")).to_be_visible()
    field.fill(name)
    field.press("Enter")
    expect(page.get_by_role("heading", name=f"Access keys of {name}")).to_be_visible()
    assert page.url.endswith(f"#/keys?account={name}")
    rows = page.get_by_role("region", name="Keys and audit").get_by_role("rowheader")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(theirs["access_key_id"])

    page.get_by_text(f"New key of {name}").click()
    page.get_by_label("description", exact=True).fill("for the desk")
    console.press("Make the key")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Account{name}")
    id, _ = dialog.locator("pre").inner_text().split("\n")
    assert sorted(keys_of(service, name)) == sorted([id, theirs["access_key_id"]])
    console.press("Close", dialog=True)
    expect(rows).to_have_count(2)

    page.reload()
    expect(field).to_have_value(name)
    expect(rows).to_have_count(2)
    assert console.findings() == []
    field.fill("")
    field.press("Enter")
    expect(page.get_by_role("heading", name="Access keys", exact=True)).to_be_visible()
    expect(page.get_by_text("this one")).to_be_visible()
    assert page.url.endswith("#/keys")


@pytest.mark.long
def test_an_invalid_account_is_refused_at_the_field_and_one_without_keys_gets_its_first(
    console: Console, service: httpx.Client, name: str
) -> None:
    page = console.show("keys?account=no%20such%20name")
    field = page.get_by_label("Account", exact=True)
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("status").get_by_text("InvalidParameter (account):")).to_be_visible()
    expect(page.get_by_role("heading", name="Audit", exact=True)).to_be_visible()
    assert console.findings() == []

    page = console.show(f"keys?account={name}")
    expect(page.get_by_text("This account has no key yet.")).to_be_visible()
    page.get_by_text(f"New key of {name}").click()
    console.press("Make the key")
    expect(page.get_by_role("dialog")).to_contain_text(name)
    console.press("Close", dialog=True)
    expect(page.get_by_text("This account has no key yet.")).to_have_count(0)
    assert len(keys_of(service, name)) == 1


@pytest.mark.long
def test_a_key_without_admin_has_no_field_and_is_refused_the_account_of_the_address(
    open_console: Open, service: httpx.Client, name: str
) -> None:
    key = make_key(service, manages_keys=True)
    console = open_console(key=key)
    page = console.show("keys")
    expect(page.get_by_role("row").filter(has_text=key["access_key_id"]).first).to_be_visible()
    expect(page.get_by_label("Account", exact=True)).to_have_count(0)
    console.show(f"keys?account={name}")
    expect(page.get_by_role("status").get_by_text("Forbidden:")).to_be_visible()
    expect(page.get_by_label("Account", exact=True)).to_have_count(0)
    expect(page.get_by_role("button", name="Make the key")).to_have_count(0)
