"""The files of the report jobs for a bucket: enough to run them, the same each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest


def build(root: Path, folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "infra.job_zip", folder], cwd=root, check=True)
    return folder


@pytest.fixture(scope="module")
def jobs(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(root, tmp_path_factory.mktemp("built") / "jobs")


def test_the_same_sources_give_the_same_bytes(root: Path, jobs: Path, tmp_path: Path) -> None:
    again = build(root, tmp_path / "again")
    assert {path.name: path.read_bytes() for path in jobs.iterdir()} == {
        path.name: path.read_bytes() for path in again.iterdir()
    }


def test_the_machine_names_exactly_the_files(root: Path, jobs: Path) -> None:
    definition = (root / "infra/statemachines/reports.asl.json").read_text()
    names = {path.name for path in jobs.iterdir()}
    assert names == {
        "billing_job.py", "backlog_job.py", "cirrusmq_reports.zip", "rate_card.yaml"
    }  # fmt: skip
    assert all(f"${{PipelineBucket}}/jobs/{name}" in definition for name in names)
    assert definition.count("/jobs/") == len(names) + 1, "both jobs take the zip"


def test_the_zip_has_the_package_and_nothing_of_this_machine(root: Path, jobs: Path) -> None:
    package = root / "spark_emr/cirrusmq_reports"
    sources = {path.relative_to(package.parent).as_posix() for path in package.rglob("*.py")}
    names = set(ZipFile(jobs / "cirrusmq_reports.zip").namelist())
    assert names == sources


@pytest.mark.parametrize("job", ["billing", "backlog"])
def test_a_job_starts_from_the_built_files(jobs: Path, job: str) -> None:
    options = ["--export", "none", "--output", "none"]
    if job == "billing":
        options += ["--rate-card", str(jobs / "rate_card.yaml")]
    ended = subprocess.run(
        [sys.executable, jobs / f"{job}_job.py", *options],
        env={**os.environ, "PYTHONPATH": str(jobs / "cirrusmq_reports.zip")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "no finished export is in this folder" in ended.stderr
