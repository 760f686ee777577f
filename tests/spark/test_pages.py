"""The pages: whole without network, their charts there and drawn by a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser
from pyspark.sql import DataFrame, SparkSession
from tests.console.browsing import axe_findings, launched
from tests.spark.job_runs import AT_MS

from cirrusmq_reports.backlog_groups import backlog_groups
from cirrusmq_reports.backlog_page import render_backlog, show_bytes, show_seconds
from cirrusmq_reports.billing_page import PageInput, render_billing, shortened
from cirrusmq_reports.billing_sums import UNUSUAL_SHOWN, Sums
from cirrusmq_reports.charts import lines, show_number, stacked_columns, stacked_rows
from cirrusmq_reports.coverage import ScannedRange
from cirrusmq_reports.figures import REASON_COLUMNS, RECEIVE_RANGES, SIZE_RANGES

VOID = {"meta", "link", "br", "img"}


class Balanced(HTMLParser):
    """Fails where an element is closed that is not the open one."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def resource(name: str, active: int) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "queue",
        "labels": {"team": "<i>pay</i>"},
        "dead_by_reason": {"max_receives": 2, "other": 1},
        **dict.fromkeys(("inactive", "delayed", "rewindable", "dead", "expired"), 3),
        "active": active,
        "bytes": 4_000_000,
        **{f"{age}_age_seconds": 5_000 for age in ("oldest", "p50", "p95", "p99")},
        "receive_counts": {str(low): 5 for low, _ in RECEIVE_RANGES},
        "sizes": {str(low): 6 for low, _ in SIZE_RANGES},
        "hottest_partition": 1,
        "hottest_partition_share": 0.5,
        "retrying": True,
        "probe_age_seconds": 70,
        "backlog_by_time": [
            {"at": f"2026-11-20T{hour:02}:00:00.000Z", "messages": active + hour}
            for hour in range(5)
        ],
        "growth_per_hour": 1.5,
        "hours_to_drain": None,
    }


@pytest.fixture
def backlog_page() -> str:
    summaries = {"acme": {"resources": [resource("<b>orders</b>", 40), resource("mail", 0)]}}
    label = resource("", 40) | {"account": "acme", "label": "team", "value": "<i>pay</i>"}
    counts = dict.fromkeys(REASON_COLUMNS, 1)
    groups = backlog_groups(summaries, [{**label, **counts, "resources": 2}])
    return render_backlog(summaries, groups, AT_MS)


def invoice(month: str, currency: str, *, closed: bool) -> dict[str, Any]:
    line = {"resource": "queue:<i>", "kind": "sent", "count": 5, "bytes": 6, "amount": "0.07"}
    corrected = {**line, "correction": "2026-09", "count": 17}
    return {
        "month": month,
        "currency": currency,
        "closed": closed,
        "closes_at": "2026-12-04T00:00:00.000Z",
        "forecast": None if closed else "1234.56",
        "lines": [{**line, "correction": None}, corrected],
        "total": "0.14",
        "number": "INV-acme-000007" if closed else None,
        "type": "invoice",
        "refers_to": None,
    }


def used(
    day: str, count: int, charge: float, *, kind: str = "sent", currency: str = "USD"
) -> dict[str, Any]:
    """The use of a day, of one kind."""
    return {"day": day, "kind": kind, "currency": currency, "count": count, "charge": charge}


@pytest.fixture
def billing_page(spark: SparkSession) -> str:
    daily = [
        used(f"2026-11-{day:02}", day, 0.1, currency="USD" if day < 10 else "CNY")
        for day in range(1, 20)
    ]
    invoices = [invoice("2026-10", "USD", closed=True), invoice("2026-11", "CNY", closed=False)]
    hour = {
        "hour": "2026-11-20T07:00:00.000Z",
        "resource": "queue:<i>",
        "kind": "sent",
        "count": 5_001,
        "usual_most": 1_600,
    }
    return bill_page(
        spark,
        {"invoices": invoices, "unusual": [hour]},
        daily,
        others=["globex", "hooli"],
        gaps=[ScannedRange(AT_MS - 5 * 86_400_000, AT_MS - 4 * 86_400_000)],
        waiting=[("2026-09", [ScannedRange(AT_MS - 90 * 86_400_000, AT_MS - 89 * 86_400_000)])],
        set_aside={"kind is not known to this release": 1_234},
    )


