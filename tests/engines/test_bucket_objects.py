"""Objects of the embedded bucket: their lives, a start after a crash, and damage."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.engines.conftest import Clock

from cirrusmq_local.bucket import Bucket, Rule, S3Error
from cirrusmq_local.bucket.lives import DAY_MS, ends_ms

RULES = [Rule(prefix="d01/", days=1), Rule(prefix="d16/", days=16)]
MIDNIGHT_MS = 20_000 * DAY_MS
HOUR_MS = 3_600_000


class Held:
    """A bucket, spoken to in keys and bytes."""

    def __init__(self, folder: Path | None, clock: Clock) -> None:
        self.failures: list[OSError] = []
        self.bucket = Bucket("bodies", RULES, folder, now_ms=clock, on_failure=self.failures.append)

    def put(self, key: str, data: bytes = b"x") -> None:
        self.bucket.execute("PutObject", {"Bucket": "bodies", "Key": key, "Body": data})

    def get(self, key: str) -> bytes:
        answer = self.bucket.execute("GetObject", {"Bucket": "bodies", "Key": key})
        body: bytes = answer["Body"]
        return body

    def copy(self, source: str, key: str) -> None:
        request = {"Bucket": "bodies", "Key": key, "MetadataDirective": "REPLACE"}
        source_parts = {"Bucket": "bodies", "Key": source}
        self.bucket.execute("CopyObject", {**request, "CopySource": source_parts})

    def has(self, key: str) -> bool:
        try:
            self.get(key)
        except S3Error as error:
            if error.code != "NoSuchKey":
                raise
            return False
        return True

    def sweep(self) -> None:
        while self.bucket.remove_expired(2) == 2:
            pass


@pytest.fixture
def clock() -> Clock:
    return Clock(MIDNIGHT_MS + 10 * HOUR_MS)


@pytest.fixture(params=["memory", "folder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "bodies" if request.param == "folder" else None


@pytest.fixture
def held(folder: Path | None, clock: Clock) -> Held:
    return Held(folder, clock)


@pytest.mark.parametrize(
    ("written_ms", "days", "ends_after_days"),
    [(0, 1, 2), (10 * HOUR_MS, 1, 2), (DAY_MS - 1, 1, 2), (DAY_MS, 1, 3), (10 * HOUR_MS, 16, 17)],
)
def test_an_object_ends_at_the_midnight_after_its_days(
    written_ms: int, days: int, ends_after_days: int
) -> None:
    rules = [Rule(prefix="x/", days=days)]
    assert ends_ms(rules, "x/a", MIDNIGHT_MS + written_ms) == MIDNIGHT_MS + ends_after_days * DAY_MS
    assert ends_ms(rules, "y/a", MIDNIGHT_MS) is None


def test_an_object_is_gone_when_its_class_ends_and_not_before(held: Held, clock: Clock) -> None:
    held.put("d01/a")
    held.put("d16/a")
    held.put("others/a")
    clock.ms = MIDNIGHT_MS + 2 * DAY_MS - 1
    held.sweep()
    assert [held.has("d01/a"), held.has("d16/a")] == [True, True]
    clock.ms += 1
    assert [held.has("d01/a"), held.has("d16/a")] == [False, True]
    held.sweep()
    assert held.bucket.keys() == ["d16/a", "others/a"]
    clock.ms = MIDNIGHT_MS + 17 * DAY_MS
    assert held.bucket.keys() == ["others/a"]


def test_a_copy_onto_itself_begins_its_life_anew(held: Held, clock: Clock) -> None:
    held.put("d01/a")
    clock.ms += DAY_MS
    held.copy("d01/a", "d01/a")
    held.copy("d01/a", "d16/a")
    clock.ms += DAY_MS
    held.sweep()
    assert [held.has("d01/a"), held.has("d16/a")] == [True, True]
    clock.ms += DAY_MS
    held.sweep()
    assert [held.has("d01/a"), held.has("d16/a")] == [False, True]


def test_an_expired_body_cannot_be_copied_back(held: Held, clock: Clock) -> None:
    held.put("d01/a")
    clock.ms += 2 * DAY_MS
    with pytest.raises(S3Error, match="NoSuchKey"):
        held.copy("d01/a", "d16/a")


def test_expired_files_are_removed_once_a_day_some_at_a_time(tmp_path: Path, clock: Clock) -> None:
    held = Held(tmp_path / "bodies", clock)
    held.sweep()
    for number in range(5):
        held.put(f"d01/{number}")
    clock.ms += 2 * DAY_MS
    assert [held.bucket.remove_expired(2) for _ in range(4)] == [2, 2, 1, 0]
    assert list((tmp_path / "bodies/d01").iterdir()) == []
    clock.ms += HOUR_MS
    assert held.bucket.remove_expired(2) == 0


def test_everything_is_there_after_a_start(tmp_path: Path, clock: Clock) -> None:
    keys = ["d01/1f3/a", "d16/fff/b b", "d16/..", "../x", ".writing/ü+%/", "d16/%2E"]
    for number, key in enumerate(keys):
        Held(tmp_path / "bodies", clock).put(key, bytes([number]))
    again = Held(tmp_path / "bodies", clock)
    assert again.bucket.keys() == sorted(keys)
    assert [again.get(key) for key in keys] == [bytes([number]) for number in range(len(keys))]
    inside = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*")}
    assert inside == {"bodies"}


def test_when_an_object_was_written_is_kept_with_it(tmp_path: Path, clock: Clock) -> None:
    """Not by the file's own time, which a copy of the folder loses."""
    Held(tmp_path / "bodies", clock).put("d01/a")
    os.utime(tmp_path / "bodies/d01/a", (1, 1))
    again = Held(tmp_path / "bodies", clock)
    again.sweep()
    assert again.has("d01/a")
    clock.ms += 2 * DAY_MS
    again.sweep()
    assert not again.has("d01/a")


