"""A record is billed once, whatever exports show of it, in which order, and how often."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.bills import (
    MILLION,
    Item,
    card_with,
    documents,
    invoices,
    state,
    together,
    totals,
    use,
    whole,
    window,
)
from tests.spark.job_runs import Jobs, assert_refused, fingerprints, input_bytes, page_in, rows_in
from tests.spark.transforms.frames import ms

from synthetic_usage import Usage

NIGHTS = [use(f"n{day}", f"2026-11-{day:02} 05:00", MILLION) for day in range(1, 15)]


def until(day: int) -> list[Item]:
    """What was written before a day of November."""
    return NIGHTS[: day - 1]


@pytest.mark.long
def test_an_old_night_again_adds_nothing_and_publishes_nothing(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    ninth = whole(tmp_path, "2026-11-09 01:00", until(9))
    tenth = whole(tmp_path, "2026-11-10 01:00", until(10))
    for export in (ninth, tenth):
        assert jobs.bill(output, [export]).code == 0
    before = fingerprints(output)

    ended = jobs.bill(output, [ninth])

    assert (ended.code, "nothing new" in ended.message) == (0, True)
    assert fingerprints(output) == before
    assert totals(output) == [("2026-11", "3.60", None)]


@pytest.mark.long
def test_an_export_with_missing_records_is_refused_with_their_days(
    tmp_path: Path, jobs: Jobs
) -> None:
    output = tmp_path / "out"
    assert jobs.bill(output, [whole(tmp_path, "2026-11-10 01:00", until(10))]).code == 0
    before = fingerprints(output)
    empty = whole(tmp_path, "2026-11-11 01:00", [])
    restored = whole(tmp_path / "r", "2026-11-11 01:00", until(5))

    ended = jobs.bill(output, [empty])
    assert_refused(ended, "lacks 9 usage records of 2026-11-01 to 2026-11-09")
    ended = jobs.bill(output, [restored])
    assert "lacks 5 usage records of 2026-11-05 to 2026-11-09" in ended.message
    assert fingerprints(output) == before

    assert jobs.bill(output, [restored], "--accept-removed").code == 0
    assert totals(output) == [("2026-11", "3.60", None)]
    # It is accepted once: later exports lack them as well. What is new must not be missing.
    more = use("more", "2026-11-11 05:00", MILLION)
    later = whole(tmp_path, "2026-11-12 01:00", [*until(5), more])
    assert jobs.bill(output, [later]).code == 0
    assert totals(output) == [("2026-11", "4.00", None)]
    lacking = whole(tmp_path, "2026-11-13 01:00", until(5))
    assert "lacks 1 usage records of 2026-11-11" in jobs.bill(output, [lacking]).message


@pytest.mark.long
def test_another_table_is_refused_until_it_is_followed(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    assert jobs.bill(output, [whole(tmp_path, "2026-11-10 01:00", until(10))]).code == 0
    before = fingerprints(output)
    # Restored to the eighth; used since the tenth at noon.
    after = [*until(8), use("x", "2026-11-10 15:00", 5 * MILLION)]
    new = whole(tmp_path, "2026-11-11 01:00", after, table="Usage-restored")
    last = whole(tmp_path, "2026-11-10 12:00", until(11))

    ended = jobs.bill(output, [new])
    assert_refused(ended, "give --follow")
    ended = jobs.bill(output, [new], "--follow", "Usage-restored")
    assert_refused(ended, "the use of 2026-11-10 to 2026-11-11 would be")
    assert fingerprints(output) == before

    assert jobs.bill(output, [last, new], "--follow", "Usage-restored").code == 0
    assert totals(output) == [("2026-11", "6.00", None)]
    # From then on it needs no name, and the old one shows no time any more.
    night = whole(tmp_path, "2026-11-12 01:00", after, table="Usage-restored")
    assert jobs.bill(output, [night]).code == 0
    assert [table["until_ms"] is None for table in state(output)["tables"]] == [False, True]
    assert totals(output) == [("2026-11", "6.00", None)]


@pytest.mark.long
def test_a_window_alone_is_refused_in_an_empty_output(tmp_path: Path, jobs: Jobs) -> None:
    lone = window(tmp_path, "2026-11-09 01:00", "2026-11-10 01:00", [NIGHTS[8]])

    ended = jobs.bill(tmp_path / "out", [lone])

    assert_refused(ended, "without a whole export before it")
    assert jobs.bill(tmp_path / "out", [lone], "--accept-gaps").code == 0
    assert totals(tmp_path / "out") == [("2026-11", "0.40", None)]


@pytest.mark.long
def test_windows_with_a_gap_are_refused(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    assert jobs.bill(output, [whole(tmp_path, "2026-11-08 01:00", until(8))]).code == 0
    ninth = window(tmp_path, "2026-11-08 01:00", "2026-11-09 01:00", [NIGHTS[7]])
    tenth = window(tmp_path, "2026-11-09 01:00", "2026-11-10 01:00", [NIGHTS[8]])

    ended = jobs.bill(output, [tenth])

    assert_refused(ended, "from 2026-11-08T01:00")
    assert str(tenth) in ended.message
    assert jobs.bill(output, [tenth, ninth]).code == 0
    assert totals(output) == [("2026-11", "3.60", None)]


@pytest.mark.long
def test_late_work_of_ttl_bills_nothing_again(tmp_path: Path, jobs: Jobs) -> None:
    """Records of October, still there when their time to live was long over."""
    output = tmp_path / "out"
    october = use("o", "2026-10-31 20:00", 10 * MILLION)
    early = use("e", "2026-10-01 05:00", MILLION)
    first = whole(tmp_path, "2026-11-04 01:00", [early, october])
    assert jobs.bill(output, [first], "--accept-gaps").code == 0
    (issued,) = documents(output)
    assert issued["total"] == "4.40"

    second = whole(tmp_path, "2026-12-11 03:00", [october])
    third = window(tmp_path, "2026-12-11 03:00", "2026-12-12 03:00", [], removed=[october])
    years = whole(tmp_path, "2026-12-13 03:00", [early])
    for export in (second, third, years):
        assert jobs.bill(output, [export], "--accept-gaps").code == 0

    assert totals(output) == [("2026-10", "4.40", "INV-acme-000001")]
    assert documents(output) == [issued]


@pytest.mark.long
def test_the_same_key_with_another_content_is_set_aside(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    first = whole(tmp_path, "2026-11-10 01:00", [use("a", "2026-11-09 05:00", MILLION)])
    other = whole(tmp_path, "2026-11-11 01:00", [use("a", "2026-11-09 05:00", 3 * MILLION)])
    assert jobs.bill(output, [first]).code == 0

    for _ in range(2):
        ended = jobs.bill(output, [other])
        assert ended.code == 0
        assert totals(output) == [("2026-11", "0.40", None)]
        (row,) = rows_in(output, "quarantine").collect()
        assert row["reason"].startswith("conflict")
        assert json.loads(row["item"])["records"]["L"][0]["M"]["count"] == {"N": "3000000"}


def lacking(record: Item, **fields: object) -> Item:
    """A record whose entry has other fields; one that is None is left out."""
    entry = record["records"]["L"][0]["M"] | fields
    kept = {name: value for name, value in entry.items() if value is not None}
    return record | {"records": {"L": [{"M": kept}]}}


GOOD = use("x", "2026-11-19 05:00", 7)
ODD: dict[str, list[Item]] = {
    "minute is not near the time of its writing": [
        use("x", "1970-01-01 00:00", 1, written="2026-11-19 05:00"),
        use("x", "2026-11-18 03:00", 1, written="2026-11-19 05:01"),
        use("x", "2026-11-19 05:00", 1, written="2026-11-19 04:57"),
    ],
    "minute is too large": [lacking(GOOD, minute={"N": "9" * 18})],
    "kind is not known to this release": [lacking(GOOD, kind={"S": "peeked"})],
    "it was written after the export's time": [use("x", "2027-01-15 00:00", 1)],
    "account is missing or of another type": [lacking(GOOD, account=None)],
    "account is no account's name": [
        lacking(GOOD, account={"S": name}) for name in ("acme\n", "é" * 60, "1")
    ],
    "resource is missing or of another type": [lacking(GOOD, resource={"N": "1"})],
    "count is missing or of another type": [lacking(GOOD, count={"N": "1.5"})],
    "bytes is missing or of another type": [lacking(GOOD, bytes={"N": "1" * 20})],
    "attempts is missing or of another type": [lacking(GOOD, attempts={"N": "x"})],
    "a number is too large": [lacking(GOOD, count={"N": str(-(10**16))})],
    "records is missing or no list": [{**GOOD, "records": None}, {**GOOD, "records": {"N": "1"}}],
    "w and expires_at are no whole numbers": [GOOD | {"expires_at": {"N": "x"}}],
}


@pytest.mark.long
def test_odd_records_are_set_aside_and_others_are_billed(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    odd = [
        {name: value for name, value in item.items() if value is not None} | {"sk": {"S": f"x{n}"}}
        for n, item in enumerate(item for items in ODD.values() for item in items)
    ]
    good = [
        use(f"g{n}", "2026-11-19 05:00", MILLION, account=f"a{n}", attempts={"N": "0"})
        for n in range(3)
    ]
    near = use("near", "2026-11-20 01:02", MILLION, written="2026-11-20 01:00", account="a0")
    export = whole(tmp_path, "2026-11-20 01:00", [*good, near, *odd])

    for _ in range(2):
        ended = jobs.bill(output, [export])
        assert ended.code == 0
        assert totals(output, "a0") == [("2026-11", "0.80", None)]
        assert totals(output, "a2") == [("2026-11", "0.40", None)]
        rows = rows_in(output, "quarantine").collect()
        assert Counter(row["reason"] for row in rows) == {
            reason: len(items) for reason, items in ODD.items()
        }
        assert (
            f"{len(odd)} entries of usage are set aside as odd"
            in page_in(output, "billing").read_text()
        )


@pytest.mark.long
def test_an_odd_entry_is_set_aside_and_its_siblings_are_billed_until_it_is_known(
    tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    strange = use("b", "2026-11-19 05:00", 2 * MILLION, kind="peeked")
    both = together("r", use("a", "2026-11-19 05:00", MILLION), strange)
    alone = use("alone", "2026-11-19 05:00", 4 * MILLION, kind="peeked")
    export = whole(tmp_path, "2026-11-20 01:00", [both, alone])
    assert jobs.bill(output, [export]).code == 0
    assert totals(output) == [("2026-11", "0.40", None)]

    # A release that knows the kind.
    from cirrusmq_reports import rate_card
    from cirrusmq_reports.transforms import usage_entries

    monkeypatch.setattr(usage_entries, "KINDS", (*rate_card.KINDS, "peeked"))
    monkeypatch.setattr(rate_card, "KINDS", (*rate_card.KINDS, "peeked"))
    monkeypatch.setattr(rate_card, "OPERATIONS", (*rate_card.OPERATIONS, "peeked"))
    card = tmp_path / "card.yaml"
    text = (Path(__file__).parents[2] / "infra/rate_card.yaml").read_text()
    card.write_text(text.replace("sent: 0.40", "sent: 0.40\n      peeked: 1.00"))
    later = whole(tmp_path, "2026-11-21 01:00", [both, alone])
    for _ in range(2):
        assert jobs.bill(output, [later], card=card).code == 0
        assert totals(output) == [("2026-11", "6.40", None)]
    assert not [
        each
        for each in (output / "current/billing.json").read_text().splitlines()
        if '"quarantine"' in each
    ]


@pytest.mark.long
def test_a_record_of_use_long_before_is_billed_when_it_is_released(
    tmp_path: Path, jobs: Jobs
) -> None:
    """Of a closed month: in the allowance and the tier that its invoice left."""
    output = tmp_path / "out"
    card = card_with(
        tmp_path,
        end="    free_each_month:\n      sent: 10000000\n    tiers:\n      sent:\n"
        "        - above: 20000000\n          price: 0.20\n",
    )
    begin = use("b", "2026-10-01 05:00", 0)
    october = use("o", "2026-10-20 05:00", 15 * MILLION)
    late = use("l", "2026-10-20 06:00", 8 * MILLION, written="2026-11-05 00:00")
    first = whole(tmp_path, "2026-11-04 01:00", [begin, october])
    second = whole(tmp_path, "2026-11-06 01:00", [begin, october, late])
    for export in (first, second):
        assert jobs.bill(output, [export], card=card).code == 0
    assert totals(output) == [("2026-10", "2.00", "INV-acme-000001")]
    (row,) = rows_in(output, "quarantine").collect()
    record = bytes(row["record"]).hex()

    for _ in range(2):
        assert jobs.bill(output, [second], "--release", record, card=card).code == 0
        (_, pending) = invoices(output)
        # 5 million at 0.40, then 3 million at 0.20.
        assert (pending["total"], pending["lines"][0]["correction"]) == ("2.60", "2026-10")


@pytest.mark.long
def test_an_export_with_too_many_odd_items_is_refused(tmp_path: Path, jobs: Jobs) -> None:
    odd = [use(f"o{n}", "2026-11-19 05:00", 1, kind="peeked") for n in range(101)]
    good = [use(f"g{n}", "2026-11-19 05:00", 1) for n in range(9_000)]

    ended = jobs.bill(tmp_path / "out", [whole(tmp_path, "2026-11-20 01:00", [*odd, *good])])

    assert_refused(ended, "101 of 9,101 items are odd")
    assert (
        jobs.bill(
            tmp_path / "out", [whole(tmp_path / "b", "2026-11-20 01:00", [*odd[:100], *good])]
        ).code
        == 0
    )


@pytest.mark.long
def test_records_of_two_folders_are_two_although_their_resources_have_one_name(
    tmp_path: Path, jobs: Jobs
) -> None:
    output = tmp_path / "out"
    old = whole(tmp_path, "2026-11-10 01:00", [use("ab12", "2026-11-09 05:00", MILLION)])
    new = [use("cd34", "2026-11-10 05:00", 3 * MILLION)]
    other = whole(tmp_path, "2026-11-11 01:00", new, table="Usage-of-a-new-folder")
    assert jobs.bill(output, [old]).code == 0

    assert jobs.bill(output, [other]).code == 2
    followed = ["--follow", "Usage-of-a-new-folder", "--accept-gaps"]
    assert jobs.bill(output, [other], *followed).code == 0

    assert totals(output) == [("2026-11", "1.60", None)]
    (month,) = invoices(output)
    assert [line["count"] for line in month["lines"]] == [4 * MILLION]


@pytest.mark.long
def test_exports_are_read_once(tmp_path: Path, jobs: Jobs, spark: SparkSession) -> None:
    records = Usage(seed=2, records=12_000, at_ms=ms("2026-11-20 08:00"), days=15)
    export = records.export(tmp_path)
    night = window(tmp_path, "2026-11-20 08:00", "2026-11-21 08:00", [])
    size = sum(path.stat().st_size for path in (export / "data").iterdir())
    before = input_bytes(spark)

    assert jobs.bill(tmp_path / "out", [export, night]).code == 0

    read = input_bytes(spark) - before
    assert read < 1.9 * size, (read, size)

    # The next night names the week's whole export once more, which is not read again.
    last = window(
        tmp_path, "2026-11-21 08:00", "2026-11-22 08:00", [use("n", "2026-11-21 10:00", 5)]
    )
    before = input_bytes(spark)
    assert jobs.bill(tmp_path / "out", [export, night, last]).code == 0
    assert input_bytes(spark) - before < read - 0.9 * size
    assert state(tmp_path / "out")["to"] == "2026-11-22T08:00:00.000Z"
