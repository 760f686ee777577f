"""Work on a queue by the console, and the state of the service after it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Response, Route, expect
from tests.console.browsing import Console


def make_queue(service: httpx.Client, queue: str, **attributes: Any) -> None:
    assert service.put(f"/queues/{queue}", json=attributes).status_code == 201


def send(service: httpx.Client, queue: str, *messages: dict[str, Any]) -> list[str]:
    answer = service.post(f"/queues/{queue}/messages", json={"messages": list(messages)})
    assert answer.status_code == 201, answer.text
    return [each["id"] for each in answer.json()["messages"]]


def is_change(answer: Response) -> bool:
    return answer.request.method == "PATCH"


def counts(service: httpx.Client, queue: str) -> dict[str, int]:
    found: dict[str, int] = service.get(f"/queues/{queue}").json()["counts"]
    return found


def receive(service: httpx.Client, queue: str, **request: Any) -> list[dict[str, Any]]:
    body = {"max": 16, "wait_seconds": 5, **request}
    answer = service.post(f"/queues/{queue}/messages/receive", json=body)
    found: list[dict[str, Any]] = answer.json()["messages"]
    return found


def test_a_queue_is_made_and_a_message_is_sent_seen_received_and_settled(
    console: Console, service: httpx.Client, name: str
) -> None:
    page = console.show("overview")
    page.get_by_text("New queue").click()
    page.get_by_label("Name", exact=True).fill(name)
    console.press("Make the queue")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)

    console.show(f"queues/{name}/send")
    page.get_by_label("Body").fill("two coffees")
    page.get_by_label("Tags, between commas").fill("new, paid")
    page.get_by_label("Attributes, name=value").fill("region=shanghai\nfloor=2")
    page.get_by_label("Group").fill("g1")
    console.press("Send")
    told = page.get_by_role("status").get_by_role("link")
    id = told.inner_text()
    told.click()

    # The link leads to a look-up of the message.
    card = page.get_by_role("article", name=id)
    expect(card).to_contain_text("two coffees")
    expect(card).to_contain_text("shanghai")
    console.press("Look")
    expect(page.get_by_role("article", name=id)).to_have_count(2)

    console.press("Receive")
    held = page.get_by_role("article", name=id).filter(has_text="Give back")
    held.get_by_role("button", name="Hold for 5 minutes").click()
    expect(page.get_by_text(f"{id} is held for 5 minutes from now.")).to_be_visible()
    held.get_by_role("button", name="Give up").click()
    expect(page.get_by_text("NoDeadLetterQueue")).to_be_visible()
    held.get_by_role("button", name="Give back").click()
    expect(page.get_by_text(f"{id} is given back.")).to_be_visible()
    console.press("Receive")
    held.get_by_role("button", name="Delete").click()
    expect(page.get_by_text(f"{id} is deleted.")).to_be_visible()
    kept = counts(service, name)
    assert (kept["active"], kept["inactive"], kept["delayed"]) == (0, 0, 0)


def test_messages_are_found_by_state_text_and_time(
    console: Console, service: httpx.Client, queue: str
) -> None:
    send(service, queue, {"body": "held soup"})
    receive(service, queue)
    bodies = [{"body": f"order {number}", "tags": ["paid"]} for number in range(40)]
    for place in range(0, 40, 16):
        send(service, queue, *bodies[place : place + 16])
    send(service, queue, {"body": "later", "delay_seconds": 600, "attributes": {"table": "seven"}})
    console.show(f"queues/{queue}/messages")
    looking = console.section("Look")
    cards = looking.get_by_role("article")

    looking.get_by_label("State").select_option("inactive")
    console.press("Look")
    expect(cards).to_have_count(1)
    expect(cards).to_contain_text("held soup")

    looking.get_by_label("State").select_option("delayed")
    looking.get_by_label("With this text").fill("TABLE=seven")
    console.press("Look")
    expect(looking.get_by_text("1 found among all 1 messages.")).to_be_visible()
    expect(cards).to_contain_text("later")

    looking.get_by_label("State").select_option("active")
    looking.get_by_label("With this text").fill("order 39")
    console.press("Look")
    expect(looking.get_by_text("1 found among all 40 messages.")).to_be_visible()
    looking.get_by_label("With this text").fill("")
    looking.get_by_label("Order").select_option("newest")
    console.press("Look")
    expect(looking.get_by_text("40 found among all 40 messages.")).to_be_visible()
    expect(cards.first).to_contain_text(re.compile(r"order 3\d"))
    looking.get_by_label("Sent until").fill("2020-01-01T00:00:00")
    console.press("Look")
    expect(looking.get_by_text("0 found among all 40 messages.")).to_be_visible()
    looking.get_by_label("Sent until").fill("")
    looking.get_by_label("Order").select_option("oldest")
    console.press("Look")
    expect(
        looking.get_by_text("16 found among the first 16 messages; there are more.")
    ).to_be_visible()
    console.press("Look further")
    expect(
        looking.get_by_text("16 found among the first 32 messages; there are more.")
    ).to_be_visible()


def tell_counts(console: Console, queues: str, told: dict[str, dict[str, Any]]) -> None:
    """Show the service's answers about these queues with other counts, by name."""

    def tell(route: Route) -> None:
        answer = route.fetch()
        assert answer.ok, answer.text()
        shown = answer.json()
        shown["counts"] |= {"active": 0, "inactive": 0, "delayed": 0, "approximate": False}
        shown["counts"] |= told[shown["name"]]
        route.fulfill(response=answer, json=shown)

    console.page.route(re.compile(rf"/queues/{queues}$"), tell)


