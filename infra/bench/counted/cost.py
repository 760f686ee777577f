"""Dollars for a million messages by published prices: CirrusMQ beside SQS and SNS.

Units are counted (`lives`), calls follow from the API; only the run time of functions is assumed,
and has its own column. "direct" is without the API, by URLs of the functions. Another table has the
same by the parameter `Capacity`. Large messages are in S3, a deployment's default; the price of S3
and KMS is a column, and storage, which outlives the messages, has its own table. Left out on both
sides: keys, traffic out, empty receives. Left out only on ours: logs and traces, which a deployment
may reduce, and the work of each idle minute (sweep, meter).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from cirrusmq.base import limits
from cirrusmq_local.commands import prices

from ..drawing.tables import show
from . import bill, waiting
from .lives import (
    BATCH_1_KB,
    BATCH_64_KB,
    FULL_64_KB,
    SINGLE_1_KB,
    SINGLE_64_KB,
    SINGLE_64_KB_JSON,
    SUBSCRIPTIONS,
    Requests,
    Workload,
    carried_life,
    left_behind,
    metering_units,
    our_life,
    published_life,
    push_invocations,
)

CALL_MS = 25
"""Assumed: a call of a function, with its one or two round trips to DynamoDB."""
SEND_MS = 25
"""Assumed: a send, with half the memory of other calls, and so half the share of a CPU. It needs
4 ms of that (`call_cpu`), the time to sign a request, and one round trip."""
RECEIVE_MS = 35
"""Assumed: a receive, with equal memory and one more round trip."""
CARRYING_MS = 45
"""Assumed: a receive that first deletes, with one more round trip to DynamoDB."""
PUSH_MS = 100
"""Assumed: a push of one message to a URL that answers at once."""
SHARING_MS, POSTING_MS = 30, 5
"""Assumed: extra time for each further subscription in the invocation, and for each further post.

They wait in parallel, so this is only their CPU time (`push_cpu`)."""
FANNING_MS = 3
"""Assumed: extra time for each further parcel of fan_out: its CPU time (`push_cpu`)."""
PUT_MS, GET_MS = 30, 20
"""Assumed: extra time of a call that writes an object, and of one that reads an object."""
USED_AT_BEST = 0.7
"""Target share of provisioned capacity of auto scaling, which no whole day reaches."""
USED_IN_A_DAY = (0.45, 0.6)
"""Used share over a day that has hours of little use."""
DAY_SECONDS = 86_400
METER_RECORDS = 1_000
"""Changes in one invocation of the meter under load."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The use of Amazon's services by a number of messages on our side."""

    messages: int
    write_units: float
    read_units: float
    calls: int
    """Calls of the HTTP API, each of which invokes a function."""
    invocations: float = 0.0
    """Further invocations of functions."""
    gb_seconds: float
    puts: float = 0.0
    """Writes of objects in S3, copies included."""
    gets: float = 0.0

    def dollars(self, used: float | None = None) -> dict[str, float]:
        """Returns dollars by line, for a million messages.

        `used`: the used share of provisioned capacity, or None for tables on demand.
        """
        functions = self.calls + self.invocations
        written, read = prices.WRITE_UNITS_PER_MILLION, prices.READ_UNITS_PER_MILLION
        if used is not None:
            written = prices.provisioned_per_million(prices.WRITE_UNIT_HOUR, used)
            read = prices.provisioned_per_million(prices.READ_UNIT_HOUR, used)
        lines = {
            "writes": self.write_units * written,
            "reads": self.read_units * read,
            "HTTP API": self.calls * prices.HTTP_API_PER_MILLION,
            "S3, KMS": self.puts * prices.S3_PUTS_PER_MILLION
            + self.gets * prices.S3_GETS_PER_MILLION
            + (self.puts + self.gets) * prices.KMS_SHARE * prices.KMS_REQUESTS_PER_MILLION,
            "Lambda calls": functions * prices.LAMBDA_REQUESTS_PER_MILLION,
            "Lambda time": self.gb_seconds * prices.LAMBDA_GB_SECOND * prices.MILLION,
        }
        return {name: amount / self.messages for name, amount in lines.items()}

    def total(self, used: float | None = None, *, direct: bool = False) -> float:
        """Returns dollars for a million messages. `direct`: by functions' URLs, without the API."""
        lines = self.dollars(used)
        return sum(lines.values()) - (lines["HTTP API"] if direct else 0.0)


