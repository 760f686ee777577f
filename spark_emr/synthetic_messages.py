"""Makes message tables that look like real ones, from a seed. Not shipped with the jobs.

Parcels of one to sixteen messages in every state, expired ones that TTL has not met, dead letters,
archives, log records, deduplication items, sequences and retry schedules, spread over resources
of very different size.
"""

from __future__ import annotations

import json
import random
from base64 import b64encode
from bisect import bisect
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from export_writer import ExportWriter

ACCOUNTS = ("acme", "globex", "initech", "umbrella", "hooli")
ITEMS_IN_A_FILE = 50_000
WORTH_A_PROCESS = 200_000
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_KINDS = (("Q", 0.84), ("R", 0.06), ("L", 0.07), ("D", 0.025), ("N", 0.005))
"""First letters of partition keys, and their share of the items."""
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_COUNTS = (1, 1, 1, 1, 2, 2, 3, 4, 6, 10, 16)
_SIZES = (24, 90, 180, 250, 400, 700, 1_500, 6_000, 40_000, 200_000)
_OWN_REASON = "bad address " * 9
REASONS = (
    "max_receives",
    "max_age",
    "retries",
    "expired",
    "too_large",
    "consumer",
    _OWN_REASON,
)
"""Why messages are dead letters: the last one is a consumer's own text."""
_RECEIVES = (1, 1, 1, 1, 2, 2, 3, 5, 9, 40)


@dataclass(frozen=True)
class Resource:
    """A queue, receiver or subscription, and how it is used."""

    id: str
    account: str
    kind: str
    name: str
    partitions: int
    retention_ms: int
    has_retry_policy: bool
    rewinds: bool
    is_dead_letter_queue: bool

    @property
    def document(self) -> str:
        """Its entry in the Directory table."""
        return json.dumps({"account": self.account, "kind": self.kind, "name": self.name})

    @property
    def queue(self) -> str:
        """The name of its queue, if it is one or a receiver of one."""
        return self.name.partition("/")[0]

    @property
    def rewind_seconds(self) -> int:
        """Seconds for which messages can be rewound after their send."""
        return self.retention_ms // 2_000 if self.rewinds else 0