@pytest.mark.long
def test_sums_over_queues_are_marked_approximate(
    console: Console, service: httpx.Client, queue: str
) -> None:
    make_queue(service, f"{queue}-2")
    about = {"active": 12_000, "inactive": 3, "approximate": True}
    # The first page asks for the queues of other tests too.
    tell_counts(console, f"{queue}(-2)?", {queue: about, f"{queue}-2": {"active": 500}})
    page = console.show(f"overview?prefix={queue}")
    tiles = page.locator(".tiles")
    expect(tiles.get_by_text("~12,500", exact=True)).to_be_visible()
    expect(tiles.get_by_text("~3", exact=True)).to_be_visible()
    row = page.get_by_role("row", name=f"{queue}-2")
    expect(row.get_by_text("500", exact=True)).to_be_visible()


@pytest.mark.long
def test_a_deletion_marks_its_count_of_messages_approximate(console: Console, queue: str) -> None:
    about = {"active": 12_000, "inactive": 3, "delayed": 1, "approximate": True}
    tell_counts(console, queue, {queue: about})
    page = console.show(f"queues/{queue}")
    expect(page.locator(".tiles").get_by_text("~12,000", exact=True)).to_be_visible()
    console.press("Delete the queue")
    expect(page.get_by_role("dialog").get_by_text("~12,004")).to_be_visible()


def test_attributes_have_the_contracts_ranges_and_refusals_are_beside_their_field(
    console: Console, service: httpx.Client, queue: str
) -> None:
    page = console.show(f"queues/{queue}/attributes")
    field = page.get_by_label("visibility_timeout_seconds")
    expect(field).to_have_value("30")
    expect(field).to_have_accessible_description("an integer from 1 to 43,200 seconds")
    field.fill("43201")
    console.press("Save changes")
    expect(page.get_by_text("must be an integer from 1 to 43,200 seconds")).to_be_visible()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_be_focused()
    page.get_by_label("labels").fill("{")
    console.press("Save changes")
    expect(page.get_by_text("labels is not JSON.")).to_be_visible()

    page.get_by_label("labels").fill("{}")
    field.fill("60")
    page.get_by_label("description").fill("<b>orders</b>")
    with page.expect_response(is_change):
        console.press("Save changes")
    expect(page.get_by_text("is not JSON")).to_have_count(0)
    console.show(f"queues/{queue}")
    expect(page.get_by_text("<b>orders</b>")).to_be_visible()
    changed = service.get(f"/queues/{queue}").json()
    assert (changed["visibility_timeout_seconds"], changed["description"]) == (60, "<b>orders</b>")


