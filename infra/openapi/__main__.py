"""Writes what is made of the routes: the document that manage serves, and the clients' types.

`python -m infra.openapi [FOLDER]`: into the repository, or below FOLDER under the same paths.
"""

from __future__ import annotations

import json
import logging
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path

from .build import build
from .client_types import answer_types, error_classes, input_types
from .routes import ROOT, find_routes
from .trial import Units, counted
from .typescript_types import typescript_types

DOCUMENT = "layers/core/cirrusmq_lambda/openapi.json"
ANSWERS = "layers/client/cirrusmq_client/answers.py"
ERRORS = "layers/client/cirrusmq_client/errors.py"
INPUTS = "layers/client/cirrusmq_client/inputs.py"
TYPESCRIPT = "layers/client-typescript/src/contract.d.ts"


def main() -> None:
    parser = ArgumentParser(prog="python -m infra.openapi", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT)
    folder = parser.parse_args().folder
    logging.disable(logging.INFO)  # the functions log their calls
    for path, text in texts(counted()).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def texts(units: Mapping[str, Units]) -> dict[str, str]:
    """Each file's path below the repository -> its text; `units` has the cost of each call."""
    routes = find_routes()
    document = json.dumps(build(routes, units), indent=1, ensure_ascii=False) + "\n"
    return {
        DOCUMENT: document,
        ANSWERS: answer_types(routes),
        ERRORS: error_classes((ROOT / ERRORS).read_text("utf-8")),
        INPUTS: input_types(),
        TYPESCRIPT: typescript_types(json.loads(document)),
    }


if __name__ == "__main__":
    main()