@dataclass(frozen=True)
class Messages:
    """A message table to be exported."""

    seed: int
    items: int
    at_ms: int
    resources: int = 40
    items_in_a_file: int = ITEMS_IN_A_FILE

    def all_resources(self) -> list[Resource]:
        """Returns the resources in the table, the busiest first."""
        randomness = random.Random(f"{self.seed}/resources")
        return [_resource(place, randomness) for place in range(self.resources)]

    def export(self, root: Path) -> Path:
        """Writes the full export at `at_ms` under `root`. Returns its folder."""
        writer = ExportWriter(root=root, table="Messages", at_ms=self.at_ms)
        files = -(-self.items // self.items_in_a_file)
        if self.items < WORTH_A_PROCESS:
            for file in range(files):
                writer.write_file(self.lines_of(file))
            return writer.finish()
        with ProcessPoolExecutor() as pool:
            for lines in pool.map(self.lines_of, range(files)):
                writer.write_file(lines)
        return writer.finish()

    def lines_of(self, file: int) -> list[str]:
        """Returns the records of one data file."""
        files = -(-self.items // self.items_in_a_file)
        count = min(self.items_in_a_file, self.items - file * self.items_in_a_file)
        return [f'{{"Item":{item}}}' for item in self.items_of(file, count, files)]

    def items_of(self, series: int, count: int, of: int = 1) -> Iterator[str]:
        """`count` items as DynamoDB JSON: the `series`-th stretch of `of` that make a table.

        As in a table, all items of a partition key are in one stretch, or in neighbouring ones.
        """
        randomness = random.Random(f"{self.seed}/{series}")
        keys, weights = self._partition_keys()
        below = list(accumulate(weights))
        for number in range(count):
            place = below[-1] * (series % of + randomness.random()) / of
            resource, partition, kind = keys[bisect(below, place, hi=len(keys) - 1)]
            parcel_id = f"{series:06d}{number:08d}{randomness.getrandbits(48):012X}"
            yield _item(kind, resource, partition, parcel_id, self.at_ms, randomness)

    def _partition_keys(self) -> tuple[list[tuple[Resource, int, str]], list[float]]:
        """Resource, partition and kind of each partition key, and how much it holds."""
        weighted = [
            ((resource, partition, kind), share / (place + 1) / (partition + 1))
            for place, resource in enumerate(self.all_resources())
            for partition in range(resource.partitions)
            for kind, share in _KINDS
        ]
        # Their hashes decide the order in a table: any, but always the same.
        random.Random(f"{self.seed}/order").shuffle(weighted)
        return [key for key, _ in weighted], [weight for _, weight in weighted]

    def schedules(self) -> Iterator[str]:
        """Yields the schedule items of the subscriptions, some of them retrying."""
        randomness = random.Random(f"{self.seed}/schedules")
        for resource in self.all_resources():
            if resource.kind != "subscription":
                continue
            state = randomness.choice(("delivering", "retrying"))
            probe = ""
            if state == "retrying":
                sent_ms = self.at_ms - randomness.randrange(_DAY_MS)
                probe = f',"probe_sent":{{"N":"{sent_ms}"}}'
            yield (
                f'{{"pk":{{"S":"S#{randomness.randrange(16)}"}},"sk":{{"S":"{resource.id}"}},'
                f'"state":{{"S":"{state}"}},"generation":{{"N":"3"}}{probe}}}'
            )


def _resource(place: int, randomness: random.Random) -> Resource:
    kind = ("queue", "queue", "receiver", "subscription")[place % 4]
    name = {
        "queue": f"orders-{place}",
        "receiver": f"orders-{place}/audit",
        "subscription": f"news-{place}/mail",
    }[kind]
    return Resource(
        id="".join(randomness.choices(_ALPHABET, k=12)),
        account=ACCOUNTS[place % len(ACCOUNTS)],
        kind=kind,
        name=name,
        partitions=randomness.choice((1, 4, 4, 8)),
        retention_ms=randomness.choice((1, 4, 4, 15)) * _DAY_MS,
        has_retry_policy=place % 3 == 0,
        rewinds=place % 2 == 0,
        is_dead_letter_queue=place % 8 == 5,
    )


def _item(
    kind: str,
    resource: Resource,
    partition: int,
    parcel_id: str,
    at_ms: int,
    randomness: random.Random,
) -> str:
    if kind in ("Q", "R"):
        kept_as = kind if resource.rewinds else "Q"
        return _parcel(kept_as, resource, partition, parcel_id, at_ms, randomness)
    if kind == "L":
        return _log_record(resource, partition, parcel_id, at_ms, randomness)
    if kind == "D":
        return (
            f'{{"pk":{{"S":"D#{resource.id}#{randomness.getrandbits(128):032x}"}},'
            f'"sk":{{"S":"D"}},"i":{{"S":"Msg-{parcel_id}0"}},"t":{{"N":"{at_ms}"}},'
            f'"x":{{"N":"{at_ms + 300_000}"}},"expires_at":{{"N":"{at_ms // 1000 + 300}"}}}}'
        )
    return f'{{"pk":{{"S":"N#{resource.id}#{parcel_id}"}},"sk":{{"S":"N"}},"n":{{"N":"7"}}}}'


def _log_record(
    resource: Resource, partition: int, parcel_id: str, at_ms: int, randomness: random.Random
) -> str:
    sent_ms = at_ms - randomness.randrange(resource.retention_ms)
    content = b64encode(randomness.randbytes(randomness.randrange(400, 1_500))).decode()
    return (
        f'{{"pk":{{"S":"L#{resource.id}#{partition}"}},"sk":{{"S":"{sent_ms:013d}#{parcel_id}"}},'
        f'"b":{{"B":"{content}"}},"t":{{"N":"{sent_ms}"}},'
        f'"x":{{"N":"{sent_ms + resource.retention_ms}"}}}}'
    )


def _parcel(
    kind: str,
    resource: Resource,
    partition: int,
    parcel_id: str,
    at_ms: int,
    randomness: random.Random,
) -> str:
    dead = resource.is_dead_letter_queue
    count = 1 if dead else randomness.choice(_COUNTS)
    # Most messages are young; a few have outlived their retention by up to two hours.
    age_ms = int((resource.retention_ms + 2 * _HOUR_MS) * randomness.random() ** 3)
    sent_ms = at_ms - age_ms
    visible, receives, waits = [], [], []
    for _ in range(count):
        visible_ms, received, wait_ms = _state(kind, sent_ms, at_ms, randomness)
        visible.append(f'{{"N":"{visible_ms}"}}')
        receives.append(f'{{"N":"{received}"}}')
        waits.append(f'{{"N":"{wait_ms}"}}')
    expires_ms = sent_ms + resource.retention_ms
    kept_until = at_ms // 1000 + randomness.randrange(-600, 86_400)
    nonces = [f'{{"B":"{b64encode(randomness.randbytes(16)).decode()}"}}' for _ in range(count)]
    sizes = [f'{{"N":"{randomness.choice(_SIZES)}"}}' for _ in range(count)]
    firsts = [f'{{"N":"{sent_ms + 40}"}}'] * count
    optional = f',"w":{{"L":[{",".join(waits)}]}}' if resource.has_retry_policy else ""
    if dead:
        note = b64encode(_note(randomness.choice(REASONS), at_ms)).decode()
        optional += f',"d":{{"B":"{note}"}},"m":{{"S":"x"}}'
    if count < 4:
        content = b64encode(randomness.randbytes(randomness.randrange(60, 420))).decode()
        optional += f',"b":{{"B":"{content}"}}'
    elif count > 8:  # the messages of a large send are in an object
        optional += ',"y":{"N":"5"}'
    return (
        f'{{"pk":{{"S":"{kind}#{resource.id}#{partition}"}},'
        f'"sk":{{"S":"{sent_ms:013d}#{parcel_id}"}},"v":{{"L":[{",".join(visible)}]}},'
        f'"k":{{"L":[{",".join(nonces)}]}},"r":{{"L":[{",".join(receives)}]}},'
        f'"f":{{"L":[{",".join(firsts)}]}},"z":{{"L":[{",".join(sizes)}]}},'
        f'"t":{{"N":"{sent_ms}"}},"x":{{"N":"{expires_ms}"}},"j":{{"N":"134"}},'
        f'"expires_at":{{"N":"{kept_until if kind == "R" else -(-expires_ms // 1000)}"}}'
        f"{optional}}}"
    )


def _note(reason: str, at_ms: int) -> bytes:
    """Returns the note of a dead letter, in MessagePack, with misleading names in it."""

    def text(value: str) -> bytes:
        content = value.encode()
        small = len(content) < 32
        return bytes([0xA0 + len(content)] if small else [0xD9, len(content)]) + content

    members = {
        "source_queue": text("reason"),
        "receive_count": b"\x05",
        "dead_at": b"\xcf" + at_ms.to_bytes(8),
        "reason": text(reason),
        "receiver": text("max_age"),
    }
    packed = b"".join(text(name) + value for name, value in members.items())
    return bytes([0x80 + len(members)]) + packed


def _state(kind: str, sent_ms: int, at_ms: int, randomness: random.Random) -> tuple[int, int, int]:
    """Returns the visible time, the receive count, and the wait of a retry, in ms."""
    draw = randomness.random()
    if draw < (0.8 if kind == "R" else 0.1):
        return 0, 1, 0
    if draw < 0.13 or kind == "R":
        return -1, 0, 0
    if draw < 0.60:
        return sent_ms, 0, 0
    received = randomness.choice(_RECEIVES)
    if draw < 0.75:
        return at_ms + randomness.randrange(1, 30_000), received, 5_000
    if draw < 0.85:
        return at_ms - randomness.randrange(20_000), received, randomness.randrange(40_000)
    if draw < 0.92:
        return at_ms + randomness.randrange(1, _HOUR_MS), 0, 0
    return at_ms - randomness.randrange(_HOUR_MS), received, 0


def directory_export(root: Path, at_ms: int, resources: Sequence[Resource]) -> Path:
    """Writes a full export of a Directory with these resources. Returns its folder."""
    writer = ExportWriter(root=root, table="Directory", at_ms=at_ms)
    records = [
        f'{{"Item":{{"pk":{{"S":"I#{number % 16}"}},"sk":{{"S":"{resource.id}"}},'
        f'"document":{{"S":{json.dumps(resource.document)}}}}}}}'
        for number, resource in enumerate(resources)
    ]
    topic = json.dumps({"account": "acme", "kind": "topic", "name": "news"})
    records.append(
        f'{{"Item":{{"pk":{{"S":"I#3"}},"sk":{{"S":"topic0000000"}},'
        f'"document":{{"S":{json.dumps(topic)}}}}}}}'
    )
    records += [queue_record(each) for each in resources if each.kind != "subscription"]
    writer.write_file(records)
    return writer.finish()


def labels_of(queue: str) -> dict[str, str]:
    """Returns the labels of a queue, by its name: some have two, some one, some none."""
    number = sum(queue.encode())
    team = {"team": ("payments", "search", 'team "é"')[number % 3]}
    return [{}, team, {**team, "stage": "live"}][number // 3 % 3]


def queue_record(resource: Resource, **settings: int) -> str:
    """Returns the Directory's record of a queue, or of a receiver's queue, with its settings."""
    document = {
        "id": resource.id,
        "account": resource.account,
        "name": resource.queue,
        "attributes": {
            "rewind_seconds": resource.rewind_seconds,
            "partitions": 4,
            "labels": labels_of(resource.queue),
        },
        "purged_ms": 0,
        "rewind_floor_ms": 0,
        **settings,
    }
    text = json.dumps(json.dumps(document))
    place = f'"pk":{{"S":"A#{resource.account}"}},"sk":{{"S":"queue#{resource.queue.lower()}"}}'
    return f'{{"Item":{{{place},"document":{{"S":{text}}},"version":{{"N":"1"}}}}}}'