def bill_page(
    spark: SparkSession,
    summary: dict[str, Any],
    daily: list[dict[str, Any]],
    *,
    others: Sequence[str] = (),
    **more: Any,
) -> str:
    """The page that shows acme's invoices; the other accounts have the same answer."""
    values = {"gaps": [], "waiting": [], "set_aside": {}, **more}
    summaries = {"acme": shortened(summary)}
    sums = Sums()
    for account in ("acme", *others):
        sums.add(account, summary)
    sums.add_lines(lines_of_all(spark, dict.fromkeys(("acme", *others), summary)))
    return render_billing(
        PageInput(summaries=summaries, sums=sums, daily=daily, from_ms=AT_MS, to_ms=AT_MS, **values)
    )


def lines_of_all(spark: SparkSession, answers: Mapping[str, dict[str, Any]]) -> DataFrame:
    """The lines of accounts' answers, as a run has them."""
    rows = [
        (
            *(account, each["currency"], line["resource"], line["kind"], line["count"]),
            Decimal(line["amount"]),
        )
        for account, answer in answers.items()
        for each in answer["invoices"]
        for line in each.get("lines", ())
    ]
    schema = "account STRING, currency STRING, resource STRING, kind STRING, count BIGINT"
    return spark.createDataFrame(rows, f"{schema}, charge DECIMAL(38,19)")


def test_the_page_describes_its_invoices(billing_page: str) -> None:
    text = re.sub(r"<[^>]+>", "|", billing_page)
    assert "2026-11-20 08:00; times, days and months are of UTC" in text
    assert "2026-10 · acme · invoice INV-acme-000007" in text
    assert "The invoices of 2026-09 and of all later months wait" in text
    assert "no export shows what was written from 2026-08-22" in text
    assert "1,234 entries of usage are set aside as odd" in text
    assert "kind is not known to this release||1,234" in text
    assert "could not count within 12 hours are in no bill" in text
    assert "2 more accounts are in the tables" in text
    assert "2026-11 · acme · open until 2026-12-04" in text
    assert "use of|count|bytes|amount (CNY)" in text.replace("||", "|")
    assert "queue:&lt;i&gt;||sent||2026-09||17||6||0.07" in text
    assert "The use of 2026-11-15 to 2026-11-16 is missing" in text
    # Tiles are of all accounts, the invoices below of those that are shown.
    assert "0.42||USD, of 3 documents and 0 open months" in text
    assert "0.42||CNY, of 0 documents and 3 open months" in text
    assert "3,703.68||CNY at this month's end, if each day is like the last" in text.replace(
        "&#x27;", "'"
    )
    assert "more than 3 times those of the busiest hour" in text
    assert "2026-11-20 07:00||5,001||1,600" in text
    assert "Charges by day (CNY)" in text
    assert "Charges by day (USD)" in text


