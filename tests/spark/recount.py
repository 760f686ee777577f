"""The reports' figures once more, in plain Python over the same files, one item at a time."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import yaml

Item = dict[str, Any]


def records_of(export: Path) -> Iterator[Item]:
    """The records of the files that an export's manifest lists."""
    root = export.parent.parent
    listed = set((export / "manifest-files.json").read_text().splitlines())
    for line in sorted(listed):
        with gzip.open(root / json.loads(line)["dataFileS3Key"]) as lines:
            yield from map(json.loads, lines)


def items_of(export: Path) -> Iterator[Item]:
    """The items of a full export."""
    return (record["Item"] for record in records_of(export))


@dataclass
class Backlog:
    """A resource's figures."""

    counts: Counter[str] = field(default_factory=Counter)
    ages: list[int] = field(default_factory=list)
    receives: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    partitions: Counter[int] = field(default_factory=Counter)
    probe_age_seconds: int | None = None


def recount_backlog(
    items: Iterable[Item], at_ms: int, rewind_ms: Mapping[str, int] | None = None
) -> dict[str, Backlog]:
    """Resource id → its figures; `rewind_ms` of resources, if the Directory told it."""
    resources: dict[str, Backlog] = defaultdict(Backlog)
    for item in items:
        kind, _, rest = item["pk"]["S"].partition("#")
        if kind == "S" and item["state"]["S"] == "retrying":
            probe_ms = int(item["probe_sent"]["N"])
            resources[item["sk"]["S"]].probe_age_seconds = (at_ms - probe_ms) // 1000
        if kind not in ("Q", "R"):
            continue
        identity, _, partition = rest.partition("#")
        resource = resources[identity]
        numbers = {name: [int(n["N"]) for n in item[name]["L"]] for name in ("v", "r", "z")}
        waits = [int(n["N"]) for n in item["w"]["L"]] if "w" in item else [0] * len(numbers["v"])
        for v, w, r, z in zip(numbers["v"], waits, numbers["r"], numbers["z"], strict=True):
            if v == 0:
                resource.counts["rewindable"] += _rewindable(item, at_ms, identity, rewind_ms)
            if v <= 0 or kind == "R":
                continue
            if int(item["x"]["N"]) <= at_ms:
                resource.counts["expired"] += 1
                continue
            if v + w <= at_ms:
                resource.counts["active"] += 1
            elif r == 0 and v > at_ms:
                resource.counts["delayed"] += 1
            else:
                resource.counts["inactive"] += 1
            resource.counts["dead"] += "d" in item
            if "d" in item:
                note = msgspec.msgpack.decode(base64.b64decode(item["d"]["B"]))
                resource.reasons[note["reason"]] += 1
            resource.counts["bytes"] += z
            resource.ages.append((at_ms - int(item["t"]["N"])) // 1000)
            resource.receives.append(r)
            resource.sizes.append(z)
            resource.partitions[int(partition)] += 1
    return resources


def _rewindable(item: Item, at_ms: int, identity: str, rewind_ms: Mapping[str, int] | None) -> bool:
    if rewind_ms is None:
        return item["pk"]["S"].startswith("R#") and int(item["expires_at"]["N"]) * 1000 > at_ms
    window = rewind_ms.get(identity, 0)
    until_ms = min(int(item["t"]["N"]) + window, int(item["x"]["N"]))
    return window > 0 and until_ms > at_ms


def in_ranges(values: Iterable[int], labels: Iterable[str]) -> dict[str, int]:
    """Label such as `3`, `3-5`, `101+` → how many of the values it holds."""
    counted = Counter(values)
    sums = {}
    for label in labels:
        low, _, high = label.removesuffix("+").partition("-")
        limit = float("inf") if label.endswith("+") else int(high or low)
        sums[label] = sum(n for value, n in counted.items() if int(low) <= value <= limit)
    return sums


Usage = Counter[tuple[str, str, str, int]]


def recount_usage(items: Iterable[Item]) -> dict[str, Usage]:
    """Counts and bytes by (account, resource, kind, hour since 1970), none where both are 0."""
    sums: dict[str, Usage] = {"count": Counter(), "bytes": Counter()}
    seen = set()
    for item in items:
        key = (item["pk"]["S"], item["sk"]["S"])
        if not key[0].startswith("U#") or key in seen:
            continue
        seen.add(key)
        for entry in item["records"]["L"]:
            values = {name: next(iter(value.values())) for name, value in entry["M"].items()}
            hour = int(values["minute"]) // 60
            place = (values["account"], values["resource"], values["kind"], hour)
            for name, sums_of_name in sums.items():
                sums_of_name[place] += int(values[name])
            if "attempts" in values:
                posts = (values["account"], values["resource"], "attempted", hour)
                sums["count"][posts] += int(values["attempts"])
                sums["bytes"][posts] += 0
    empty = {place for place in sums["count"] if not any(sums[name][place] for name in sums)}
    return {
        name: Counter({place: n for place, n in counted.items() if place not in empty})
        for name, counted in sums.items()
    }


def recount_amount(kind: str, count: int, size: int, card_file: Path) -> str:
    """An invoice line's amount, by the shipped rate card as PyYAML reads it."""
    (card,) = yaml.load(card_file.read_text(), yaml.BaseLoader)["prices"]
    if kind == "kept":
        exact = Decimal(size) * Decimal(card["per_gigabyte_hour_kept"]) / 10**9
    elif kind == "rewindable":
        exact = Decimal(count) * Decimal(card["per_million_rewindable_hours"]) / 10**6
    else:
        exact = Decimal(count) * Decimal(card["per_million_operations"][kind]) / 10**6
    places = max(2, -int(exact.normalize().as_tuple().exponent))
    return f"{exact + 0:.{places}f}"  # never "-0.00"
