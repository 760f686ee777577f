"""What a person does to bills: adjustments by quantity and amount, proposals, copies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from tests.spark.bills import (
    MILLION,
    TIERS,
    card_with,
    documents,
    invoices,
    totals,
    use,
    whole,
    window,
)
from tests.spark.job_runs import Jobs, fingerprints
from typer.testing import CliRunner

import adjust
import publish
from cirrusmq_local.commands.cli import make_app

BEGIN = use("begin", "2026-10-02 05:00", 0)
OCTOBER = [BEGIN, use("o", "2026-10-20 05:00", 10 * MILLION)]


def given(folder: Path, *values: str) -> int:
    common = ["--account=acme", "--month=2026-10", "--reason=counted twice", f"--folder={folder}"]
    return adjust.main([*common, *values])


def amounts(lines: Sequence[dict[str, str]]) -> list[tuple[object, ...]]:
    names = ("resource", "kind", "tier", "quantity", "charge", "reason")
    return [tuple(line[name] for name in names) for line in lines]


@pytest.mark.long
def test_a_quantity_is_priced_behind_the_months_use(tmp_path: Path, jobs: Jobs) -> None:
    """And what comes later is behind the quantity that was taken off::

    million sent   0 ───── free ───── 8 ── 0.40 ── 12 ── 0.20 ──
    October                                10
    late, 5                                  ───────> 15
    given, -4                              11 <──────
    later, 2                               ──────> 13
    """
    output, folder = tmp_path / "out", tmp_path / "adjustments"
    card = card_with(tmp_path, end=TIERS)
    options = ("--adjustments", f"{folder}/")
    first = whole(tmp_path, "2026-11-04 01:00", OCTOBER)
    # The folder is not there yet.
    assert jobs.bill(output, [first], *options, card=card).code == 0
    assert totals(output) == [("2026-10", "0.80", "INV-acme-000001")]

    assert given(folder, "--kind=sent", "--quantity=-4000000", "--id=A-1") == 0
    assert given(folder, "--kind=sent", "--quantity=-4000000", "--id=A-1") == 2
    assert given(folder, "--kind=credit", "--amount=-0.10", "--id=A-2") == 0
    late = use("late", "2026-10-21 05:00", 5 * MILLION)
    november = use("n", "2026-11-05 05:00", 20 * MILLION)
    second = window(tmp_path, "2026-11-04 01:00", "2026-12-04 01:00", [late, november])
    assert jobs.bill(output, [second], *options, card=card).code == 0

    invoice, note = documents(output)[1:]
    assert amounts([line for line in invoice["lines"] if line["reason"]]) == [
        ("adjustment:A-1", "sent", 2, -MILLION, "-0.4", "counted twice"),
        ("adjustment:A-1", "sent", 3, -3 * MILLION, "-0.6", "counted twice"),
        ("adjustment:A-2", "credit", None, None, "-0.1", "counted twice"),
    ]
    assert (invoice["total"], note["total"]) == ("2.10", "1.40")
    assert invoice["type"] == "invoice"
    assert (note["type"], note["refers_to"], note["period"]["month"]) == (
        *("debit_note", "INV-acme-000001", "2026-10"),
    )
    for line in invoice["lines"]:
        if line["quantity"] is not None:
            product = Decimal(line["list_unit_price"]) * line["quantity"]
            assert product == Decimal(line["charge"])
    # Counts are use alone.
    (shown,) = [each for each in invoices(output) if each["number"] == invoice["number"]]
    assert sum(line["count"] for line in shown["lines"]) == 20 * MILLION

    later = use("later", "2026-10-22 05:00", 2 * MILLION)
    third = window(tmp_path, "2026-12-04 01:00", "2026-12-06 01:00", [later])
    assert jobs.bill(output, [third], *options, card=card).code == 0
    assert totals(output)[-1] == ("2026-12", "0.60", None)


def test_an_adjustment_has_the_cards_currency_and_names_its_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert given(tmp_path, "--kind=credit", "--amount=-1.50") == 0
    (path,) = tmp_path.glob("*.jsonl")
    entry = json.loads(path.read_text())
    assert (entry["currency"], entry["amount"], path.stem) == ("USD", "-1.50", entry["id"])
    capsys.readouterr()
    assert given(tmp_path, "--kind=credit", "--amount=1e3") == 2
    assert "amount: 1e3 is not a decimal number" in capsys.readouterr().err
    assert given(tmp_path, "--kind=sent", "--quantity=1", "--id=../x") == 2
    assert "id: ../x is not" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.long
def test_a_proposal_is_published_by_hand(
    tmp_path: Path, jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    first = whole(tmp_path, "2026-11-04 01:00", OCTOBER)
    for name in ("one", "two"):
        assert jobs.bill(output, [first], "--propose", name).code == 0
    assert not (output / "current/billing.json").exists()
    assert publish.main([f"--output={output}", "--proposal=three"]) == 2

    assert publish.main([f"--output={output}", "--proposal=one"]) == 0
    assert totals(output) == [("2026-10", "4.00", "INV-acme-000001")]
    issued = fingerprints(output / "documents")
    assert len(issued) == 3
    # Again it changes nothing; the other one began before it.
    assert publish.main([f"--output={output}", "--proposal=one"]) == 0
    assert publish.main([f"--output={output}", "--proposal=two"]) == 3
    assert fingerprints(output / "documents") == issued

    # A copy that is missing, of a run that stopped before it was made; and one that was edited.
    for mark in output.rglob("documents.copied"):
        mark.unlink()
    (output / "documents/acme/INV-acme-000001.html").unlink()
    assert publish.main([f"--output={output}"]) == 0
    assert fingerprints(output / "documents") == issued
    for mark in output.rglob("documents.copied"):
        mark.unlink()
    (output / "documents/acme/INV-acme-000001.csv").write_text("edited")
    assert publish.main([f"--output={output}"]) == 1
    assert "not the document that was issued" in capsys.readouterr().err


def test_the_commands_write_into_the_next_bills_folder(tmp_path: Path) -> None:
    values = ["--account=acme", "--month=2026-10", "--kind=credit", "--amount=-1.50", "--reason=x"]
    place = ["--data", str(tmp_path)]

    assert CliRunner().invoke(make_app(), ["report", "adjust", *values, *place]).exit_code == 0
    assert CliRunner().invoke(make_app(), ["report", "adjust", *values, *place]).exit_code == 2
    assert len([*(tmp_path / "reports/adjustments").glob("A-*.jsonl")]) == 1
    assert CliRunner().invoke(make_app(), ["report", "publish", *place]).exit_code == 2
