"""Makes usage tables that look like real ones, from a seed. Not shipped with the jobs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from export_writer import ExportWriter

ACCOUNTS = ("acme", "globex", "initech", "umbrella", "hooli")
KINDS_OF_QUEUES = ("sent", "received", "deleted", "expired", "dead_lettered", "rewound")
KINDS_OF_TOPICS = ("published", "delivered", "dropped")
ITEMS_IN_A_FILE = 50_000
_USAGE_LIVES_SECONDS = 40 * 86_400
_MINUTE_MS = 60_000


@dataclass(frozen=True)
class Usage:
    """A usage table: records of the meter and the hourly gauges in the days before `at_ms`."""

    seed: int
    records: int
    at_ms: int
    days: int = 5
    resources: int = 30
    entries_most: int = 4
    items_in_a_file: int = ITEMS_IN_A_FILE

    def export(self, root: Path) -> Path:
        """Writes the full export at `at_ms` under `root`. Returns its folder."""
        writer = ExportWriter(root=root, table="Usage", at_ms=self.at_ms)
        files = max(1, -(-self.records // self.items_in_a_file))
        items = self.items()
        for file in range(files):
            count = min(self.items_in_a_file, self.records - file * self.items_in_a_file)
            writer.write_file([f'{{"Item":{next(items)}}}' for _ in range(count)])
        return writer.finish()

    def items(self) -> Iterator[str]:
        """Yields all items as DynamoDB JSON."""
        return (item for item, _ in self.written())

    def written(self) -> Iterator[tuple[str, int]]:
        """Yields the items, each with the time of its write."""
        randomness = random.Random(f"{self.seed}/usage")
        for number in range(self.records):
            written_ms = self.at_ms - randomness.randrange(self.days * 1440) * _MINUTE_MS
            expires = written_ms // 1000 + _USAGE_LIVES_SECONDS
            draw = randomness.random()
            if draw < 0.01:
                # Counters are in the same table.
                key = f'"pk":{{"S":"C#{number % 16}"}},"sk":{{"S":"q{number}"}}'
                yield f'{{{key},"messages":{{"N":"5"}},"bytes":{{"N":"-3"}}}}', written_ms
                continue
            entries, sort_key = self._entries(number, written_ms, randomness, gauge=draw < 0.1)
            yield (
                f'{{"pk":{{"S":"U#{number % 8}"}},"sk":{{"S":"{sort_key}"}},'
                f'"records":{{"L":[{",".join(entries)}]}},"expires_at":{{"N":"{expires}"}}}}',
                written_ms,
            )

    def _entries(
        self, number: int, written_ms: int, randomness: random.Random, *, gauge: bool
    ) -> tuple[list[str], str]:
        minute = written_ms // _MINUTE_MS
        if gauge:
            place = randomness.randrange(self.resources)
            hour = minute // 60
            kept, rewindable = randomness.randrange(10**6), randomness.randrange(10**6)
            size = randomness.randrange(10**11)
            entries = [
                _entry(place, "kept", hour * 60, kept, size),
                _entry(place, "rewindable", hour * 60, rewindable, 0),
            ]
            return entries, f"gauge#{number:012d}#{hour}"
        entries = []
        for _ in range(randomness.randint(1, self.entries_most)):
            place = randomness.randrange(self.resources)
            kinds = KINDS_OF_TOPICS if place % 3 == 2 else KINDS_OF_QUEUES
            # Counting is signed: a removal can be metered before what it removes.
            count = randomness.randrange(-3, 200)
            size = count * randomness.randrange(20, 5_000)
            kind = randomness.choice(kinds)
            entries.append(_entry(place, kind, minute - randomness.randrange(3), count, size))
        return entries, f"{randomness.getrandbits(64):016x}-{number}"


def change(item: str, written_ms: int, *, old: str | None = None) -> str:
    """Returns a record of an incremental export: `item` written then, over `old`."""
    key = item[1 : item.index('},"', item.index('"sk"')) + 1]
    images = f',"OldImage":{old}' if old else ""
    return (
        f'{{"Metadata":{{"WriteTimestampMicros":{{"N":"{written_ms * 1000}"}}}},'
        f'"Keys":{{{key}}}{images},"NewImage":{item}}}'
    )


def removal(item: str, removed_ms: int) -> str:
    """Returns a record of an incremental export: `item` removed then."""
    return change(item, removed_ms).replace('"NewImage"', '"OldImage"')


def _entry(place: int, kind: str, minute: int, count: int, size: int) -> str:
    account = ACCOUNTS[place % len(ACCOUNTS)]
    resource = {0: f"queue:orders-{place}", 1: f"queue:orders-{place}/audit"}.get(
        place % 3, f"topic:news-{place}" if kind == "published" else f"subscription:news/{place}"
    )
    attempts = f',"attempts":{{"N":"{abs(count) + 1}"}}' if kind == "delivered" else ""
    return (
        f'{{"M":{{"account":{{"S":"{account}"}},"resource":{{"S":"{resource}"}},'
        f'"kind":{{"S":"{kind}"}},"minute":{{"N":"{minute}"}},"count":{{"N":"{count}"}},'
        f'"bytes":{{"N":"{size}"}}{attempts}}}}}'
    )