@pytest.mark.parametrize(("name", "charts"), [("backlog_page", 5), ("billing_page", 7)])
def test_a_page_is_whole_by_itself(name: str, charts: int, request: pytest.FixtureRequest) -> None:
    page: str = request.getfixturevalue(name)
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    # A document's lines are in its own files.
    ends = ("html", "csv", "json") if name == "billing_page" else ()
    document = "../../../documents/acme/INV-acme-000007"
    assert parser.addresses == [f"{document}.{end}" for end in ends]
    assert "<script" not in page
    assert "url(" not in page
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == charts
    for drawing in drawings:
        tree = ElementTree.fromstring(drawing)
        shapes = [*tree.iter("rect"), *tree.iter("polyline")]
        assert shapes, drawing
        for shape in tree.iter("rect"):
            assert float(shape.attrib["width"]) > 0
            assert float(shape.attrib["x"]) >= 0
    assert "<b>orders" not in page
    assert "<i>" not in re.sub(r'<i class="c\d">', "", page)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("width", "colours"),
    [
        (1280, "light"),
        (390, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.long),
        pytest.param(390, "light", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(("name", "charts"), [("backlog_page", 5), ("billing_page", 7)])
def test_a_browser_shows_the_charts(
    name: str,
    charts: int,
    width: int,
    colours: Literal["light", "dark"],
    browser: Browser,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    place = tmp_path / "page.html"
    place.write_text(request.getfixturevalue(name))
    page = browser.new_page(color_scheme=colours, viewport={"width": width, "height": 800})
    page.goto(place.as_uri())
    for details in page.locator("details > summary").all():
        details.click()

    assert page.locator("svg:visible").count() == charts
    # What is wider than a phone scrolls by itself.
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert axe_findings(page) == []
    page.close()


def test_sizes_and_times_are_shown_in_fitting_units() -> None:
    shown = [show_seconds(seconds) for seconds in (None, 5, 65, 4_000, 100_000)]
    assert shown == ["—", "5 s", "1 min", "1 h 6 min", "1 d 3 h"]
    assert [show_bytes(size) for size in (12, 1_500, 2.5e9)] == ["12 B", "1.5 kB", "2.5 GB"]


def texts(drawing: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawing)


@pytest.mark.few(12)
@pytest.mark.parametrize("limit", [*range(1, 130), 999, 1_001, 12_345, 1_000_001])
def test_an_axis_of_counts_has_whole_numbers_and_room_for_the_largest(limit: int) -> None:
    for drawing in (
        stacked_columns(["a"], {"x": [limit - 1], "y": [1]}, title="columns"),
        lines(["a", "b"], {"x": [limit, 0]}, title="lines"),
    ):
        letters = {"k": 1_000, "M": 1_000_000}
        ticks = [
            float(text.rstrip("kM")) * letters.get(text[-1], 1)
            for text in texts(drawing)
            if text[0].isdigit()
        ]
        assert len(ticks) == 5
        assert all(tick == int(tick) for tick in ticks), ticks
        assert limit <= ticks[-1] <= 4 * limit


def test_small_amounts_are_not_shown_as_none() -> None:
    assert [show_number(value) for value in (5, 1_234.5, 0.0, 0.004, 0.0000012)] == [
        "5", "1,234.50", "0.00", "0.004", "0.0000012",
    ]  # fmt: skip
    drawing = stacked_columns(["a"], {"x": [0.0000037]}, title="charges")
    assert texts(drawing) == ["0", "1µ", "2µ", "3µ", "4µ", "a"]


def test_a_legend_names_shown_series_in_the_colour_of_their_place() -> None:
    drawing = stacked_rows([("q", [3, 0, 2])], ["sent", "received", "deleted"], title="rows")
    assert re.findall(r'<i class="(c\d)"></i>(\w+)', drawing) == [("c0", "sent"), ("c2", "deleted")]


def test_a_kind_has_the_same_colour_in_every_chart_and_nothing_is_charged_no_bar(
    spark: SparkSession,
) -> None:
    daily = [
        used("2026-11-01", count, charge, kind=kind)
        for kind, count, charge in (("sent", 9, 0.1), ("kept", 1, 3.0), ("deleted", 99, 0.2))
    ]
    lines_of = [
        line(kind, amount, f"queue:{kind}", 1)
        for kind, amount in (("sent", "0.10"), ("kept", "3.00"), ("deleted", "0.00"))
    ]
    one = {**invoice("2026-11", "USD", closed=False), "lines": lines_of, "total": "3.10"}
    page = bill_page(spark, {"invoices": [one], "unusual": []}, daily)
    legends = [
        dict(re.findall(r'<i class="(c\d)"></i>(\w+)', legend))
        for legend in re.findall(r'<ul class="legend">.*?</ul>', page)
    ]
    assert legends == [
        {"c0": "kept", "c1": "deleted", "c2": "sent"},
        {"c0": "kept", "c2": "sent"},
        {"c1": "deleted", "c2": "sent"},
    ]
    assert "queue:deleted" not in "".join(re.findall(r"<svg.*?</svg>", page))
    assert "USD, of 0 documents and 1 open month<" in page
    free = {**one, "lines": lines_of[2:], "total": "0.00"}
    page = bill_page(spark, {"invoices": [free], "unusual": []}, daily)
    assert page.count("No line of an invoice reaches the smallest amount.") == 2


def line(kind: str, amount: str, resource: str = "", count: int = 0) -> dict[str, Any]:
    figures = {"count": count, "bytes": count, "amount": amount}
    return {"resource": resource, "kind": kind, "correction": None, **figures}


def test_lines_of_no_resource_are_no_dear_resources_and_have_no_counts(
    spark: SparkSession,
) -> None:
    lines_of = [
        line("sent", "1.00", "queue:q", 7),
        line("kept", "0.10", "queue:q", 5),
        line("sent", "-9.00", "adjustment:A-1"),
        line("tax", "70.00"),
    ]
    one = {**invoice("2026-11", "USD", closed=False), "lines": lines_of, "total": "62.10"}
    daily = [used("2026-11-01", 5, 1.0, kind=kind) for kind in ("sent", "kept")]
    page = bill_page(spark, {"invoices": [one], "unusual": []}, daily)
    (drawing,) = re.findall(r"<svg[^>]*aria-label=.Charges of resources.*?</svg>", page, re.DOTALL)
    assert texts(drawing) == ["acme · queue:q", "1.10"]
    text = re.sub(r"<[^>]+>", "|", page)
    assert "||tax||||||||70.00|" in text
    assert "|queue:q||kept (byte hours)||||5||5||0.10|" in text


def test_days_without_use_are_on_the_axis(spark: SparkSession) -> None:
    daily = [used(day, 5, 1.0) for day in ("2026-09-01", "2026-11-01", "2026-11-08")]
    one = {**invoice("2026-11", "USD", closed=False), "lines": [], "total": "0.00"}
    page = bill_page(spark, {"invoices": [one], "unusual": []}, daily)
    (drawing,) = re.findall(r"<svg[^>]*aria-label=.charge by day.*?</svg>", page, re.DOTALL)
    days = [text for text in texts(drawing) if "-" in text]
    assert days == [
        "09-30", "10-04", "10-08", "10-12", "10-16", "10-20", "10-24", "10-28", "11-01", "11-05",
    ]  # fmt: skip
    assert drawing.count("<rect") == 2


def test_sums_are_of_all_accounts_and_stay_small(spark: SparkSession) -> None:
    sums, answers = Sums(), {}
    hour = {"hour": "2026-11-20T07:00:00.000Z", "resource": "queue:q", "kind": "sent"}
    for number in range(300):
        lines_of = [line("sent", f"{number}.00", f"queue:q{place}", 2) for place in range(3)]
        own = {**invoice("2026-10", "USD", closed=True), "lines": lines_of, "total": f"{number}"}
        answers[f"a{number:03}"] = {"invoices": [own], "unusual": [hour]}
        sums.add(f"a{number:03}", answers[f"a{number:03}"])
    sums.add_lines(lines_of_all(spark, answers))

    (total,) = sums.currencies.values()
    assert (sums.accounts, total.issued, total.open) == (300, 300, 0)
    assert total.amount == sum(range(300))
    assert total.counts["sent"] == 1_800
    assert [account for _, account in total.accounts][:2] == ["a299", "a298"]
    assert [name for name, _ in total.resources][2:4] == ["a299 · queue:q2", "a298 · queue:q0"]
    assert (len(total.accounts), len(total.resources)) == (12, 12)
    assert (len(sums.unusual), sums.unusual_more) == (UNUSUAL_SHOWN, 300 - UNUSUAL_SHOWN)
