"""Labels together, and who has most: of summaries, without Spark."""

from __future__ import annotations

from typing import Any

from cirrusmq_reports.backlog_groups import MAX_TALKERS, backlog_groups
from cirrusmq_reports.figures import AGES, COUNTS, REASON_COLUMNS


def resource(name: str, active: int = 0, **more: Any) -> dict[str, Any]:
    zero: dict[str, Any] = dict.fromkeys(COUNTS, 0)
    figures: dict[str, Any] = {"growth_per_hour": None, "oldest_age_seconds": None, "labels": {}}
    return {"name": name, "kind": "queue", **zero, **figures, "active": active, **more}


def label(value: str, active: int = 0, **more: Any) -> dict[str, Any]:
    zero: dict[str, Any] = dict.fromkeys((*COUNTS, *REASON_COLUMNS), 0)
    row = {"account": "acme", "label": "team", "value": value, "resources": 1}
    return {**row, **zero, **dict.fromkeys(AGES), "active": active, **more}


def groups(resources: list[dict[str, Any]], *labels: dict[str, Any]) -> dict[str, Any]:
    return backlog_groups({"acme": {"resources": resources}}, labels)["acme"]


def test_a_label_grows_as_its_resources_do_and_drains_at_their_rate() -> None:
    team: dict[str, Any] = {"labels": {"team": "search", "stage": "live"}}
    made = groups(
        [
            resource("one", **team, growth_per_hour=-30.0),
            resource("two", **team, growth_per_hour=10.0),
            resource("new", **team),
            resource("other", labels={"team": "payments"}, growth_per_hour=5.0),
        ],
        label("search", 50),
        label("payments", 50),
        label("idle"),
    )
    assert {
        row["value"]: (row["growth_per_hour"], row["hours_to_drain"]) for row in made["labels"]
    } == {
        "search": (-20.0, 2.5),
        "payments": (5.0, None),
        "idle": (None, 0.0),
    }


def test_a_label_has_the_reasons_of_its_dead_letters() -> None:
    (row,) = groups([], label("search", dead=3, dead_max_age=2, dead_other=1))["labels"]
    assert row["dead_by_reason"] == {"max_age": 2, "other": 1}


def test_the_largest_are_listed_by_each_figure() -> None:
    made = groups(
        [
            resource("large", 90, growth_per_hour=-1.0, oldest_age_seconds=5),
            resource("growing", 7, inactive=1, growth_per_hour=4.5, oldest_age_seconds=5),
            resource("old", 8, oldest_age_seconds=900),
            resource("idle"),
        ],
        label("search", 3, dead=2),
    )
    listed = {
        name: [(each["name"], each[name]) for each in lists["resources"]]
        for name, lists in made["top"].items()
    }
    assert listed == {
        "messages": [("large", 90), ("growing", 8), ("old", 8)],
        "growth_per_hour": [("growing", 4.5)],
        "oldest_age_seconds": [("old", 900), ("growing", 5), ("large", 5)],
        "dead": [],
    }
    assert made["top"]["dead"]["labels"] == [{"label": "team", "value": "search", "dead": 2}]


def test_no_more_than_ten_are_listed() -> None:
    made = groups([resource(f"q{number:02d}", 1) for number in range(MAX_TALKERS + 5)])
    names = [each["name"] for each in made["top"]["messages"]["resources"]]
    assert names == [f"q{number:02d}" for number in range(MAX_TALKERS)]


def test_an_account_without_anything_has_empty_lists() -> None:
    made = groups([])
    assert made["labels"] == []
    assert all(not any(lists.values()) for lists in made["top"].values())
