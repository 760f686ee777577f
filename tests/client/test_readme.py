"""The README shows the examples as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).with_name("examples")
README = Path(__file__).resolve().parents[2] / "README.md"
_SHOWN = re.compile(
    r"\]\(tests/client/examples/(?P<name>\w+)\.py\).*?```python\n(?P<code>.*?)\n```", re.DOTALL
)


def shown() -> dict[str, str]:
    return {match["name"]: match["code"] for match in _SHOWN.finditer(README.read_text("utf-8"))}


def test_every_example_is_in_the_readme() -> None:
    assert sorted(shown()) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_the_readme_shows_the_example_that_runs(path: Path) -> None:
    _, _, code = path.read_text("utf-8").partition("from __future__ import annotations\n")

    assert shown()[path.stem] == code.strip()
