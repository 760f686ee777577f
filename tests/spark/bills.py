"""Usage records, exports of them and rate cards for tests of bills, and what a bill says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.spark.job_runs import DAY_MS, RATE_CARD, summaries_in
from tests.spark.transforms.frames import ms

from export_writer import ExportWriter

MILLION = 1_000_000
Item = dict[str, Any]
TIERS = (
    "    free_each_month:\n      sent: 8000000\n    tiers:\n      sent:\n"
    "        - above: 12000000\n          price: 0.20\n"
)
"""The end of a card with an allowance and a tier."""


def use(
    key: str,
    used: str,
    count: int,
    *,
    written: str | None = None,
    kind: str = "sent",
    account: str = "acme",
    resource: str = "queue:q",
    **fields: Any,
) -> Item:
    """A usage record of one entry, as a meter before this release wrote it."""
    entry = {
        "account": {"S": account},
        "resource": {"S": resource},
        "kind": {"S": kind},
        "minute": {"N": str(ms(used) // 60_000)},
        "count": {"N": str(count)},
        "bytes": {"N": "0"},
    }
    kept = {name: value for name, value in (entry | fields).items() if value is not None}
    expires_s = (ms(written or used) + 40 * DAY_MS) // 1000
    return {
        "pk": {"S": "U#0"},
        "sk": {"S": key},
        "records": {"L": [{"M": kept}]},
        "expires_at": {"N": str(expires_s)},
    }


def together(key: str, *records: Item) -> Item:
    """One record with the entries of several."""
    entries = [entry for each in records for entry in each["records"]["L"]]
    return records[0] | {"sk": {"S": key}, "records": {"L": entries}}


def whole(root: Path, at: str, items: Iterable[Item], table: str = "Usage") -> Path:
    """A whole export."""
    writer = ExportWriter(root=root, table=table, at_ms=ms(at))
    writer.write_file([json.dumps({"Item": item}) for item in items])
    return writer.finish()


def window(
    root: Path, since: str, at: str, items: Iterable[Item], removed: Iterable[Item] = ()
) -> Path:
    """An export of what was written, and what was removed, between two times."""
    writer = ExportWriter(root=root, table="Usage", at_ms=ms(at), since_ms=ms(since))
    lines = [
        {
            "Metadata": {"WriteTimestampMicros": {"N": str((ms(at) - 1) * 1000)}},
            "Keys": {"pk": item["pk"], "sk": item["sk"]},
            image: item,
        }
        for image, changed in (("NewImage", items), ("OldImage", removed))
        for item in changed
    ]
    writer.write_file([*map(json.dumps, lines)])
    return writer.finish()


def card_with(folder: Path, *more: tuple[str, str, str], begin: str = "", end: str = "") -> Path:
    """The shipped card, and its prices again: from a day on, with another price and currency."""
    text = RATE_CARD.read_text()
    entry = text[text.index("  - from") :]
    for day, price, currency in more:
        dated = entry.replace("2020-01-01", day).replace("sent: 0.40", f"sent: {price}")
        text += dated.replace("USD", currency)
    path = folder / f"card-{len(list(folder.glob('card-*')))}.yaml"
    path.write_text(begin + text + end)
    return path


def invoices(output: Path, account: str = "acme") -> list[dict[str, Any]]:
    """The invoices in an account's answer."""
    found = summaries_in(output, "billing").get(account, {"invoices": []})
    return list(found["invoices"])


def totals(output: Path, account: str = "acme") -> list[tuple[str, str, str | None]]:
    """Month, total and number of each of them."""
    return [(each["month"], each["total"], each["number"]) for each in invoices(output, account)]


def documents(output: Path, account: str = "acme") -> list[dict[str, Any]]:
    """An account's documents, as they were copied to their names."""
    found = sorted((output / "documents" / account).glob("*.json"))
    return [json.loads(path.read_text()) for path in found]


def state(output: Path) -> dict[str, Any]:
    """What the pointer says."""
    line: dict[str, Any] = json.loads((output / "current/billing.json").read_text().split("\n")[0])
    return line
