"""Writes the manual as a folder of static files, `functions/pages/docs` unless another is named.

`python -m infra.manual [FOLDER]`: exits with 1, and one line for each fault, where a page is not in
`navigation.yaml`, or a link leads nowhere; nothing is written then.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

from .site import FAULTS, ROOT, build

FOLDER = "functions/pages/docs"


def main() -> int:
    parser = ArgumentParser(prog="python -m infra.manual", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / FOLDER)
    try:
        build(parser.parse_args().folder)
    except FAULTS as faults:
        for fault in faults.exceptions:
            print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
