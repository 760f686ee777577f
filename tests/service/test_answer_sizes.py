"""No answer is larger, as Lambda encodes it, than what Lambda passes on.

A lost answer loses what was claimed for it.
"""

from __future__ import annotations

import base64
import json
import random
from itertools import chain
from typing import Any

import msgspec
import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.test_listings import pages
from tests.service.topics import TestSubscription, TestTopic

from cirrusmq_local.testing import Client, World

pytestmark = pytest.mark.usefixtures("envelopes")
LARGEST_BODY = 262_144
REQUEST_BYTES = 1_000_000
KINDS = {
    "plain text": "x",
    "Chinese": "漢",
    "Russian": "ж",
    "emoji": "\U0001f600",
    "JSON": '{"a":"\\n"}',
    "quotes": '"',
    "control characters": "\x01",
    "what Lambda's JSON escapes and ours does not": "\x7f",
}
FEWER = ("plain text", "Russian", "control characters")
"""Bytes as they are, two bytes that JSON writes as six, and one byte that it does."""


def each_of(*kinds: str) -> list[Any]:
    """Those that are like one of FEWER are tried by `make check-long`."""
    return [kind if kind in FEWER else pytest.param(kind, marks=pytest.mark.long) for kind in kinds]


def body(kind: str, size: int) -> str:
    """A body of that many bytes, or of as many as one request can bring."""
    piece = KINDS[kind]
    in_json = len(json.dumps(piece, ensure_ascii=False)) - 2
    return piece * min(size // len(piece.encode()), REQUEST_BYTES // in_json)


@pytest.fixture
def queue(make_queue: MakeQueue) -> TestQueue:
    """A queue of one partition for the largest bodies of a table."""
    return make_queue(partitions=1, max_message_bytes=LARGEST_BODY)


def drain(queue: TestQueue, **fields: Any) -> list[list[str]]:
    """The bodies that each receive answers, until there are none."""
    answers = []
    while messages := queue.receive(**fields):
        answers.append([message["body"] for message in messages])
    return answers


def test_the_results_of_deletes_have_room_beside_the_largest_messages(queue: TestQueue) -> None:
    for _ in range(6):
        queue.send("\x01" * 156_000)  # five of them are 4.68 MB of JSON
    receipts = ["\x01" * 2_047 + chr(ord("a") + number) for number in range(16)]

    request = {"max": 16, "delete": receipts}
    answer = queue.client.post(f"{queue.path}/messages/receive", request).json

    assert [failed["receipt"] for failed in answer["failed"]] == receipts
    assert len(answer["messages"]) > 1


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", each_of(*KINDS))
def test_the_largest_messages_of_a_queue_fit_into_the_answers(queue: TestQueue, kind: str) -> None:
    text = body(kind, LARGEST_BODY)
    for _ in range(16):
        queue.send(text)

    answers = drain(queue)

    assert list(chain(*answers)) == [text] * 16
    # As few answers as Lambda allows: 4.7 MB of JSON in each, in base64.
    each = len(json.dumps(text, ensure_ascii=False).encode())
    assert len(answers) <= -(-16 // (4_500_000 // each))


def test_the_largest_binary_messages_come_too(queue: TestQueue) -> None:
    content = base64.b64encode(random.Random(3).randbytes(LARGEST_BODY)).decode()
    for _ in range(16):
        assert queue.try_send([{"body_base64": content}]).status == 201

    received = queue.receive_all()

    assert [message["body_base64"] for message in received] == [content] * 16


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["Russian", "control characters"])
def test_receivers_get_them_too(world: World, queue: TestQueue, kind: str) -> None:
    queue.add_receiver("copy")
    text = body(kind, LARGEST_BODY)
    for _ in range(16):
        queue.send(text)
    world.settle()

    assert list(chain(*drain(queue, receiver="copy"))) == [text] * 16


def test_a_short_message_beside_a_long_one_does_not_make_the_long_one_look_larger(
    queue: TestQueue,
) -> None:
    for number in range(8):
        group = "\x01" * 128
        long = {"body": "x" * 250_000, "group": group}
        short = {"body": "y", "group": group, "attributes": {f"n{number}": ""}}
        assert queue.try_send([long, short]).status == 201

    (answer,) = drain(queue)

    assert len(answer) == 16


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", each_of("Chinese", "Russian", "JSON", "control characters"))
def test_peeking_shows_as_many_as_an_answer_holds(queue: TestQueue, kind: str) -> None:
    text = body(kind, LARGEST_BODY)
    for _ in range(16):
        queue.send(text)

    peeked = queue.peek(16)

    assert {message["body"] for message in peeked} == {text}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", each_of("plain text", "Chinese", "Russian", "JSON", "quotes"))
@pytest.mark.parametrize("reader", ["topic", "subscription"])
def test_a_log_shows_all_of_the_largest_messages_a_few_at_a_time(
    world: World, topic: TestTopic, kind: str, reader: str
) -> None:
    topic.subscribe("some")  # so that something matches, and the messages are kept
    everyone = topic.subscribe("all", mode="broadcasting")
    source: TestSubscription | TestTopic = everyone if reader == "subscription" else topic
    text = body(kind, 65_536)
    for _ in range(25):
        assert topic.try_publish([{"body": text}] * 4).status == 201
    world.clock.pass_seconds(10)

    shown: list[str] = []
    page = source.log(limit=100)
    while page["messages"]:
        shown += [message["body"] for message in page["messages"]]
        page = source.log(limit=100, after=page["cursor"])

    assert shown == [text] * 100


def test_a_groups_messages_fit_into_the_answers(
    world: World, topic: TestTopic, group: TestSubscription
) -> None:
    text = body("Russian", 65_536)
    for _ in range(25):
        assert topic.try_publish([{"body": text}] * 4).status == 201
    world.settle()

    assert len(group.receive_all()) == 100


@pytest.mark.few(1)
def test_a_listing_of_verbose_queues_ends_early_with_a_cursor(alice: Client) -> None:
    label = "\x01" * 250
    verbose = {"description": "\x01" * 256, "labels": {f"{n}{label}": label for n in range(8)}}
    for number in range(200):
        assert alice.put(f"/queues/queue{number}", verbose).status == 201

    found = pages(alice, "limit=1000")

    names = [queue["name"] for page in found for queue in page]
    assert sorted(names) == sorted(f"queue{number}" for number in range(200))
    assert len(found) == 2


def test_a_refusal_naming_a_large_input_arrives_too(alice: Client) -> None:
    reply = alice.put("/queues/orders", {"\x7f" * 1_000_000: 1})

    assert (reply.status, reply.code) == (400, "InvalidParameter")


BILLED_FROM, BILLED_TO = "2026-08-01T00:00:00.000Z", "2026-11-30T00:00:00.000Z"


def bills(world: World, run: str, folder: str, invoices: list[Any]) -> str:
    """Have a run's report with these invoices be alice's newest; answers its name."""
    report = {"from": BILLED_FROM, "to": BILLED_TO, "generated_at": BILLED_TO, "time_zone": "UTC"}
    content = {**report, "gaps": [], "unusual": [], "invoices": invoices}
    name = f"runs/billing/{run}/{folder}/alice.json"
    world.reports[name] = json.dumps(content).encode()
    current = json.dumps({"run": run}) + '\n{"dataset": "usage"}\n'
    world.reports["current/billing.json"] = current.encode()
    return name


@pytest.mark.few(1)
def test_a_report_too_large_for_an_answer_is_told_in_pages(world: World, alice: Client) -> None:
    lines = [{"resource": f"queue:{number:064d}", "kind": "sent"} for number in range(35_000)]
    months = ("2026-10", "2026-11")
    invoices = [{"month": month, "lines": lines, "total": "7.00"} for month in months]
    bills(world, "r1", "summaries", invoices)

    pages, query = [], "limit=10000"
    while query:
        page = alice.get("/reports/billing", query)
        assert page.status == 200
        pages.append(page.json["invoices"])
        # A newer report does not mix with this one.
        world.reports["current/billing.json"] = b'{"run": "r2"}\n'
        query = f"cursor={page.json['cursor']}" if "cursor" in page.json else ""

    assert [[(each["month"], len(each["lines"])) for each in page] for page in pages] == [
        [("2026-10", 10_000)],
        [("2026-10", 10_000)],
        [("2026-10", 10_000)],
        [("2026-10", 5_000), ("2026-11", 5_000)],
        [("2026-11", 10_000)],
        [("2026-11", 10_000)],
        [("2026-11", 10_000)],
    ]
    told = [line for page in pages for each in page for line in each["lines"]]
    assert told == [*lines, *lines]
    assert {each["total"] for page in pages for each in page} == {"7.00"}


def test_a_page_of_bills_is_of_its_own_listing(world: World, alice: Client) -> None:
    lines = [{"resource": "queue:q", "kind": "sent"}] * 3
    invoices = [{"month": "2026-10", "lines": lines}, {"month": "2026-11", "lines": []}]
    name = bills(world, "r1", "summaries", invoices)

    assert "cursor" not in alice.get("/reports/billing", "limit=3").json
    cursor = alice.get("/reports/billing", "limit=2").json["cursor"]
    rest = alice.get("/reports/billing", f"limit=2&cursor={cursor}").json
    assert [len(each["lines"]) for each in rest["invoices"]] == [1, 0]
    for query in (
        f"cursor={cursor}&from={BILLED_FROM}",
        f"cursor={cursor[:-1]}",
        "limit=0",
        "limit=10001",
    ):
        refused = alice.get("/reports/billing", query)
        assert (refused.status, refused.code) == (400, "InvalidParameter")
    del world.reports[name]
    gone = alice.get("/reports/billing", f"cursor={cursor}")
    assert (gone.status, gone.json["parameter"]) == (400, "cursor")


def test_a_page_reads_the_lines_of_its_own_documents(world: World, alice: Client) -> None:
    """They lie in the folders of the runs that issued them."""
    open_one: dict[str, Any] = {
        "month": "2026-11",
        "number": None,
        "lines": [{"resource": "queue:open"}] * 2,
    }
    documents: list[dict[str, Any]] = [
        {"month": f"2026-{month:02}", "number": f"N{month}", "issued_in": f"r{month}"}
        for month in (8, 9, 10)
    ]
    bills(world, "r11", "accounts", [*(each | {"line_count": 3} for each in documents), open_one])
    for month in (8, 9):
        lines = {f"N{month}": [{"resource": f"queue:{month}-{place}"} for place in range(3)]}
        name = f"runs/billing/r{month}/lines/alice.json"
        world.reports[name] = json.dumps(lines).encode()

    first = alice.get("/reports/billing", "limit=4").json

    assert [
        (each["number"], [line["resource"] for line in each["lines"]]) for each in first["invoices"]
    ] == [("N8", ["queue:8-0", "queue:8-1", "queue:8-2"]), ("N9", ["queue:9-0"])]
    assert not any({"line_count", "issued_in"} & {*each} for each in first["invoices"])
    # What the page does not show is not read; what is missing is said.
    gone = alice.get("/reports/billing", f"limit=4&cursor={first['cursor']}")
    assert (gone.status, gone.code) == (404, "ReportNotFound")
    assert "r10" in str(gone.json)
    world.reports["runs/billing/r10/lines/alice.json"] = b'{"N10": [{"resource": "a"}, {}, {}]}'
    rest = alice.get("/reports/billing", f"limit=4&cursor={first['cursor']}").json
    assert [(each["number"], len(each["lines"])) for each in rest["invoices"]] == [
        ("N9", 2),
        ("N10", 2),
    ]
    last = alice.get("/reports/billing", f"limit=4&cursor={rest['cursor']}").json
    assert [(each["number"], len(each["lines"])) for each in last["invoices"]] == [
        ("N10", 1),
        (None, 2),
    ]
    assert "cursor" not in last


def backlog(name: str) -> bytes:
    resource = {"name": name, "kind": "queue", "active": 3}
    time = "2026-11-20T00:00:00.000Z"
    return msgspec.json.encode({"at": time, "generated_at": time, "resources": [resource]})


def test_a_backlog_of_a_job_before_this_one_has_no_labels(world: World, alice: Client) -> None:
    world.reports["current/backlog.json"] = b'{"run": "r1"}\n'
    world.reports["runs/backlog/r1/summaries/alice.json"] = backlog("orders")

    report = alice.get("/reports/backlog").json

    assert [each["name"] for each in report["resources"]] == ["orders"]
    assert (report["labels"], report["top"]) == ([], {})


def test_a_backlog_has_its_runs_labels_and_nothing_of_a_later_job(
    world: World, alice: Client
) -> None:
    groups = {"labels": [{"label": "team"}], "top": {"dead": {}}, "later": 1, "at": "never"}
    world.reports["current/backlog.json"] = b'{"run": "r2"}\n'
    world.reports["runs/backlog/r2/summaries/alice.json"] = backlog("orders")
    world.reports["runs/backlog/r1/groups/alice.json"] = b'{"labels": [{"label": "old"}]}'
    world.reports["runs/backlog/r2/groups/alice.json"] = msgspec.json.encode(groups)

    report = alice.get("/reports/backlog").json

    assert (report["labels"], report["top"]) == ([{"label": "team"}], {"dead": {}})
    assert report["at"] == "2026-11-20T00:00:00.000Z"
    assert "later" not in report
