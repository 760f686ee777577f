"""A pointer is swapped by a condition, and documents are copied after it: whatever dies when."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from tests.spark.bills import documents, state, totals, use, whole
from tests.spark.job_runs import Jobs, fingerprints
from tests.spark.test_documents import NOVEMBER, OCTOBER

from cirrusmq_reports import publication
from cirrusmq_reports.local_place import LocalPlace
from cirrusmq_reports.swap import (
    OUTDATED,
    PUBLISHED,
    Proposal,
    copy_documents,
    digest_of,
    index_of,
    swap,
)


class Killed(BaseException):
    """The process ends here: nothing behind it is done."""


class Bucket:
    """Objects with conditions, and answers that are lost."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.lose_answers = 0
        self.reads = 0

    def read(self, name: str) -> tuple[bytes, str] | None:
        self.reads += 1
        content = self.objects.get(name)
        return None if content is None else (content, digest_of(content))

    def put(self, name: str, content: bytes, version: str | None) -> bool:
        found = self.read(name)
        if (found[1] if found else None) != version:
            return False
        self.objects[name] = content
        if self.lose_answers:
            # The SDK sends it again, and then the condition does not hold.
            self.lose_answers -= 1
            return False
        return True


def proposal(run: str, began_from: str, **more: str) -> Proposal:
    pointer = json.dumps({"report": "billing", "run": run}) + "\n"
    return Proposal(report="billing", run=run, began_from=began_from, pointer=pointer, **more)


def current(bucket: Bucket) -> str:
    return str(json.loads(bucket.objects["current/billing.json"])["run"])


def test_a_run_begun_from_an_older_state_is_refused() -> None:
    bucket = Bucket()
    assert swap(bucket, proposal("1", "")) == PUBLISHED
    assert swap(bucket, proposal("3", "1")) == PUBLISHED
    assert swap(bucket, proposal("2", "1")) == OUTDATED
    assert swap(bucket, proposal("0", "")) == OUTDATED
    assert current(bucket) == "3"
    assert swap(bucket, proposal("3", "1")) == PUBLISHED, "it is asked again"


@pytest.mark.parametrize("begun", ["", "1"])
def test_a_swap_with_a_lost_answer_is_known_by_its_run(begun: str) -> None:
    bucket = Bucket()
    if begun:
        swap(bucket, proposal("1", ""))
    bucket.lose_answers = 1
    assert swap(bucket, proposal("2", begun)) == PUBLISHED


def test_documents_are_copied_once_and_compared() -> None:
    bucket = Bucket()
    home = "runs/billing/1"
    files = {f"acme/{number}.json": f"document {number}".encode() for number in range(3)}
    for name, content in files.items():
        bucket.objects[f"{home}/documents/{name}"] = content
    bucket.objects[f"{home}/documents.json"] = index_of(files.items()).encode()
    bucket.objects["documents/acme/1.json"] = b"another"
    asked = proposal("1", "", documents_run="1")

    for _ in range(2):
        assert copy_documents(bucket, asked).different == ["documents/acme/1.json"]
        assert bucket.objects["documents/acme/1.json"] == b"another"
        assert bucket.objects["documents/acme/2.json"] == b"document 2"
    bucket.objects["documents/acme/1.json"] = b"document 1"
    assert copy_documents(bucket, asked).different == []
    reads = bucket.reads
    assert copy_documents(bucket, asked).different == []
    assert bucket.reads - reads == 2, "what was copied whole is not compared again"


def test_an_index_keeps_no_documents_in_memory() -> None:
    size = 1_000_000
    documents = ((f"acme/{number}.csv", bytes(size)) for number in range(30))
    tracemalloc.start()

    index = index_of(documents)

    _, limit = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(json.loads(index)) == 30
    assert limit < 4 * size


@pytest.mark.long
def test_two_runs_at_once_lose_nothing(
    tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    nights = [use(f"n{day}", f"2026-11-{day:02} 05:00", 1_000_000) for day in range(1, 13)]
    assert jobs.bill(output, [whole(tmp_path, "2026-11-10 01:00", nights[:9])]).code == 0
    older = whole(tmp_path, "2026-11-11 01:00", nights[:10])
    newer = whole(tmp_path, "2026-11-12 01:00", nights[:11])
    real = swap

    def swap_after_another(*arguments: Any) -> str:
        monkeypatch.setattr(publication, "swap", real)
        # The lock is held: the other run is one that had it before.
        monkeypatch.setattr(LocalPlace, "locked", lambda self, report: _Free())
        assert jobs.bill(output, [newer]).code == 0
        return real(*arguments)

    monkeypatch.setattr(publication, "swap", swap_after_another)
    ended = jobs.bill(output, [older])

    assert ended.code == 0
    assert "another run was published meanwhile: once more, from there" in ended.errors
    assert totals(output) == [("2026-11", "4.40", None)]
    assert state(output)["to"] == "2026-11-12T01:00:00.000Z"


class _Free:
    def __enter__(self) -> None:
        return

    def __exit__(self, *ended: object) -> None:
        return


@pytest.mark.long
@pytest.mark.parametrize("step", ["proposed", "locked", "swapped", "first copy", "half a copy"])
def test_a_run_killed_at_any_step_loses_and_doubles_no_number(
    tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    output = tmp_path / "out"
    assert jobs.bill(output, [whole(tmp_path, "2026-11-03 01:00", OCTOBER)]).code == 0
    closing = whole(tmp_path, "2026-11-04 01:00", OCTOBER)
    with monkeypatch.context() as patch:
        _kill_at(step, patch)
        with pytest.raises(Killed):
            jobs.bill(output, [closing])
    is_swapped = step not in ("proposed", "locked")
    assert state(output)["closed"] == ({"2026-10": 2} if is_swapped else {})
    assert not documents(output) or step in ("first copy",)

    assert jobs.bill(output, [closing]).code == 0

    (made,) = documents(output)
    assert (made["number"], made["total"]) == ("INV-acme-000001", "4.00")
    names = {path.name for path in (output / "documents/acme").iterdir()}
    assert {f"INV-acme-000001.{end}" for end in ("json", "csv", "html")} == {
        name for name in names if not name.endswith(".making")
    }
    issued = fingerprints(output / "documents")
    later = whole(tmp_path, "2026-12-04 01:00", [*OCTOBER, *NOVEMBER])
    assert jobs.bill(output, [later]).code == 0
    assert totals(output) == [
        ("2026-10", "4.00", "INV-acme-000001"),
        ("2026-11", "8.00", "INV-acme-000002"),
    ]
    now = fingerprints(output / "documents")
    assert {name: now[name] for name in issued} == issued


def _kill_at(step: str, patch: pytest.MonkeyPatch) -> None:
    def kill(*arguments: object) -> None:
        raise Killed

    if step == "proposed":
        patch.setattr(LocalPlace, "locked", kill)
    elif step == "locked":
        patch.setattr(publication, "swap", kill)
    elif step == "swapped":
        patch.setattr(publication, "copy_documents", kill)
    else:
        link, copied = os.link, list[None]()

        def link_some(*arguments: Any) -> None:
            if step == "half a copy" or copied:
                raise Killed
            copied.append(link(*arguments))

        patch.setattr(os, "link", link_some)
