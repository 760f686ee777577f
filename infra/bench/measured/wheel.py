"""The weight of the service's wheel and of its packages, and seconds to the first message.

The environment has what the wheel's own metadata asks for, as it is installed here, and nothing
else. With `uvx` on the path, that is timed as well, its cache being warm.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

import httpx
from packaging.requirements import Requirement

from ..drawing.tables import show

ROOT = Path(__file__).parents[3]
RUNS = 5
READY = "key "
"""How the last line begins that a start prints."""


def build(folder: Path) -> Path:
    """The service's wheel, built into a folder."""
    subprocess.run([sys.executable, "-m", "infra.wheels", str(folder)], cwd=ROOT, check=True)
    (wheel,) = folder.glob("cirrusmq-*.whl")
    return wheel


def needed(wheel: Path) -> list[Distribution]:
    """All packages that a wheel needs, directly or not, as they are installed here."""
    with ZipFile(wheel) as held:
        (name,) = [each for each in held.namelist() if each.endswith(".dist-info/METADATA")]
        wanted = Parser().parsestr(held.read(name).decode()).get_all("Requires-Dist", [])
    found: dict[str, Distribution] = {}
    extras: dict[str, set[str]] = {}
    left = [(Requirement(each), frozenset[str]()) for each in wanted]
    while left:
        requirement, within = left.pop()
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": each}) for each in ("", *within)):
            continue
        name, more = requirement.name.lower().replace("_", "-"), requirement.extras
        if name in found and more <= extras[name]:
            continue
        found[name] = distribution(name)
        extras[name] = extras.get(name, set()) | more
        asked = frozenset(extras[name])
        left += [(Requirement(each), asked) for each in found[name].requires or ()]
    return list(found.values())


def make_environment(wheel: Path, folder: Path) -> Path:
    """A new virtual environment with a wheel and what it needs; returns its command."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    options = ["--no-index", "--no-deps", "--no-compile", str(wheel)]
    subprocess.run([*pip, f"--python={folder / 'bin/python'}", "install", *options], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for each in needed(wheel):
        for path in {Path(str(file)).parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            there = packages / path
            if not there.exists():
                there.symlink_to(Path(str(each.locate_file(path))))
    return folder / "bin/cirrusmq"


def weight(packages: Sequence[Distribution]) -> tuple[int, int]:
    """Bytes of the packages' files without what Python compiles, and compressed as in a wheel."""
    plain = packed = 0
    for package in packages:
        for file in package.files or ():
            path = Path(str(package.locate_file(file)))
            if path.suffix != ".pyc" and path.is_file():
                content = path.read_bytes()
                plain += len(content)
                packed += len(zlib.compress(content))
    return plain, packed


def first_message(command: Sequence[str | Path]) -> tuple[float, float]:
    """Seconds from a command's begin until it is ready, and until a message was received.

    It runs in an empty folder.
    """
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        service = subprocess.Popen(
            [*command, "up", "--port", "0", "--dialect-port", "0"],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert service.stdout is not None
            lines = [*_until_ready(service.stdout)]
            ready = time.monotonic() - began
            assert lines and lines[-1].startswith(READY), "the service did not start"
            held = json.loads(Path(lines[-1].removeprefix(READY).strip()).read_text("utf-8"))
            key = {"authorization": f"Bearer {held['access_key_id']}:{held['secret']}"}
            with httpx.Client(base_url=held["url"], headers=key, trust_env=False) as client:
                client.put("/queues/orders", json={}).raise_for_status()
                sent = {"messages": [{"body": "hello"}]}
                client.post("/queues/orders/messages", json=sent).raise_for_status()
                answer = client.post("/queues/orders/messages/receive", json={"wait_seconds": 5})
            assert [each["body"] for each in answer.json()["messages"]] == ["hello"]
            return ready, time.monotonic() - began
        finally:
            service.terminate()
            service.communicate()


def _until_ready(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if line.startswith(READY):
            return


def run() -> None:
    """Print both."""
    with tempfile.TemporaryDirectory() as held:
        wheel = build(Path(held, "wheels"))
        packages = needed(wheel)
        with ZipFile(wheel) as zipped:
            own = sum(each.file_size for each in zipped.infolist())
        plain, packed = weight(packages)
        size = wheel.stat().st_size
        sizes = [
            ["the wheel", *_megabytes(size, own)],
            [
                f"with the {len(packages)} packages it needs",
                *_megabytes(size + packed, own + plain),
            ],
        ]
        show("Megabytes", ["what", "downloaded", "on disk"], sizes)
        ways: dict[str, list[str | Path]] = {
            "cirrusmq up": [make_environment(wheel, Path(held, "environment"))]
        }
        if (uvx := shutil.which("uvx")) is not None:
            ways["uvx --from <wheel> cirrusmq up"] = [uvx, "--from", wheel, "cirrusmq"]
        rows = []
        for name, command in ways.items():
            first_message(command)  # fills caches
            times = [first_message(command) for _ in range(RUNS)]
            rows.append([name, *(f"{min(each):.1f}" for each in zip(*times, strict=True))])
        title = f"Seconds, the quickest of {RUNS} starts from an empty folder"
        show(title, ["command", "ready", "first message"], rows)


def _megabytes(*sizes: int) -> list[str]:
    return [f"{size / 1e6:.1f}" for size in sizes]
