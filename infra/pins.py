"""Copies the pins of shipped packages from the lock file, with their hashes.

Each `requirements.txt` of a layer or a function lists all packages that it ships: pip resolves
nothing when a deployment is built, and the tested versions are uploaded.

python -m infra.pins
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PIN = re.compile(r"^(?P<name>[\w.-]+)==\S+.*?(?=^[\w#]|^    #|\Z)", re.M | re.S)


def pins(text: str) -> dict[str, str]:
    """Returns the name of each package of a lock -> its version and hashes, as lines of a lock."""
    return {match["name"]: match[0].rstrip() + "\n" for match in _PIN.finditer(text)}


def requirements(root: Path) -> list[Path]:
    """Returns the lists of shipped packages."""
    return sorted(root.glob("layers/*/requirements.txt")) + sorted(
        root.glob("functions/*/requirements.txt")
    )


def pinned(listed: str, locked: dict[str, str]) -> str:
    """Returns a list of packages with the lock's pins."""
    return "".join(locked[name] for name in sorted(pins(listed)))


def main() -> None:
    """Rewrites all lists."""
    locked = pins((ROOT / "infra/requirements.lock").read_text(encoding="utf-8"))
    for path in requirements(ROOT):
        path.write_text(pinned(path.read_text(encoding="utf-8"), locked), encoding="utf-8")


if __name__ == "__main__":
    main()
