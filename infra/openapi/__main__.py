"""Writes the document where the manage function serves it from, or to the path that is given."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cirrusmq_local.cloud.functions import load_handler
from cirrusmq_local.cloud.template import load

from .build import build

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "layers/core/cirrusmq_lambda/openapi.json"


def find_routes() -> list[str]:
    """The routes that the functions answer."""
    routes = []
    for function in load(ROOT / "template.yaml").functions:
        module = sys.modules[load_handler(function).__module__]
        routes += [key for key in getattr(module, "ROUTES", ()) if key != "$default"]
    return routes


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else COMMITTED
    document = json.dumps(build(find_routes()), indent=1, ensure_ascii=False)
    path.write_text(document + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
