"""Gaps in what exports show, and the months that a run closes."""

from __future__ import annotations

import pytest
from tests.spark.transforms.frames import ms

from cirrusmq_reports.billing_plan import Gap, Plan, State, plan_bill
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.manifests import Export


def export(at: str, since: str | None = None) -> Export:
    since_ms = None if since is None else ms(since)
    return Export(folder=f"e/{at[:10]}", table="Usage", at_ms=ms(at), since_ms=since_ms, files=())


def planned(before: State, *exports: Export, accept_gaps: bool = False) -> Plan:
    return plan_bill(exports, before, 3, accept_gaps=accept_gaps)


def after(*exports: Export, **before: object) -> State:
    return planned(State(**before), *exports, accept_gaps=True).after  # type: ignore[arg-type]


def test_reports_fifty_days_apart_have_a_gap_with_its_days() -> None:
    before = State(to_ms=ms("2026-10-01 08:00"))
    with pytest.raises(BadInput, match="e/2026-11-20: no export shows the changes") as refused:
        planned(before, export("2026-11-20 08:00"))
    assert "from 2026-10-01T08:00:00.000Z to 2026-10-11T08:00:00.000Z" in str(refused.value)
    assert "the use of 2026-10-01 to 2026-10-11 would be missing" in str(refused.value)
    assert "--accept-gaps" in str(refused.value)
    gap = Gap(ms("2026-10-01 08:00"), ms("2026-10-11 08:00"))
    assert planned(before, export("2026-11-20 08:00"), accept_gaps=True).after.gaps == [gap]


def test_a_night_after_the_last_needs_no_more_than_its_window() -> None:
    before = State(to_ms=ms("2026-11-20 01:30"))
    for window in (
        export("2026-11-21 01:30", "2026-11-20 01:30"),
        export("2026-11-21 01:30", "2026-11-19 00:00"),
        export("2026-11-21 01:30"),
        export("2026-11-10 01:30"),
    ):
        assert planned(before, window).after.gaps == []
    with pytest.raises(BadInput, match="the use of 2026-11-20 would be missing"):
        planned(before, export("2026-11-21 01:30", "2026-11-20 01:31"))


def test_a_gap_is_known_until_an_export_shows_it() -> None:
    gap = Gap(ms("2026-10-01 00:00"), ms("2026-10-05 00:00"))
    known = {"to_ms": ms("2026-11-20 00:00"), "gaps": [gap]}
    assert after(export("2026-11-20 02:00"), **known).gaps == [gap]
    inside = export("2026-10-04 00:00", "2026-10-02 00:00")
    assert after(inside, **known).gaps == [
        Gap(gap.from_ms, ms("2026-10-02 00:00")),
        Gap(ms("2026-10-04 00:00"), gap.to_ms),
    ]
    assert after(export("2026-10-06 00:00"), **known).gaps == []


@pytest.mark.parametrize(
    ("at", "closed"),
    [
        ("2026-11-03 23:59", "2026-09"),
        ("2026-11-04 00:00", "2026-10"),
        ("2026-12-03 23:59", "2026-10"),
        ("2027-01-04 00:00", "2026-12"),
    ],
)
def test_a_month_closes_three_days_after_its_end(at: str, closed: str) -> None:
    assert after(export(at)).closed_through == closed
    assert after(export(at), closed_through="2027-05").closed_through == "2027-05"
    assert State.of(after(export(at)).as_dict()).closed_through == closed


def test_what_comes_late_goes_to_the_first_month_that_is_not_closed() -> None:
    before = State(to_ms=ms("2026-12-02 00:00"), closed_through="2026-10")
    assert planned(before, export("2026-12-03 00:00")).open_month == "2026-11"
    assert planned(State(), export("2026-12-03 00:00")).open_month == "2026-12"


def test_days_whose_beginning_no_export_shows_stay_where_they_are_billed() -> None:
    before = State(to_ms=ms("2026-11-19 08:00"))
    reach = planned(before, export("2026-11-20 08:00")).reach({"2026-10-11", "2026-11-20"}, 0)
    assert (reach.first_day, reach.last_day) == ("2026-10-12", "2026-11-20")
    assert reach.kept_days == ["2026-10-11"]
    further = planned(before, export("2026-11-20 08:00")).reach(set(), ms("2026-11-20 09:00"))
    assert further.kept_days == ["2026-11-20"]