@pytest.mark.long
def test_objects_have_a_field_for_each_member_and_fixed_attributes_have_none(
    console: Console, service: httpx.Client, queue: str
) -> None:
    make_queue(service, f"{queue}-dead")
    page = console.show(f"queues/{queue}/attributes")
    expect(
        page.get_by_text("Fixed when the queue was made: ordered: no, fair: no, priorities: ")
    ).to_be_visible()
    expect(page.get_by_label("ordered")).to_have_count(0)
    invoke = page.get_by_role("group", name="invoke")
    invoke.get_by_label("function").fill("nobody")
    invoke.get_by_role("group", name="breaker").get_by_label("share").fill("0.5")
    console.press("Save changes")
    expect(page.get_by_text("(invoke.function)")).to_be_visible()
    expect(invoke).to_have_attribute("aria-invalid", "true")
    invoke.get_by_label("function").fill("")
    invoke.get_by_label("share").fill("")
    dead_letter = page.get_by_role("group", name="dead_letter")
    dead_letter.get_by_label("queue").fill(f"{queue}-dead")
    dead_letter.get_by_label("max_receives").fill("2000")
    console.press("Save changes")
    expect(page.get_by_text("dead_letter.max_receives: must be an integer")).to_be_visible()
    expect(dead_letter).to_have_attribute("aria-invalid", "true")
    dead_letter.get_by_label("max_receives").fill("5")
    retry = page.get_by_role("group", name="retry")
    retry.get_by_label("policy").select_option("custom")
    retry.get_by_label("waits").fill("1, soon")
    console.press("Save changes")
    expect(page.get_by_text("waits: numbers between commas.")).to_be_visible()
    retry.get_by_label("waits").fill("1, 2.5, 60")
    with page.expect_response(is_change):
        console.press("Save changes")
    expect(page.get_by_role("alert")).to_be_empty()
    expect(page.get_by_text("numbers between commas")).to_have_count(0)
    shown = service.get(f"/queues/{queue}").json()
    assert shown["dead_letter"]["queue"] == f"{queue}-dead"
    assert shown["dead_letter"]["max_receives"] == 5
    assert shown["retry"]["waits"] == [1, 2.5, 60]

    # Nothing is sent if nothing was changed; an object without a member is unset.
    page.reload()
    console.show(f"queues/{queue}/attributes")
    console.press("Save changes")
    expect(page.get_by_text("Nothing was changed.")).to_be_visible()
    page.get_by_role("group", name="retry").get_by_label("policy").select_option("")
    with page.expect_response(is_change):
        console.press("Save changes")
    assert service.get(f"/queues/{queue}").json()["retry"] is None


@pytest.mark.long
def test_a_file_is_sent_in_as_many_calls_as_it_takes(
    console: Console, service: httpx.Client, queue: str, tmp_path: Path
) -> None:
    lines = [f"line {number}" for number in range(40)]
    lines.append(json.dumps({"body": "tagged", "tags": ["paid"]}))
    lines.append("x" * 70_000)
    lines.append(json.dumps({"order": 7}))
    path = tmp_path / "messages.txt"
    path.write_text("\n".join(lines))
    page = console.show(f"queues/{queue}/send")
    page.get_by_label("File", exact=True).set_input_files(path)
    console.press("Send a file")
    expect(page.get_by_text("42 messages were sent.")).to_be_visible()
    expect(page.get_by_text("1 messages were refused:")).to_be_visible()
    got: list[dict[str, Any]] = []
    while len(got) < 42 and (more := receive(service, queue)):
        got += more
    bodies = {each["body"]: each["tags"] for each in got}
    assert len(bodies) == 42
    assert bodies["tagged"] == ["paid"]
    assert '{"order":7}' in bodies


