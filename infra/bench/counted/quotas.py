"""The needs of a message rate from an account's quotas, and the first quota that is exceeded.

The embedded engine counts units over messages' whole lives; calls follow from the batches. Times of
calls and posts are assumed, as in `cost`. Other use of the account is not included.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil

from cirrusmq_local.cloud.cloudformation import StackTemplate
from cirrusmq_local.commands import quotas
from cirrusmq_local.commands.quotas import Quota

from ..drawing.tables import show
from . import bill
from .cost import CALL_MS, METER_RECORDS, RECEIVE_MS
from .lives import Workload, carried_life, metering_units, published_life

SIZE = 1_024
POST_SECONDS = 0.2
"""Assumed: a post to a URL, with its answer."""
PUBLISHES_AT_ONCE, MAX_IN_FLIGHT = 4, 16
"""Assumed: calls whose messages an invocation of push posts in parallel, and the default of
`max_in_flight`, which limits them."""
COPY_MS = 0.7
"""CPU of fan_out for a copy, on a whole CPU (`push_cpu`)."""
MEMORY_MB, WHOLE_CPU_MB = (512, 1_024, 1_769), 1_769
"""Choices of FanOutMemory; at the last one a function has a whole CPU."""
KMS_SECONDS = 300
"""DynamoDB and S3 ask KMS about once in this time, for each execution environment."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """Messages per second, and their use."""

    messages: int = 1_000
    batch: int = 1
    """Messages of a send or publish, and of a receive."""
    topics: int = 0
    """Number of topics that get them, evenly; 0 for sends to queues."""
    subscriptions: int = 1
    """Receiving subscriptions of each topic."""
    urls: int = 0
    """URLs of each topic."""
    failing: float = 0.01
    """Share of the URLs that start to fail in the same second."""
    large: float = 0.0
    """Share of the sends whose messages are in an object."""
    waiting: int = 0
    """Waiting receives beside the load."""
    direct: bool = False
    """True if calls use the functions' own URLs."""

    @property
    def sends(self) -> float:
        """Sends or publishes per second."""
        return self.messages / self.batch

    @property
    def copies(self) -> int:
        """Copies of a message by fan_out."""
        return self.subscriptions + self.urls if self.topics else 0

    @property
    def receives(self) -> float:
        """Receives per second; each deletes the previous batch."""
        return self.sends * (self.subscriptions if self.topics else 1)


@dataclass(frozen=True)
class Need:
    """A load's need from a quota."""

    quota: Quota
    needed: float

    @property
    def share(self) -> float:
        """Share of the quota's default; above 1 the quota is exceeded."""
        return self.needed / self.quota.default


@cache
def units(load: Load) -> tuple[float, float]:
    """Returns (write units, read units) per second of the table of messages."""
    workload = Workload(name="a call's", count=load.batch, size=SIZE)
    if not load.topics:
        writes, reads = carried_life(workload)
    else:
        ends = (("pull", load.subscriptions), ("http", load.urls))
        lives = [published_life(workload, protocol, count) for protocol, count in ends if count]
        writes, reads = (sum(each) for each in zip(*lives, strict=True))
    return writes * load.sends, reads * load.sends


def needs(load: Load) -> list[Need]:
    """Returns the load's needs, the scarcest quota first."""
    writes, reads = units(load)
    calls = load.sends + load.receives
    batches = shards(writes) * 2
    posts = load.sends * load.urls if load.topics else 0.0
    working = (load.sends * CALL_MS + load.receives * RECEIVE_MS) / 1_000
    posting = posts * POST_SECONDS / min(load.batch * PUBLISHES_AT_ONCE, MAX_IN_FLIGHT)
    at_once = working + load.waiting + batches + posting
    changes = writes  # at most: a change of the stream for each unit
    objects = load.sends * load.large
    found = [
        Need(quotas.API_CALLS, 0.0 if load.direct else calls),
        Need(quotas.CONCURRENCY, at_once),
        Need(quotas.INVOCATIONS, calls + batches + posts),
        Need(quotas.TABLE_WRITES, writes),
        Need(quotas.TABLE_READS, reads),
        Need(quotas.DOCUMENT_READS, working),
        Need(quotas.USAGE_WRITES, changes / METER_RECORDS * metering_units()),
        Need(quotas.STARTS, load.topics * load.urls * load.failing),
        Need(quotas.PUTS, objects),
        Need(quotas.GETS, objects * max(1, load.copies)),
        Need(quotas.KEY_REQUESTS, at_once / KMS_SECONDS),
    ]
    # The quota of the night's jobs does not depend on the rate, and no caller waits for it.
    return [*sorted(found, key=lambda need: -need.share), Need(quotas.JOB_CPUS, job_cpus())]