def queue_usage(
    workload: Workload,
    units: tuple[float, float],
    metered: float,
    objects: Requests | None = None,
) -> Usage:
    """Sent, received and deleted: three calls, and three changes for the meter to count."""
    return _usage(workload, units, metered, objects, sends=1, receives=1, calls=1, changes=3)


def carried_usage(
    workload: Workload,
    units: tuple[float, float],
    metered: float,
    objects: Requests | None = None,
) -> Usage:
    """Sent, and received by the call that deletes the batch before: two calls."""
    return _usage(
        workload, units, metered, objects, sends=1, receives=1, receive_ms=CARRYING_MS, changes=3
    )


def gathered_usage(
    workload: Workload, units: tuple[float, float], metered: float, sends: int
) -> Usage:
    """Sent by several calls, received together by the call that deletes the batch before."""
    return _usage(
        *(workload, units, metered, None),
        sends=sends,
        receives=1,
        receive_ms=CARRYING_MS + (sends if sends > 1 else 0),
        changes=3 * sends,
    )


def pulled_usage(
    workload: Workload,
    units: tuple[float, float],
    metered: float,
    objects: Requests | None = None,
) -> Usage:
    """Published, then received and deleted by each subscription."""
    changes = 1 + 3 * SUBSCRIPTIONS
    return _usage(
        *(workload, units, metered, objects),
        calls=1 + SUBSCRIPTIONS,
        receives=SUBSCRIPTIONS,
        changes=changes,
        fan_outs=1,
    )


def pushed_usage(
    workload: Workload,
    units: tuple[float, float],
    metered: float,
    objects: Requests | None = None,
) -> Usage:
    """Published, then posted to each subscription's URL by as many invocations as are counted."""
    changes = 1 + 3 * SUBSCRIPTIONS
    return _usage(
        *(workload, units, metered, objects),
        calls=1,
        changes=changes,
        fan_outs=1,
        pushes=push_invocations(workload),
        pushed=SUBSCRIPTIONS,
    )


def _usage(
    workload: Workload,
    units: tuple[float, float],
    metered: float,
    objects: Requests | None,
    *,
    calls: int = 0,
    sends: int = 0,
    receives: int = 0,
    receive_ms: int = RECEIVE_MS,
    changes: int,
    fan_outs: int = 0,
    pushes: int = 0,
    pushed: int = 0,
) -> Usage:
    """Returns the use. `calls`: calls except sends and receives. `pushes`: invocations of push.

    `pushed`: the number of subscriptions of these invocations.
    """
    meters = changes / METER_RECORDS
    objects = objects or Requests()
    puts = objects["PutObject"] + objects["CopyObject"]
    gets = objects["GetObject"]
    seconds = (calls + fan_outs + meters) * CALL_MS / 1_000 * prices.CALL_GB
    seconds += fan_outs * (SUBSCRIPTIONS - 1) * FANNING_MS / 1_000 * prices.CALL_GB
    seconds += (sends * SEND_MS + receives * receive_ms) / 1_000 * prices.HOT_GB
    put_gb = prices.HOT_GB if sends else prices.CALL_GB
    seconds += puts * PUT_MS / 1_000 * put_gb + gets * GET_MS / 1_000 * prices.HOT_GB
    push_ms = pushes * PUSH_MS + (pushed - pushes) * SHARING_MS
    push_ms += pushed * (workload.count - 1) * POSTING_MS
    return Usage(
        messages=workload.count,
        write_units=units[0] + meters * metered,
        read_units=units[1],
        calls=calls + sends + receives,
        invocations=fan_outs + meters + pushes,
        gb_seconds=seconds + push_ms / 1_000 * prices.PUSH_GB,
        puts=puts,
        gets=gets,
    )


