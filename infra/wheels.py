"""Builds the packages `cirrusmq-client`, `cirrusmq-in-process` and `cirrusmq`, as wheels.

python -m infra.wheels FOLDER

Builds from copies, since a build leaves files beside its sources, and a later build would include
them. The service's wheel also has the template and its files, beside its packages, and the
manual. `cirrusmq-in-process` has the core, and of the code of functions the shapes of
answers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CLIENT = ROOT / "layers/client"
OWN = CLIENT / "cirrusmq_in_process"
_PROJECT = ("pyproject.toml", "README.md", "LICENSE", "layers", "infra")
_TEMPLATE = (
    "template.yaml",
    "functions",
    "spark_emr",
    "infra/statemachines",
    "infra/rate_card.yaml",
)
_OF_CORE = (
    "cirrusmq",
    *(
        f"cirrusmq_lambda/{name}"
        for name in ("__init__.py", "answers", "problems.py", "replies.py")
    ),
)
_SOURCES = ("layers/core", "layers/client", "infra")
_UNWANTED = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")


def build(folder: Path) -> list[Path]:
    """Builds them into a folder. Returns the wheels. Needs setuptools, and no network."""
    with tempfile.TemporaryDirectory() as held:
        client, service = Path(held) / "client", Path(held) / "service"
        own = Path(held) / "in-process"
        shutil.copytree(CLIENT, client, ignore=_UNWANTED)
        shutil.copy(ROOT / "LICENSE", client)
        shutil.rmtree(client / "in-process")
        shutil.copytree(CLIENT / "in-process", own)
        shutil.copytree(OWN, own / OWN.name, ignore=_UNWANTED)
        for name in _OF_CORE:
            _copy_to(ROOT / "layers/core" / name, own / name)
        _copy(_PROJECT, service)
        nested = (str(path.relative_to(ROOT)) for path in ROOT.glob("infra/*/template.yaml"))
        packed = service / "infra/cirrusmq_service"
        _copy((*_TEMPLATE, *nested), packed)
        site = [sys.executable, "-m", "infra.manual", str(packed / "functions/pages/docs")]
        # By the sources, which need not be installed.
        path = os.pathsep.join(str(ROOT / each) for each in _SOURCES)
        subprocess.run(site, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, check=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "wheel"]
        options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder)]
        subprocess.run([*pip, *options, client, own, service], check=True)
    return sorted(folder.glob("*.whl"))


def _copy(names: Iterable[str], folder: Path) -> None:
    """Copies files and folders of the repository, under the same names."""
    for name in names:
        _copy_to(ROOT / name, folder / name)


def _copy_to(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, place, ignore=_UNWANTED)
    else:
        shutil.copy(source, place)


if __name__ == "__main__":
    for wheel in build(Path(sys.argv[1])):
        print(wheel)
