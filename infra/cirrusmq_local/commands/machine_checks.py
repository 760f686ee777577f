"""Checks of this machine: packages, data folder, disk, Java."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from cirrusmq_local.commands.findings import Finding, note, ok, wrong

LITTLE_BYTES = 1_000_000_000
TOO_LITTLE_BYTES = 100_000_000


def check_python() -> Finding:
    """Report the version of Python. This package's `__init__` rejects versions that are too old."""
    return ok("python", platform.python_version())


def check_folder(data: Path) -> Iterator[Finding]:
    """Check that a start would accept the data folder. Returns no finding without a folder."""
    if not data.exists() and not data.is_symlink():
        return
    from cirrusmq_local.engine.data_errors import DataError
    from cirrusmq_local.stack.soundness import check_data

    try:
        check_data(data)
    except DataError as error:
        yield wrong("data", str(error))
    else:
        yield ok("data", f"{data} is whole, and of this version")


def check_disk(data: Path) -> Finding:
    """Check that the disk of the folder has space."""
    place = data.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    shown = f"{free / 1e9:,.1f} GB free at {place}"
    if free < TOO_LITTLE_BYTES:
        return wrong("disk", f"{shown}: calls are refused when it is full: make space")
    if free < LITTLE_BYTES:
        return note("disk", f"{shown}: that is soon full: make space")
    return ok("disk", shown)


def check_reports() -> Finding:
    """Check that reports can be made here; the service itself needs neither Spark nor Java."""
    if find_spec("pyspark") is None:
        return note("reports", "Spark is not installed, and no report needs it yet: make report")
    from cirrusmq_local.stack.report_run import find_java

    java = find_java()
    if java is None:
        return wrong(
            "reports", "Spark has no Java of version 17 or newer: set JAVA_HOME, or: make report"
        )
    return ok("reports", f"Spark takes {java}")
