"""Writes the document where the manage function serves it from, or to the path that is given."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .build import build
from .routes import ROOT, find_routes

COMMITTED = ROOT / "layers/core/cirrusmq_lambda/openapi.json"


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else COMMITTED
    document = json.dumps(build(find_routes()), indent=1, ensure_ascii=False)
    path.write_text(document + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
