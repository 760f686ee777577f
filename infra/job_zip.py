"""Writes the report jobs as files for a bucket, for EMR.

billing_job.py  backlog_job.py    entry points
cirrusmq_reports.zip              the modules they import, for --py-files
rate_card.yaml                    prices

python -m infra.job_zip build/jobs
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_JOBS = _ROOT / "spark_emr"
_PACKAGE = "cirrusmq_reports"
_COPIED = (
    _JOBS / "billing_job.py",
    _JOBS / "backlog_job.py",
    _ROOT / "infra" / "rate_card.yaml",
)
_FIRST_TIME = (1980, 1, 1, 0, 0, 0)
"""The oldest time of a zip: the files' own times would change it with each checkout."""


def build(folder: Path) -> None:
    """Writes the files into a folder; equal sources give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in _COPIED:
        shutil.copyfile(path, folder / path.name)
    with zipfile.ZipFile(folder / f"{_PACKAGE}.zip", "w", zipfile.ZIP_STORED) as archive:
        for path in sorted((_JOBS / _PACKAGE).rglob("*.py")):
            name = path.relative_to(_JOBS).as_posix()
            archive.writestr(zipfile.ZipInfo(name, _FIRST_TIME), path.read_bytes())


if __name__ == "__main__":
    build(Path(sys.argv[1]))
