"""Copies the pins of what ships from the lock file, with their hashes.

Each `requirements.txt` of a layer or a function lists all that it ships: pip resolves nothing when
a deployment is built. What was tested is what is uploaded.

python -m infra.pins
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PIN = re.compile(r"^(?P<name>[\w.-]+)==\S+.*?(?=^[\w#]|^    #|\Z)", re.M | re.S)


def pins(text: str) -> dict[str, str]:
    """Name of each package of a lock -> its version and hashes, in the form of a lock."""
    return {match["name"]: match[0].rstrip() + "\n" for match in _PIN.finditer(text)}


def requirements(root: Path) -> list[Path]:
    """The lists of what ships."""
    return sorted(root.glob("layers/*/requirements.txt")) + sorted(
        root.glob("functions/*/requirements.txt")
    )


def pinned(listed: str, locked: dict[str, str]) -> str:
    """A list of packages with each pin as the lock has it."""
    return "".join(locked[name] for name in sorted(pins(listed)))


def main() -> None:
    """Write all lists anew."""
    locked = pins((ROOT / "infra/requirements.lock").read_text(encoding="utf-8"))
    for path in requirements(ROOT):
        path.write_text(pinned(path.read_text(encoding="utf-8"), locked), encoding="utf-8")


if __name__ == "__main__":
    main()
