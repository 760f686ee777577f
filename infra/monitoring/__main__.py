"""`python -m infra.monitoring` writes the dashboards; a test compares."""

from __future__ import annotations

import json
from pathlib import Path

from . import dashboards

HERE = Path(__file__).parent


def made() -> dict[str, str]:
    """Returns the files' names and texts."""
    found = {"prometheus": dashboards.prometheus(), "cloudwatch": dashboards.cloudwatch()}
    return {
        f"grafana-{source}.json": json.dumps(dashboard, indent=1) + "\n"
        for source, dashboard in found.items()
    }


if __name__ == "__main__":
    for name, text in made().items():
        (HERE / name).write_text(text, encoding="utf-8")
