"""An account with as many queues as one may have."""

from __future__ import annotations

import time
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.console.conftest import Open
from tests.stack import Start

from cirrusmq_local.cloud.tables import table_specs
from cirrusmq_local.cloud.template import TEMPLATE, load
from cirrusmq_local.engine import Engine

QUEUES = 10_000
FIRST = "queue-00000"


def named(item: dict[str, Any], id: str, number: int) -> dict[str, Any]:
    """An item of the first queue as that of another one."""

    def written(value: Any) -> Any:
        match value:
            case str():
                new_id = f"{number:0{len(id)}d}"
                return value.replace(FIRST, f"queue-{number:05d}").replace(id, new_id)
            case bytes():
                return written(value.decode()).encode()
            case dict():
                return {name: written(held) for name, held in value.items()}
        return value

    copy: dict[str, Any] = written(item)
    return copy


@pytest.mark.long
def test_ten_thousand_queues_are_paged_and_searched_by_the_service(
    start: Start, open_console: Open
) -> None:
    first = start()
    assert first.client().put(f"/queues/{FIRST}").status_code == 201
    id = first.client().get(f"/queues/{FIRST}").json()["id"]
    first.end()
    template = load(TEMPLATE)
    engine = Engine(
        first.folder / "store.sqlite",
        table_specs(template),
        now_ms=lambda: time.time_ns() // 1_000_000,
    )
    table = template.environment()["DIRECTORY_TABLE"]
    items = engine.execute("Scan", {"TableName": table})["Items"]
    changes = [item for item in items if item["pk"]["S"].startswith("E#")]
    own = [item for item in items if FIRST in str(item) and item not in changes]
    assert len(own) == 2  # the queue, and its id's
    copies = [named(item, id, number) for number in range(1, QUEUES) for item in own]
    for place in range(0, len(copies), 25):
        puts = [{"PutRequest": {"Item": item}} for item in copies[place : place + 25]]
        engine.execute("BatchWriteItem", {"RequestItems": {table: puts}})
    engine.close()

    running = start()
    console = open_console(key=running.connection(), url=running.url)
    page = console.show("overview")
    expect(page.get_by_role("rowheader")).to_have_count(25)
    calls = []
    page.on("request", lambda request: calls.append(request.url))
    page.get_by_label("Names that begin with").fill("queue-0999")
    console.press("Search")
    expect(page.get_by_role("rowheader")).to_have_text([f"queue-0999{n}" for n in range(10)])
    expect(page.get_by_text("No name begins with “queue-0999”.")).to_be_visible()  # no topic
    page.get_by_label("Names that begin with").fill("")
    console.press("Search")
    page.get_by_role("link", name="Next page").click()
    expect(page.get_by_role("rowheader").first).to_have_text("queue-00025")
    # Each page took two listings of queues, one of topics, the rates of all that it shows, and a
    # look at each queue.
    assert len(calls) <= 3 * 4 + 10 + 2 * 25
