"""The templates, and programs that live in a virtual environment of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "infra/examples/shop_template.yaml"
"""Queues in a template of others."""
KEPT = "RetainExceptOnCreate"
"""The deletion policy of what holds data: it outlives its stack, but not a creation that failed."""
TEMPLATES = [ROOT / "template.yaml", *sorted(ROOT.glob("infra/*/template.yaml"))]


def run_tool(
    program: str, *arguments: str | Path, cwd: Path | None = None, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `.venv-…/bin/…` of this checkout, with `given` on its standard input."""
    path = ROOT / program
    venv = program.partition("/")[0]
    assert path.exists(), f"{path} is missing: make {venv}/.installed makes it"
    # The user of the tests may have an account and a search path; neither has a say here.
    kept = {
        name: held for name, held in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))
    }
    return subprocess.run(
        [path, *arguments],
        cwd=cwd,
        input=given,
        env={**kept, "AWS_DEFAULT_REGION": "eu-central-1", "SAM_CLI_TELEMETRY": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


def texts(value: Any) -> Iterator[str]:
    """All texts in a document, its keys aside."""
    match value:
        case str():
            yield value
        case list():
            for held in value:
                yield from texts(held)
        case dict():
            yield from texts(list(value.values()))
