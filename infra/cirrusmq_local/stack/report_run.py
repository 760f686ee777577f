"""Makes reports on one machine: exports the running stack and runs the jobs over the export."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cirrusmq_client import Client
from cirrusmq_client.errors import NotFound
from cirrusmq_local.cloud.template import ROOT

_JOBS = ROOT / "spark_emr"
_RATE_CARD = ROOT / "infra" / "rate_card.yaml"


ADJUSTMENTS = "adjustments"
"""Folder, in the reports' folder, with the entries to add to bills, a file for each."""


class ReportFailedError(Exception):
    """The job failed; it has said why."""


def make_report(client: Client, report: str, options: Sequence[str] = ()) -> Path | None:
    """Makes a report. Returns its page, or None if the service is no stack on this machine.

    `options`: further options of the job. Raises ReportFailedError if the job fails.
    """
    try:
        client.call("POST", "/local/run/sweep")
        client.call("POST", "/local/run/meter")
        answer = client.call("POST", "/local/export")
    except NotFound:
        return None
    exports: Mapping[str, str] = answer["exports"]
    # The stack serves the reports beside its exports.
    output = Path(exports["Usage"]).parents[_levels(exports["Usage"])] / "reports"
    command = [sys.executable, *_command(report, exports, output), *options]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise ReportFailedError
    pointer = (output / "current" / f"{report}.json").read_text()
    run = str(json.loads(pointer.partition("\n")[0])["run"])
    return output / "runs" / report / run / f"{report}.html"


def run_program(name: str, arguments: Sequence[str]) -> int:
    """Runs a program beside the jobs that needs no Spark session. Returns its exit code."""
    program = str(_JOBS / f"{name}.py")
    return subprocess.run([sys.executable, program, *arguments], check=False).returncode


def find_java() -> str | None:
    """Returns the Java that the jobs would use, or None if none is new enough."""
    asked = "import local_run; print(local_run.find_java() or '')"
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=_JOBS, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None


def _command(report: str, exports: Mapping[str, str], output: Path) -> list[str]:
    job = str(_JOBS / f"{report}_job.py")
    if report == "billing":
        return [
            job,
            *("--export", exports["Usage"]),
            *("--directory-export", exports["Directory"]),
            *("--rate-card", str(_RATE_CARD)),
            *("--output", str(output)),
            *("--adjustments", f"{output / ADJUSTMENTS}/"),
        ]
    return [
        job,
        *("--export", exports["Messages"]),
        *("--directory-export", exports["Directory"]),
        *("--output", str(output)),
    ]


def _levels(export: str) -> int:
    """Levels from an export's folder, `exports/<table>/AWSDynamoDB/<id>`, up to the data folder."""
    return list(reversed(Path(export).parts)).index("exports")