def sqs_dollars(size: int, *, batches: bool) -> float:
    """Returns dollars for a million messages sent to, received and deleted in a standard queue."""
    batch = min(prices.SQS_BATCH, prices.SQS_BATCH_BYTES // size) if batches else 1
    requests = 2 * _requests(batch * size) + 1
    return requests / batch * prices.SQS_REQUESTS_PER_MILLION


def sqs_gathered_dollars() -> float:
    """Returns dollars for a million small messages sent singly, received and deleted by ten."""
    return (1 + 2 / prices.SQS_BATCH) * prices.SQS_REQUESTS_PER_MILLION


def sns_to_queues_dollars(size: int, *, batches: bool, queues: int = SUBSCRIPTIONS) -> float:
    """Returns dollars for a million messages published, received and deleted in free queues."""
    batch = min(prices.SQS_BATCH, prices.SQS_BATCH_BYTES // size) if batches else 1
    taken = (_requests(batch * size) + 1) / batch * prices.SQS_REQUESTS_PER_MILLION
    return _published(size, batches=batches) + queues * taken


def sns_to_urls_dollars(size: int, *, batches: bool, urls: int = SUBSCRIPTIONS) -> float:
    """Returns dollars for a million messages published and posted to URLs, each separately."""
    delivery = _requests(size) * prices.SNS_HTTP_DELIVERIES_PER_MILLION
    return _published(size, batches=batches) + urls * delivery


def _published(size: int, *, batches: bool) -> float:
    batch = min(prices.SQS_BATCH, prices.SNS_BATCH_BYTES // size) if batches else 1
    return _requests(batch * size) / batch * prices.SNS_PUBLISHES_PER_MILLION


def _requests(size: int) -> int:
    return ceil(size / prices.REQUEST_BYTES)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A way to use messages: our costs beside a rival's, in one table."""

    title: str
    short: str
    rival: str
    live: Callable[[Workload, Requests], tuple[float, float]]
    """Counts its units, and its requests to S3."""
    use: Callable[[Workload, tuple[float, float], float, Requests], Usage]
    theirs: Callable[..., float]


KINDS = (
    Kind(
        title="a queue: sent, received, deleted",
        short="a queue",
        rival="SQS",
        live=our_life,
        use=queue_usage,
        theirs=sqs_dollars,
    ),
    Kind(
        title="a queue: sent, received by the call that deletes the batch before",
        short="a queue whose receives delete",
        rival="SQS",
        live=carried_life,
        use=carried_usage,
        theirs=sqs_dollars,
    ),
    Kind(
        title=f"a topic, {SUBSCRIPTIONS} consumers that pull",
        short="a topic, consumers",
        rival="SNS + SQS",
        live=lambda workload, s3: published_life(workload, "pull", objects=s3),
        use=pulled_usage,
        theirs=sns_to_queues_dollars,
    ),
    Kind(
        title=f"a topic, {SUBSCRIPTIONS} URLs",
        short="a topic, URLs",
        rival="SNS",
        live=lambda workload, s3: published_life(workload, "http", objects=s3),
        use=pushed_usage,
        theirs=sns_to_urls_dollars,
    ),
)


WORKLOADS = (SINGLE_1_KB, BATCH_1_KB, SINGLE_64_KB_JSON, SINGLE_64_KB, FULL_64_KB)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Messages of one kind and size: the use that is counted, and a rival's dollars."""

    kind: Kind
    messages: str
    usage: Usage
    theirs: float
    """Dollars for a million messages."""


def cases(
    kinds: Sequence[Kind] = KINDS, workloads: Sequence[Workload] = WORKLOADS
) -> Iterator[Case]:
    """Counts the cases, one by one."""
    metered = metering_units()
    for workload in workloads:
        for kind in kinds:
            s3 = Requests()
            yield Case(
                kind=kind,
                messages=_name(workload),
                usage=kind.use(workload, kind.live(workload, s3), metered, s3),
                theirs=kind.theirs(workload.size, batches=workload.count > 1),
            )


def run() -> None:
    """Prints the tables."""
    rows: dict[str, list[list[object]]] = {kind.title: [] for kind in KINDS}
    capacity: list[list[object]] = []
    for case in cases():
        rows[case.kind.title].append(_row(case.messages, case.usage, case.theirs))
        capacity.append(_capacity_row(f"{case.kind.short}, {case.messages}", case.usage))
    lines = ["writes", "reads", "HTTP API", "S3, KMS", "Lambda calls", "Lambda time"]
    for kind in KINDS:
        heads = ["messages", *lines, "ours", "direct", kind.rival, f"ours / {kind.rival}"]
        show(f"Dollars for a million messages, {kind.title}", heads, rows[kind.title])
    show_capacity(capacity)
    show_storage()
    idle = ["key", "secret", "alarms", "dashboard", "metrics", "sweep", "logs", "reports", "in all"]
    show("Dollars a month of an idle deployment", ["parameters", *idle], bill.idle_rows())
    print(f"\nAssumed: {CALL_MS} ms a call at 512 MB; a send {SEND_MS} at 256 MB, a receive")
    print(f"{RECEIVE_MS}, {CARRYING_MS} where it deletes, a push {PUSH_MS}, {SHARING_MS} more")
    print(f"for each further subscription of it, {POSTING_MS} for each further message of one;")
    print(f"{PUT_MS} ms more to write an object and {GET_MS} to read one; of S3's requests")
    print(f"{prices.KMS_SHARE:.0%} ask KMS (bucket keys).")
    show(
        "Dollars a month for one consumer that waits, and gets nothing",
        ["memory of receive", "Lambda time", "reads", "calls", "in all"],
        waiting.rows(),
    )
    handed = ["writes", "reads", "HTTP API", "Lambda calls", "Lambda time"]
    show(
        "Dollars for a million messages that are handed to a function; an idle queue costs nothing",
        ["messages", *handed, "waiting for the function", "in all"],
        waiting.handed_rows(),
    )
    show(
        "Dollars for snapshots of environments (parameter SnapStart)",
        ["memory", "one published version a month, idle", "a million cold starts"],
        [(f"{memory} MB", *map(_dollars, snapshot_dollars(memory))) for memory in (256, 512)],
    )


def show_capacity(rows: list[list[object]]) -> None:
    """Prints the dollars for a million messages by the parameter `Capacity`."""
    shares = ["on demand", *(f"{used:.0%}" for used in (USED_AT_BEST, *reversed(USED_IN_A_DAY)))]
    show(
        "Dollars for a million messages, by Capacity: on demand, and by the share that is used",
        ["messages", *shares, *(f"direct, {share}" for share in shares)],
        sorted(rows, key=lambda row: str(row[0]).split(",")[:2]),
    )
    print(
        f"\nAuto scaling aims at {USED_AT_BEST:.0%}, a ceiling: a day with its quiet hours comes to"
    )
    print("{:.0%} to {:.0%}.".format(*USED_IN_A_DAY), end=" ")
    print(f"Below {prices.BREAK_EVEN:.0%} on demand is cheaper, in every row.")


def show_storage() -> None:
    """Prints storage costs of a million messages, received soon but stored for their whole life."""
    rows = []
    for workload in (SINGLE_64_KB_JSON, SINGLE_64_KB, BATCH_64_KB):
        for place, objects in (("the table", None), ("the table or S3, by size", Requests())):
            in_table, in_s3 = storage_dollars(workload, objects)
            amounts = (in_table, in_s3, in_table + in_s3)
            rows.append([_name(workload), place, *map(_dollars, amounts)])
    days = limits.RETENTION_SECONDS_DEFAULT // DAY_SECONDS
    show(
        f"Dollars for storing a million messages of a queue that keeps them for {days} days",
        ["messages", "stored in", "table", "S3", "in all"],
        rows,
    )


def storage_dollars(workload: Workload, objects: Requests | None) -> tuple[float, float]:
    """Returns dollars for a million messages, in the table and in S3, for their whole life.

    `objects`: large messages are in objects, which expire at the midnight after their days: on
    average half a day later.
    """
    in_table, in_objects, object_days = left_behind(workload, objects)
    days = limits.RETENTION_SECONDS_DEFAULT / DAY_SECONDS
    millions = prices.MILLION / prices.GB / workload.count
    return (
        in_table * millions * prices.TABLE_GB_MONTH * days / prices.MONTH_DAYS,
        in_objects * millions * prices.S3_GB_MONTH * (object_days + 0.5) / prices.MONTH_DAYS,
    )


def snapshot_dollars(memory_mb: int) -> tuple[float, float]:
    """Returns dollars for one version's snapshot in a month, and for a million starts from it."""
    gigabytes = memory_mb / 1_024
    kept = gigabytes * prices.SNAPSHOT_GB_SECOND * waiting.MONTH_SECONDS
    return kept, gigabytes * prices.SNAPSHOT_GB_RESTORED * prices.MILLION


def _dollars(amount: float) -> str:
    return f"{amount:,.2f}"


def _name(workload: Workload) -> str:
    if workload.count == 1:
        return workload.name.replace("one of ", "") + ", singles"
    return workload.name.split(" of ")[1] + f", batches of {workload.count}"


def _row(name: str, usage: Usage, theirs: float) -> list[object]:
    total = usage.total()
    amounts = (*usage.dollars().values(), total, usage.total(direct=True), theirs)
    return [name, *map(_dollars, amounts), f"{total / theirs:.1f}"]


def _capacity_row(name: str, usage: Usage) -> list[object]:
    shares = (None, USED_AT_BEST, *reversed(USED_IN_A_DAY))
    by_api = [usage.total(used) for used in shares]
    return [name, *map(_dollars, by_api), *(_dollars(usage.total(s, direct=True)) for s in shares)]
