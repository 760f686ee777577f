"""Checks that the tests of the pure modules notice faults: many are planted, one at a time.

`[tool.mutmut]` in pyproject.toml names the modules and the tests. The tool wants the package under
its own name beside the tests, so both are copied into a folder:

build/mutants/  pyproject.toml  conftest.py  cirrusmq/  tests/  and the tool's mutants and results

python -m infra.mutants build/mutants             every mutant that has no verdict there yet
python -m infra.mutants build/mutants NAMES       those alone, as it printed them
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_MIN_PERCENT = 96.0
_FAILED = (1, 3)
"""Ends of pytest: a test failed, or an error stopped it all."""
_ENDLESS = (-signal.SIGXCPU, -signal.SIGKILL)
"""Ends of a process whose tests took several times as long as without the fault."""
_UNKNOWN = {None: " (not played)", 33: " (no test calls its function)"}
_TOOL = (sys.executable, "-m", "mutmut")


def lay_out(folder: Path) -> None:
    """Copy the package, its tests and the configuration to where the tool looks for them.

    Without the fixtures: they start services, which takes more packages than unit tests do.
    """
    left = shutil.ignore_patterns("__pycache__", "conftest.py")
    for source, copy in (("layers/core/cirrusmq", "cirrusmq"), ("tests", "tests")):
        shutil.rmtree(folder / copy, ignore_errors=True)
        shutil.copytree(_ROOT / source, folder / copy, ignore=left)
    shutil.copy2(_ROOT / "pyproject.toml", folder)
    shutil.copy2(_HERE / "conftest.py", folder)


def run(folder: Path, names: Sequence[str]) -> None:
    """Plant the faults: one process, so that a test's time means something."""
    subprocess.run([*_TOOL, "run", "--max-children", "1", *names], cwd=folder, check=True)


def endless(folder: Path) -> list[str]:
    """The mutants whose tests never ended, or were stopped because the machine was busy."""
    return [name for name, code in _verdicts(folder).items() if code in _ENDLESS]


def judge(folder: Path) -> bool:
    """Print which mutants lived; whether enough of them were noticed."""
    verdicts = _verdicts(folder)
    lived = sorted(name for name, code in verdicts.items() if code not in (*_FAILED, *_ENDLESS))
    for name in lived:
        print(f"  lives: {name}{_UNKNOWN.get(verdicts[name], '')}")
    killed = len(verdicts) - len(lived)
    unknown = sum(verdicts[name] in _UNKNOWN for name in lived)
    percent = 100 * killed / len(verdicts)
    print(f"{killed:,} of {len(verdicts):,} mutants killed: {percent:.1f} %")
    print(f"{len(endless(folder))} of those never ended, which a test notices as well")
    print(
        f"{len(lived) - unknown} lived; {unknown} were not played, or no test calls their function"
    )
    return percent >= _MIN_PERCENT


def _verdicts(folder: Path) -> dict[str, int | None]:
    """The end of each mutant's tests by its name; None: it was not played."""
    verdicts: dict[str, int | None] = {}
    for path in (folder / "mutants").rglob("*.meta"):
        verdicts |= json.loads(path.read_text())["exit_code_by_key"]
    return verdicts


if __name__ == "__main__":
    place = Path(sys.argv[1])
    lay_out(place)
    run(place, sys.argv[2:])
    # Once more: a test that waited for a processor all its time tells nothing of the fault.
    if again := endless(place):
        run(place, again)
    sys.exit(not judge(place))
