"""Prints tables of figures for a terminal and the manual."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints a titled Markdown table; numbers are rounded to their significant digits."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(heads) + " |")
    print("| " + " | ".join("---" for _ in heads) + " |")
    for row in rows:
        print("| " + " | ".join(_cell(value) for value in row) + " |", flush=True)


def middle(values: Sequence[float]) -> float:
    """Returns the median, as machines are noisy."""
    return median(values)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
