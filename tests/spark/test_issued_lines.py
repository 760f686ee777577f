"""A document's lines are written once, by the run that issues it, and read where they are shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.spark.bills import MILLION, invoices, use, whole, window
from tests.spark.job_runs import Jobs, answer_of, fingerprints, run_of
from tests.spark.test_documents import NOVEMBER, OCTOBER

from cirrusmq_reports import publication

GONE = "umbra"
"""An account that used something in October alone."""


def close_october(tmp_path: Path, jobs: Jobs) -> tuple[Path, Path]:
    """The output, and the folder of the run that closed October."""
    output = tmp_path / "out"
    used = [*OCTOBER, use("g", "2026-10-21 05:00", 5 * MILLION, account=GONE)]
    more = [use("o2", "2026-10-22 05:00", MILLION, resource="queue:r")]
    assert jobs.bill(output, [whole(tmp_path, "2026-11-03 23:00", [*used, *more])]).code == 0
    night = window(tmp_path, "2026-11-03 23:00", "2026-11-04 01:00", [])
    assert jobs.bill(output, [night]).code == 0
    return output, run_of(output, "billing")


def stored(output: Path, name: str) -> list[dict[str, Any]]:
    """The invoices in an account's file of the newest run."""
    found = run_of(output, "billing") / "accounts" / name
    return list(json.loads(found.read_text())["invoices"])


def next_night(tmp_path: Path, output: Path, jobs: Jobs) -> None:
    night = window(tmp_path, "2026-11-04 01:00", "2026-11-06 01:00", NOVEMBER)
    assert jobs.bill(output, [night]).code == 0


@pytest.mark.long
def test_a_night_writes_the_lines_of_open_months_alone(tmp_path: Path, jobs: Jobs) -> None:
    output, closing = close_october(tmp_path, jobs)
    issued = fingerprints(closing)
    assert {path.name for path in (closing / "lines").iterdir()} == {"acme.json", "umbra.json"}

    next_night(tmp_path, output, jobs)

    assert fingerprints(closing) == issued
    assert not (run_of(output, "billing") / "lines").exists()
    october, november = stored(output, "acme.json")
    assert (october["number"], october["total"]) == ("INV-acme-000001", "4.40")
    assert (october["line_count"], october["issued_in"]) == (2, closing.name)
    assert "lines" not in october
    assert [line["resource"] for line in november["lines"]] == ["queue:q"]
    assert [each["number"] for each in stored(output, "umbra.json")] == [f"INV-{GONE}-000001"]
    # The service puts them together.
    shown = invoices(output)
    assert [[line["resource"] for line in each["lines"]] for each in shown] == [
        ["queue:q", "queue:r"],
        ["queue:q"],
    ]
    assert [line["amount"] for line in shown[0]["lines"]] == ["4.00", "0.40"]
    assert not {"line_count", "issued_in"} & {name for each in shown for name in each}
    (of_gone,) = answer_of(output, GONE)["invoices"]
    assert [line["amount"] for line in of_gone["lines"]] == ["2.00"]


@pytest.mark.long
@pytest.mark.parametrize("left", ["nothing", "a part of a file"])
def test_a_runs_unwritten_lines_are_written_by_the_next_one(
    tmp_path: Path, jobs: Jobs, left: str
) -> None:
    """A release before had none; a job of this one may have ended between two files."""
    output, closing = close_october(tmp_path, jobs)
    expected, shown = fingerprints(closing), invoices(output)
    (closing / "lines.written").unlink()
    if left == "nothing":
        shutil.rmtree(closing / "lines")
    else:
        (closing / "lines/acme.json").write_text('{"INV-acme-00')

    next_night(tmp_path, output, jobs)

    assert fingerprints(closing) == expected
    assert invoices(output)[:1] == shown


@pytest.mark.long
def test_a_run_with_kept_documents_keeps_its_folder(
    tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nights later its lines are still read."""
    output, closing = close_october(tmp_path, jobs)
    monkeypatch.setattr(publication, "DAY_MS", 0)  # else runs of the last day stay
    unnamed = closing.parent / "20200101T000000000Z-aa"
    unnamed.mkdir()

    next_night(tmp_path, output, jobs)
    later = window(tmp_path, "2026-11-06 01:00", "2026-11-07 01:00", [])
    assert jobs.bill(output, [later]).code == 0

    assert not unnamed.exists()
    assert run_of(output, "billing") != closing
    assert len(invoices(output)[0]["lines"]) == 2