def test_files_are_for_their_owner_alone(tmp_path: Path, clock: Clock) -> None:
    Held(tmp_path / "bodies", clock).put("d01/a")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {"bodies": 0o700, ".writing": 0o700, "d01": 0o700, "a": 0o600}


@pytest.mark.parametrize("damage", [b"", b"short", None], ids=["empty", "short", "changed"])
def test_a_damaged_file_is_an_error_and_never_another_content(
    tmp_path: Path, clock: Clock, damage: bytes | None
) -> None:
    held = Held(tmp_path / "bodies", clock)
    held.put("d01/a", b"content")
    file = tmp_path / "bodies/d01/a"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + b"?" if damage is None else damage)
    with pytest.raises(S3Error, match=r"InternalError.*damaged|InternalError.*too short"):
        held.get("d01/a")
    held.put("d01/a", b"content")
    assert held.get("d01/a") == b"content"


def test_a_full_disk_fails_the_call_and_is_told(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(tmp_path / "bodies", clock)
    held.put("d01/a", b"before")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(S3Error, match="InternalError"):
            held.put("d01/a", b"after")
    assert [error.errno for error in held.failures] == [errno.ENOSPC]
    assert held.get("d01/a") == b"before"
    assert list((tmp_path / "bodies/.writing").iterdir()) == []


def test_a_key_impossible_for_a_file_is_refused(tmp_path: Path, clock: Clock) -> None:
    held = Held(tmp_path / "bodies", clock)
    with pytest.raises(S3Error, match="KeyTooLongError"):
        held.put("d01/" + "x" * 1_000)
    for key in ("alone", "/x", "d01/"):
        with pytest.raises(S3Error, match="NotImplemented"):
            held.put(key)
    assert held.failures == []


WRITER = """
import sys
from pathlib import Path
from cirrusmq_local.bucket import Bucket
bucket = Bucket("bodies", [], Path(sys.argv[1]), now_ms=lambda: 0)
for number in range(10_000):
    # All bytes of an object say which write it is of.
    data = bytes([number % 251]) * 300_000
    bucket.execute("PutObject", {"Bucket": "bodies", "Key": f"kept/{number % 4}", "Body": data})
    print(number, flush=True)
"""


@pytest.mark.parametrize("answered", [1, 6, 17])
def test_kill_9_leaves_whole_objects_and_all_answered_ones(
    tmp_path: Path, clock: Clock, answered: int
) -> None:
    folder = tmp_path / "bodies"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(answered)]
        writer.kill()
        told += [int(line) for line in writer.stdout.read().splitlines()]
    held = Held(folder, clock)
    assert list((folder / ".writing").iterdir()) == []
    for place in range(4):
        mine = [number for number in told if number % 4 == place]
        if not mine and not held.has(f"kept/{place}"):
            continue
        content = held.get(f"kept/{place}")
        # What was answered last, or the write that was under way.
        assert len(content) == 300_000
        assert content in {bytes([n % 251]) * 300_000 for n in (*mine[-1:], told[-1] + 1)}