def shards(writes: float) -> int:
    """Returns the stream's minimum shards: the table's partitions, which take 1,000 writes each."""
    return max(1, ceil(writes / quotas.KEY_WRITES))


def fan_out_memory(load: Load, writes: float) -> int:
    """Returns the memory with which fan_out keeps up with a shard, or the maximum."""
    copies = load.messages * load.copies / shards(writes)
    for memory in MEMORY_MB:
        if copies * COPY_MS / 1_000 <= memory / WHOLE_CPU_MB:
            return memory
    return MEMORY_MB[-1]


def job_cpus() -> float:
    """Returns the maximum vCPUs of a night's job by the template."""
    stacks = StackTemplate(bill.TEMPLATE, "cirrusmq", "us-east-1").stacks()
    for stack in stacks:
        for held in stack.document["Resources"].values():
            if held["Type"] == "AWS::EMRServerless::Application":
                return float(held["Properties"]["MaximumCapacity"]["Cpu"].split()[0])
    raise RuntimeError("the templates have no application of EMR Serverless")


def run(arguments: Sequence[str] = ()) -> None:
    """Prints the table for the load of the command line."""
    load = _parse(arguments)
    writes, reads = units(load)
    found = needs(load)
    show(
        f"Of an account's quotas, {load.messages:,} messages of 1 KB a second,"
        f" {load.batch} a call{_to(load)}",
        ["quota", "needed", "by default", "share", "at its end", "more"],
        [
            (n.quota.name, n.needed, n.quota.default, f"{n.share:.0%}", *_ends(n.quota))
            for n in found
        ],
    )
    first = found[0]
    print(f"\nSays no first: {first.quota.name}, at {load.messages / first.share:,.0f} messages.")
    print(
        f"Give WarmWriteUnits={ceil(writes)} WarmReadUnits={ceil(reads)}"
        f" RequestsPerSecond={ceil(load.sends + load.receives)}"
        f" FanOutMemory={fan_out_memory(load, writes)}, and StreamConcurrency=0 or at least"
        f" {shards(writes)}, for the stream has so many shards."
    )


def _ends(quota: Quota) -> tuple[str, str]:
    return quota.at_its_end, quota.more


def _to(load: Load) -> str:
    if not load.topics:
        return ""
    return f", to {load.topics} topics with {load.subscriptions} consumers and {load.urls} URLs"


def _parse(arguments: Sequence[str]) -> Load:
    parser = argparse.ArgumentParser(prog="python -m infra.bench quotas", description=__doc__)
    for name, default, told in (
        ("messages", 50_000, "messages a second"),
        ("batch", 1, "messages of a call"),
        ("topics", 0, "topics that they are published to; 0 sends to queues"),
        ("subscriptions", 1, "of each topic, which receive"),
        ("urls", 0, "of each topic, posted to"),
        ("waiting", 0, "receives that wait meanwhile"),
    ):
        parser.add_argument(f"--{name}", type=_whole, default=default, help=f"{told} [{default}]")
    parser.add_argument("--failing", type=_part, default=0.01, help="share of the URLs [0.01]")
    parser.add_argument("--large", type=_part, default=0.0, help="share of sends in objects [0]")
    parser.add_argument("--direct", action="store_true", help="calls go by direct URLs")
    asked = parser.parse_args(list(arguments))
    if asked.messages < 1 or not 1 <= asked.batch <= 16:
        parser.error("--messages is at least 1, --batch between 1 and 16")
    if asked.topics and not asked.subscriptions + asked.urls:
        parser.error("topics have --subscriptions or --urls")
    return Load(**vars(asked))


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number from 0 on, not {text}")
    return int(text)


def _part(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"between 0 and 1, not {text}")
    return value
