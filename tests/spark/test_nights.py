"""Nights of the deployed state machine report what one run over everything reports.

The machine asks for exports, whole once a week and windows between, which the embedded engine
makes of a world's tables; then it names the jobs' arguments, and the jobs run here.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.infra.pipeline_services import Services, export_arn, serve
from tests.infra.reports_machine import Machine
from tests.spark.job_runs import RATE_CARD, REPOSITORY, Jobs, rows_in, summaries_in
from tests.spark.recount import items_of, recount_usage

from cirrusmq_local.cloud.template import load
from cirrusmq_local.testing import START_MS, Client, World
from cirrusmq_reports.times import iso_time

DAY_SECONDS = 86_400
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
QUEUES = ("orders", "mail")
TIERS = """
    free_each_month:
      sent: 15
    tiers:
      received:
        - above: 40
          price: 100.00
"""
Rows = set[tuple[Any, ...]]
Begin = Callable[[int], "Month"]


class Exporting(Services):
    """The services of the machine; exports are those of a world's tables."""

    def __init__(self, world: World, bucket: Path) -> None:
        super().__init__()
        self.world, self.bucket = world, bucket
        self.made: list[str] = []
        """The kinds of the exports of Usage."""

    def answer(self, operation: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        wanted = asked.get("IncrementalExportSpecification")
        if wanted and wanted["ExportToTime"] - wanted["ExportFromTime"] > DAY_SECONDS:
            return 400, {"__type": "ValidationException", "message": "longer than a day"}
        return super().answer(operation, asked)

    def _export(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = asked["TableArn"].removesuffix(".Arn")
        table = getattr(self.world.tables, name.lower())
        wanted = asked.get("IncrementalExportSpecification")
        assert (wanted is None) == (asked["ExportType"] == "FULL_EXPORT")
        since_ms = None if wanted is None else round(wanted["ExportFromTime"] * 1000)
        export = self.world.engine.export(table, self.bucket / asked["S3Prefix"], since_ms=since_ms)
        if name == "Usage":
            self.made.append("whole" if since_ms is None else "window")
        return {"ExportDescription": {"ExportArn": export_arn(name, export.name)}}


class Month:
    """A world that lives, its nights, and whole exports beside them to compare with."""

    def __init__(
        self, folder: Path, jobs: Jobs, patch: pytest.MonkeyPatch, after_days: int
    ) -> None:
        self.folder, self.jobs, self.patch = folder, jobs, patch
        self.world = World()
        self.client: Client = self.world.client("acme", admin=True)
        self.random = random.Random(5)
        self.night_ms = START_MS + after_days * DAY_MS
        """The time of the last night."""
        self._wait_until(self.night_ms)
        self.output = folder / "nightly"
        self.card = folder / "card.yaml"
        text = RATE_CARD.read_text()
        dated = text[text.index("  - from") :].replace("2020-01-01", "2026-12-01")
        self.card.write_text(f"{text}{TIERS}{dated.replace('sent: 0.40', 'sent: 9000.00')}")
        self.services = Exporting(self.world, folder / "bucket")
        self.machine = Machine(load(REPOSITORY / "template.yaml"), self.services)
        self.calls: Counter[tuple[str, str]] = Counter()
        """Resource and kind → messages, as the answers of calls have them."""
        self.messages: list[Path] = []
        """Whole exports of Messages, one at each night that was reported."""
        for queue in QUEUES:
            self._make_queue(queue)
        self._make_queue("again", rewind_seconds=2 * DAY_SECONDS)
        self._make_queue("gone")

    def _make_queue(self, name: str, **more: int) -> None:
        kept = {"message_retention_seconds": 15 * DAY_SECONDS, **more}
        assert self.client.put(f"/queues/{name}", kept).status in (200, 201)

    def live(self, *, settled: bool = True) -> None:
        """A day of random calls; each sweep writes gauges, and the counters follow `settled`."""
        begun_ms = self.night_ms
        self.night_ms += DAY_MS
        for hours in (6, 12, 18, 24):
            for queue in (*QUEUES, "again", "gone"):
                self._use(queue)
            if settled:
                self.world.settle()
            self.world.run("sweep")
            self._wait_until(begun_ms + hours * HOUR_MS)

    def _wait_until(self, time_ms: int) -> None:
        """Calls may have slept a little: nights begin by the schedule."""
        self.world.clock.pass_seconds((time_ms - self.world.clock.now_ms()) / 1000)

    def _use(self, queue: str) -> None:
        if queue == "gone" and self.client.get("/queues/gone").status == 404:
            return
        sizes = [self.random.randrange(1, 3_000) for _ in range(self.random.randrange(1, 4))]
        self.client.send(queue, *("x" * size for size in sizes))
        held = self.client.receive(queue, self.random.randrange(1, 6))
        receipts = [message["receipt"] for message in held[::2]]
        if receipts:
            path = f"/queues/{queue}/messages/delete"
            assert self.client.post(path, {"receipts": receipts}).json["failed"] == []
        counted = {"sent": len(sizes), "received": len(held), "deleted": len(receipts)}
        self.calls.update({(f"queue:{queue}", kind): count for kind, count in counted.items()})

    def report(self, *, jobs_fail: bool = False) -> None:
        """One execution of the machine, and the jobs that it starts."""
        self.services.calls.clear()
        # As the schedule says it, in whole seconds.
        at = iso_time(self.night_ms).replace(".000Z", "Z")
        with serve(self.services, self.patch):
            ending = self.machine.run(f"night-{self.night_ms}", at=at)
        assert ending.status == "SUCCEEDED", ending.error
        if jobs_fail:
            return
        for asked in self.services.of("StartJobRun"):
            spark = asked["jobDriver"]["sparkSubmit"]
            given = [self._here(each) for each in spark["entryPointArguments"]]
            # Here a run publishes itself.
            del given[given.index("--propose") :]
            ended = self.jobs.start(Path(spark["entryPoint"]).name, given)
            assert (ended.code, ended.errors) == (0, "")
        self.messages.append(self._export_whole("messages"))

    def _here(self, argument: str) -> str:
        places = {
            "s3://PipelineBucket/jobs/rate_card.yaml": self.card,
            "s3://PipelineBucket": self.services.bucket,
            "s3://ReportsBucket": self.output,
        }
        for place, path in places.items():
            argument = argument.replace(place, str(path))
        return argument

    def _export_whole(self, table: str) -> Path:
        name = getattr(self.world.tables, table)
        return self.world.engine.export(name, self.folder / "whole" / table)

    def compare(self) -> None:
        """Everything once more, by one run of each job over whole exports."""
        once = self.folder / "once"
        usage = self._export_whole("usage")
        ended = self.jobs.bill(once, [usage], "--accept-gaps", card=self.card)
        assert ended.code == 0
        ended = self.jobs.report_backlog(once, self.messages, [self._export_whole("directory")])
        assert (ended.code, ended.errors) == (0, "")
        counted, at_once = (usage_in(each) for each in (self.output, once))
        assert counted == at_once == recount_usage(items_of(usage))["count"]
        billed: Counter[tuple[str, str]] = Counter()
        for (_, resource, kind, _), count in counted.items():
            billed[resource, kind] += count
        assert {place: billed[place] for place in self.calls} == dict(self.calls)
        shown, expected = (summaries_in(each, "billing")["acme"] for each in (self.output, once))
        assert shown["invoices"] == expected["invoices"]
        self._compare_backlogs(once)

    def _compare_backlogs(self, once: Path) -> None:
        columns = [each for each in rows_in(once, "backlog").columns if each not in ("run", "part")]
        nightly, at_once = (rows(each, "backlog", columns) for each in (self.output, once))
        name = columns.index("name")
        # The Directory of the last night no longer has it, so one run shows it at no time.
        assert {row for row in nightly if row[name] != "gone"} == at_once
        assert {row[columns.index("at_ms")] for row in at_once} == {
            row[columns.index("at_ms")] for row in nightly
        }
        shown, expected = (summaries_in(each, "backlog")["acme"] for each in (self.output, once))
        assert shown["resources"] == expected["resources"]


def usage_in(output: Path) -> Counter[tuple[str, str, str, int]]:
    """Account, resource, kind and hour → count: each run has rows of its own."""
    counted: Counter[tuple[str, str, str, int]] = Counter()
    for row in rows_in(output, "usage").collect():
        hour = int(row["hour"].timestamp()) // 3_600
        counted[row["account"], row["resource"], row["kind"], hour] += row["count"]
    return counted


def rows(output: Path, table: str, columns: Any) -> Rows:
    """The rows of a table, of which no two are equal."""
    listed = [
        tuple(repr(value) if isinstance(value, dict | list) else value for value in row)
        for row in rows_in(output, table).select(*columns).collect()
    ]
    assert len(set(listed)) == len(listed)
    return set(listed)


@pytest.fixture
def begin(tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    made: list[Month] = []

    def begin(after_days: int) -> Month:
        made.append(Month(tmp_path, jobs, monkeypatch, after_days))
        return made[-1]

    yield begin
    for month in made:
        month.world.engine.close()


@pytest.mark.long  # as test_documents.py, test_billing_job.py and infra/test_reports_machine.py
def test_a_whole_export_and_its_windows_report_the_same_as_one_run(begin: Begin) -> None:
    month = begin(11)
    for night in range(3):
        month.live()
        if night == 1:
            month.client.delete("/queues/gone")
        month.report(jobs_fail=night == 1)
    assert month.services.made == ["whole", "window", "window"]
    month.compare()
    # Nothing has expired yet: in a queue is what was sent and not deleted.
    (summary,) = summaries_in(month.output, "backlog").values()
    kept = {
        each["name"]: each["active"] + each["inactive"] + each["delayed"]
        for each in summary["resources"]
    }
    assert kept == {
        queue: month.calls[f"queue:{queue}", "sent"] - month.calls[f"queue:{queue}", "deleted"]
        for queue in (*QUEUES, "again")
    }


@pytest.mark.long
def test_a_month_of_nights_reports_the_same_as_one_run(begin: Begin) -> None:
    """From 18 November: one night has no run, in one the jobs fail, and the counters once lag.

    November closes at the end of 3 December.
    """
    month = begin(0)
    lagging = [12]
    for night in range(31):
        month.live(settled=night not in lagging)
        if night == 9:
            month.client.delete("/queues/gone")
        if night == 20:
            continue
        month.report(jobs_fail=night == 5)
    assert month.services.made == [
        *["whole", *["window"] * 6] * 2,
        *["whole", *["window"] * 5],
        *["whole", *["window"] * 6, "whole", "window", "window"],
    ]
    month.compare()
    invoices = summaries_in(month.output, "billing")["acme"]["invoices"]
    assert {each["month"]: each["closed"] for each in invoices} == {
        "2026-11": True,
        "2026-12": False,
    }
    assert [each["number"] for each in invoices] == ["INV-acme-000001", None]
