"""Writes the manual as a folder of static files, `functions/pages/docs` unless another is named.

`python -m infra.manual [FOLDER]`: exits with 1, and one line for each fault, where a page is not in
`navigation.yaml`, or a link leads nowhere; nothing is written then.

`--write` writes the made parts of the pages into their Markdown instead; `--check` exits with 1,
and names the pages, where these are stale.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

from .made import with_marked_tables
from .site import FAULTS, PAGES, ROOT, build

FOLDER = "functions/pages/docs"


def main() -> int:
    parser = ArgumentParser(prog="python -m infra.manual", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / FOLDER)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.write or given.check:
        return _made_parts(write=given.write)
    try:
        build(given.folder)
    except FAULTS as faults:
        for fault in faults.exceptions:
            print(fault, file=sys.stderr)
        return 1
    return 0


def _made_parts(*, write: bool) -> int:
    """Write the made parts of all pages, or say which pages have stale ones."""
    stale = 0
    for path in sorted(PAGES.glob("*.md")):
        text = path.read_text("utf-8")
        made = with_marked_tables(text)
        if made == text:
            continue
        if write:
            path.write_text(made, encoding="utf-8")
        else:
            stale = 1
            print(
                f"{path.name}: made parts are stale: python -m infra.manual --write",
                file=sys.stderr,
            )
    return stale


if __name__ == "__main__":
    sys.exit(main())