@pytest.mark.long
def test_dead_letters_are_chosen_by_reason_and_redriven(
    console: Console, service: httpx.Client, name: str
) -> None:
    dead = f"dlq-{name}"
    make_queue(service, dead)
    make_queue(service, name, dead_letter={"queue": dead, "max_receives": 5})
    send(service, name, *({"body": f"order {number}"} for number in range(3)))
    for message, reason in zip(receive(service, name), ("unknown", "unknown", "late"), strict=True):
        body = {"receipts": [message["receipt"]], "reason": reason}
        service.post(f"/queues/{name}/messages/dead-letter", json=body)

    page = console.show(f"overview?prefix={dead}")
    page.get_by_role("rowheader").get_by_role("link", name=dead).last.click()
    page.get_by_role("link", name="Dead letters").click()
    expect(page.get_by_role("article")).to_have_count(3)
    page.get_by_label("Reason").fill("unknown")
    console.press("Show")
    expect(page.get_by_role("article")).to_have_count(2)
    page.get_by_label("Choose").first.check()
    console.press("Redrive chosen (1)")
    expect(page.get_by_role("dialog")).to_contain_text("1 chosen messages move to")
    console.press("Redrive", dialog=True)
    expect(page.get_by_text("done: 1 messages.")).to_be_visible()
    expect(page.get_by_role("article")).to_have_count(1)
    assert counts(service, name)["active"] == 1

    page.get_by_label("Reason").fill("")
    console.press("Redrive all")
    expect(page.get_by_role("dialog")).to_contain_text(f"among the 2 active messages of {dead}")
    console.press("Redrive", dialog=True)
    expect(page.get_by_text("done: 2 messages.")).to_be_visible()
    expect(page.get_by_text("No dead letters are in this queue.")).to_be_visible()
    assert counts(service, name)["active"] == 3

    # The source has the same tab: what waits in it was not given up, and it says where letters go.
    page = console.show(f"queues/{name}/dead")
    expect(page.get_by_role("article")).to_have_count(0)
    expect(page.get_by_role("link", name=dead)).to_have_attribute("href", f"#/queues/{dead}/dead")
    console.show("operations")
    expect(page.get_by_role("row").filter(has_text=dead).filter(has_text="Redrive")).to_have_count(
        2
    )


@pytest.mark.long
def test_purge_and_rewind_tell_their_effect_and_their_progress(
    console: Console, service: httpx.Client, name: str
) -> None:
    make_queue(service, name, rewind_seconds=3_600)
    send(service, name, *({"body": f"order {number}"} for number in range(5)))
    receipts = [each["receipt"] for each in receive(service, name)]
    service.post(f"/queues/{name}/messages/delete", json={"receipts": receipts})
    page = console.show(f"queues/{name}/work")
    console.press("Rewind")
    expect(page.get_by_role("dialog")).to_contain_text("Consumers get them once more.")
    console.press(f"Rewind {name}", dialog=True)
    expect(page.get_by_text("done: 5 messages.")).to_be_visible()
    assert counts(service, name)["active"] == 5

    console.press("Purge")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"From {name} are removed: 5 active")
    console.press("Cancel", dialog=True)
    expect(dialog).to_have_count(0)
    assert counts(service, name)["active"] == 5
    console.press("Purge")
    console.press(f"Purge {name}", dialog=True)
    expect(page.get_by_text(f"Purge of {name}")).to_be_visible()
    expect(page.locator("progress")).to_have_count(0)
    assert counts(service, name)["active"] == 0

    console.show(f"queues/{name}")
    console.press("Delete the queue")
    console.press(f"Delete {name}", dialog=True)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert service.get(f"/queues/{name}").status_code == 404


def test_receivers_and_grants_are_made_and_removed(
    console: Console, service: httpx.Client, queue: str
) -> None:
    page = console.show(f"queues/{queue}/receivers")
    page.get_by_text("New receiver").click()
    page.get_by_label("Name", exact=True).fill("audit")
    filter_of_it = page.get_by_role("group", name="filter")
    filter_of_it.get_by_label("sql").fill("amount >")
    console.press("Add the receiver")
    expect(page.get_by_text("InvalidFilter")).to_be_visible()
    filter_of_it.get_by_label("sql").fill("")
    filter_of_it.get_by_label("tags", exact=True).fill("paid")
    console.press("Add the receiver")
    row = page.get_by_role("row").filter(has_text="audit")
    expect(row).to_contain_text('{"tags": ["paid"]}')
    row.get_by_role("button", name="Delete").click()
    console.press("Delete", dialog=True)
    expect(row).to_have_count(0)

    console.show(f"queues/{queue}/grants")
    page.get_by_label("Account").fill("acme")
    page.get_by_label("Permission").select_option("send")
    console.press("Give")
    expect(page.get_by_role("row").filter(has_text="acme")).to_contain_text("send")
    console.press("Take back")
    expect(page.get_by_text("No other account may use it.")).to_be_visible()
    assert service.get(f"/queues/{queue}/grants").json()["grants"] == []
