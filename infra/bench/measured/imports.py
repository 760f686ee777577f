"""Import times, which a cold start pays: each hot function beside a bare `import boto3`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from ..drawing.tables import middle, show

HOT = ("send", "receive", "delete", "publish")
RUNS = 7
_FUNCTIONS = Path(__file__).resolve().parents[3] / "functions"


def run() -> None:
    """Prints the table; both alternate, so that the ratio is valid on a noisy machine."""
    rows = []
    for name in HOT:
        ours, theirs = [], []
        for _ in range(RUNS):
            ours.append(_seconds(str(_FUNCTIONS / name / "app.py")))
            theirs.append(_seconds("-c", "import boto3"))
        ratio = middle([a / b for a, b in zip(ours, theirs, strict=True)])
        rows.append((name, 1000 * middle(ours), 1000 * middle(theirs), ratio))
    show(
        "Import of hot functions (whole process, median of 7, in turn)",
        ["function", "ms", "import boto3, ms", "ratio"],
        rows,
    )


def _seconds(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-P", *arguments], check=True, capture_output=True)
    return time.perf_counter() - started
