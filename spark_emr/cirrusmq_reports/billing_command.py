"""`billing_job.py`: from exports of the Usage table to a ledger, charges and documents."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence

from cirrusmq_reports.adjustments import Adjustment, read_adjustments, without_repetitions
from cirrusmq_reports.billing_plan import plan_bill
from cirrusmq_reports.billing_run import Bill, state_of
from cirrusmq_reports.billing_tables import BILL_TABLES
from cirrusmq_reports.command import (
    OUTDATED_AGAIN,
    TRIES,
    Session,
    add_common_arguments,
    add_directory_argument,
    check_exports,
    exit_code,
    list_exports,
    name_argument,
    open_exports,
    open_outputs,
    place_argument,
)
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.files import open_files
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.publication import Outdated
from cirrusmq_reports.rate_card import RateCard, read_rate_card
from cirrusmq_reports.session import partitioned_for

REPORT = "billing"
CLOSE_DAYS = 3
LEDGER_MONTHS = 13
_LEDGER_MONTHS_LEAST, _LEDGER_MONTHS_MOST = 4, 120
_CLOSE_DAYS_LEAST, _CLOSE_DAYS_MOST = 2, 27


def run(arguments: Sequence[str], session: Session) -> int:
    """Runs the job. Returns its exit code."""
    options = _parser().parse_args(arguments)
    return exit_code(lambda: _report(options, session))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="billing_job.py", description="Bill what the usage records of exports show."
    )
    add_common_arguments(parser, "Usage")
    parser.add_argument(
        "--rate-card", type=place_argument, required=True, metavar="FILE", help="prices, as YAML"
    )
    add_directory_argument(
        parser, "a whole export of Directory: the labels of resources become tags of lines"
    )
    parser.add_argument(
        "--region", type=name_argument, help="the cloud's, of the views for analysts"
    )
    parser.add_argument(
        "--close-days",
        type=_close_days,
        default=CLOSE_DAYS,
        metavar="DAYS",
        help="an invoice is issued so many days after its month; what comes later is on a note",
    )
    parser.add_argument(
        "--ledger-months",
        type=_ledger_months,
        default=LEDGER_MONTHS,
        metavar="MONTHS",
        help="single usage records are kept so many months; usage by the hour and documents stay",
    )
    parser.add_argument(
        "--follow",
        action="append",
        default=[],
        metavar="TABLE",
        help="bill another table from now on, by its id: after a restore",
    )
    parser.add_argument(
        "--release",
        action="append",
        type=_record,
        default=[],
        metavar="RECORD",
        help="bill a record that is set aside for the time of its use, by its 32 digits",
    )
    parser.add_argument(
        "--adjustments",
        action="append",
        type=adjustments_argument,
        default=[],
        metavar="FILE",
        help="what to add to bills, one in JSON a line; each id counts once; a name that ends in / "
        "is a folder of such files, which may be missing",
    )
    parser.add_argument(
        "--accept-gaps",
        action="store_true",
        help="bill also where no export shows the use of some days, and say so in the report",
    )
    parser.add_argument(
        "--accept-removed",
        action="store_true",
        help="go on with a whole export that lacks records, and keep them billed",
    )
    return parser


def _record(text: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{32}", text):
        raise ArgumentTypeError(f"{text} is not 32 hexadecimal digits")
    return text.lower()


def _close_days(text: str) -> int:
    return _whole(text, "days", _CLOSE_DAYS_LEAST, _CLOSE_DAYS_MOST)


def _ledger_months(text: str) -> int:
    # With fewer months, records that an export of today can show would be left out.
    return _whole(text, "months", _LEDGER_MONTHS_LEAST, _LEDGER_MONTHS_MOST)


def _whole(text: str, unit: str, least: int, limit: int) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= limit:
        raise ArgumentTypeError(f"{text} is not a number of {unit} from {least} to {limit}")
    return int(text)


def _report(options: Namespace, session: Session) -> None:
    card = _read_card(options.rate_card, session)
    adjustments = _read_adjustments(options.adjustments, session)
    exports = list_exports(options.exports, session)
    directories = open_exports(options.directories, session)
    for each in directories:
        if not each.full:
            raise BadInput(f"{each.folder}: a window of changes: labels need a whole export")
    looked_at: dict[str, Export] = {}
    for _ in range(TRIES):
        with open_outputs(options.output, session, REPORT, *BILL_TABLES) as outputs:
            before = state_of(outputs.published, exports)
            gaps = options.accept_gaps
            plan = plan_bill(exports, before, options.follow, accept_gaps=gaps)
            unread = before.unread(exports)
            new = [each for each in unread if each.folder not in looked_at]
            looked_at |= {each.folder: each for each in check_exports(new, session)}
            unread = [looked_at[each.folder] for each in unread]
            bill = Bill(session, outputs, card, before, options)
            try:
                with partitioned_for(session(), sum(export.size for export in unread)):
                    bill.make(plan, exports, unread, adjustments, directories)
            except Outdated:
                outputs.discard()
                print(OUTDATED_AGAIN, file=sys.stderr)
                continue
            return
    raise BadInput(f"{options.output}: other runs were published {TRIES} times meanwhile")


def _read_card(path: str, session: Session) -> RateCard:
    return read_rate_card(path, _read_text(path, session, "rate card"))


def _read_adjustments(given: Sequence[str], session: Session) -> list[Adjustment]:
    found: list[Adjustment] = []
    for place in given:
        paths = [place]
        if place.endswith("/"):
            names = open_files(place, session).names(place)
            paths = [f"{place}{name}" for name in names if name.endswith(".jsonl")]
        for path in paths:
            found += read_adjustments(path, _read_text(path, session, "file of adjustments"))
    return without_repetitions(found, " and ".join(given))


def adjustments_argument(text: str) -> str:
    """Returns a file, or a folder, whose name ends in a slash."""
    return place_argument(text) + ("/" if text.endswith("/") and "://" not in text else "")


def _read_text(path: str, session: Session, what: str) -> str:
    try:
        return open_files(path, session).read(path).decode()
    except FileNotFoundError:
        raise BadInput(f"{path}: missing") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not a {what}: it is not text in UTF-8") from None
