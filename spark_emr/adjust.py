"""Writes an adjustment of a bill into a file for the billing job. See `--help`."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from cirrusmq_reports.adjustments import adjustment_of, id_of
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.rate_card import read_rate_card
from cirrusmq_reports.times import month_ms, next_month

_SHIPPED = Path(__file__).parents[1] / "infra/rate_card.yaml"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the adjustment. Returns the exit code."""
    given = {name: value for name, value in vars(_parser().parse_args(arguments)).items() if value}
    folder, card = Path(given.pop("folder")), Path(given.pop("rate_card"))
    try:
        if "amount" in given and "currency" not in given:
            given["currency"] = _currency(card, given["month"])
        entry = {"id": id_of(given), **given}
        adjustment = adjustment_of("adjust", entry)
    except (BadInput, OSError) as error:
        return _refuse(str(error))
    path = folder / f"{adjustment.id}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x") as file:
            file.write(f"{json.dumps(entry)}\n")
    except FileExistsError:
        return _refuse(f"{path}: it is there already; --id makes another one")
    print(path)
    return 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="adjust.py",
        description="Write what is to be added to a bill; the billing job takes it by "
        "--adjustments FOLDER/",
    )
    parser.add_argument("--account", required=True)
    parser.add_argument("--month", required=True, help="of the use that it is about: 2026-11")
    parser.add_argument("--kind", required=True, help="of use; of an amount: credit, or any name")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--quantity",
        help="messages, or byte hours kept: priced as the month's last use; -5 takes 5 off",
    )
    what.add_argument("--amount", help="an exact decimal; -1.50 takes it off")
    parser.add_argument("--currency", help="of the amount; else the card's in that month")
    parser.add_argument("--reason", required=True, help="what the document says")
    parser.add_argument("--id", help="counts once; else made of the values")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--rate-card", default=_SHIPPED)
    return parser


def _currency(card: Path, month: str) -> str:
    try:
        end_ms = month_ms(next_month(month))
    except ValueError:
        raise BadInput(f"month: {month} is not a month such as 2026-11") from None
    in_force = read_rate_card(str(card), card.read_text()).in_force(end_ms)
    if not in_force:
        raise BadInput(f"{card}: it has no prices for {month}: give --currency")
    return in_force[-1].currency


def _refuse(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
