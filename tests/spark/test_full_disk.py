"""A disk that is really full, page by page: a small tmpfs, filled up by a ballast file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.spark.job_runs import Ended, Jobs, fingerprints, page_in, rows_in, run_of, summaries_in
from tests.spark.transforms.frames import ms

from cirrusmq_reports.files import LocalFiles
from export_writer import ExportWriter
from synthetic_messages import Messages
from synthetic_usage import Usage

DISK_BYTES = 4 << 20
NO_ROOM = "No space left on device"
Run = Callable[[Path], Ended]


@dataclass(frozen=True)
class Disk:
    """A file system of its own, with as much room as a test leaves."""

    folder: Path

    @property
    def free_pages(self) -> int:
        """Pages that can still be written: a file takes whole ones."""
        return os.statvfs(self.folder).f_bavail

    @property
    def output(self) -> Path:
        """The folder for the reports."""
        return self.folder / "out"

    def leave(self, pages: int | None) -> None:
        """Fill it up but for so many pages, or not at all."""
        ballast = self.folder / "ballast"
        ballast.unlink(missing_ok=True)
        if pages is not None and self.free_pages > pages:
            size = (self.free_pages - pages) * os.statvfs(self.folder).f_frsize
            with ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)
            assert self.free_pages == pages


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield Disk(folder)
    subprocess.run(["umount", folder], check=True)


# That nothing is replaced is shown at every write by `test_publication.py`.
@pytest.fixture(params=["billing", "backlog"])
def report(request: pytest.FixtureRequest, tmp_path: Path, jobs: Jobs) -> tuple[str, Run, Run]:
    """A report's name, its first run, and one over later exports."""
    early, late = ms("2026-11-20 08:00"), ms("2026-11-21 08:00")
    if request.param == "billing":
        written = list(Usage(seed=1, records=40, at_ms=late, days=2, resources=3).written())
        bills = []
        for at_ms in (early, late):
            writer = ExportWriter(root=tmp_path / f"{at_ms}", table="Usage", at_ms=at_ms)
            lines = (f'{{"Item":{item}}}' for item, when_ms in written if when_ms < at_ms)
            writer.write_files(lines, files=1)
            bills.append(writer.finish())
        return (
            "billing",
            lambda output: jobs.bill(output, bills[:1]),
            lambda output: jobs.bill(output, bills[1:]),
        )
    kept = [
        Messages(seed=1, items=20, at_ms=at_ms, resources=3).export(tmp_path / str(at_ms))
        for at_ms in (early, late)
    ]
    return (
        "backlog",
        lambda output: jobs.report_backlog(output, kept[:1]),
        lambda output: jobs.report_backlog(output, kept[1:]),
    )


def seen_by_readers(output: Path, name: str) -> object:
    """All that the pointer leads to."""
    tables = {"billing": ("usage", "ledger", "open_lines"), "backlog": ("backlog", "backlog_trend")}
    rows = [sorted(map(repr, rows_in(output, table).collect())) for table in tables[name]]
    return run_of(output, name), page_in(output, name).read_text(), summaries_in(output, name), rows


def test_a_small_file_without_room_is_named_and_the_old_one_stays(disk: Disk) -> None:
    files, place = LocalFiles(), disk.folder / "current/billing.json"
    files.replace(str(place), b"old")
    disk.leave(0)
    with pytest.raises(OSError, match=NO_ROOM) as refused:
        files.replace(str(place), b"new")
    assert str(refused.value.filename).startswith(str(place))
    assert [(each, each.read_bytes()) for each in place.parent.iterdir()] == [(place, b"old")]
    disk.leave(1)
    files.replace(str(place), b"new")
    assert place.read_bytes() == b"new"


@pytest.mark.long
def test_a_disk_full_at_any_page_replaces_nothing(disk: Disk, report: tuple[str, Run, Run]) -> None:
    name, first, second = report
    assert first(disk.output).code == 0
    before, files = seen_by_readers(disk.output, name), fingerprints(disk.output)
    old = run_of(disk.output, name)
    for room in range(10_000):
        disk.leave(room)
        ended = second(disk.output)
        if ended.code == 0:
            break
        assert (ended.code, NO_ROOM in ended.message) == (2, True), (room, ended)
        assert seen_by_readers(disk.output, name) == before, room
        left = fingerprints(disk.output)
        assert files.items() <= left.items(), room
        # A pointer may have been on its way: what it names is then not removed.
        last = ended.message
        if "current/" not in last:
            assert left == files, room
    assert ended == Ended(0, "")
    assert run_of(disk.output, name) != old
    assert "current/" in last, "the pointer is the last to be written"
