"""Draws charts as SVG for light and dark pages: lines over powers of ten, and panels of bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

WIDTH = 760
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 190, 48, 48
_PLOT_HEIGHT = 240
_LABEL_GAP = 17
_STYLE = """
  text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 15px; } .quiet { fill: #57606a; font-size: 12px; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .s0 { stroke: #0969da; fill: #0969da; } .s1 { stroke: #bc4c00; fill: #bc4c00; }
  .s2 { stroke: #1a7f37; fill: #1a7f37; } .s3 { stroke: #8250df; fill: #8250df; }
  .s4 { stroke: #6e7781; fill: #6e7781; }
  .line { fill: none; stroke-width: 2.5; } .bar, .dot, .name { stroke: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .quiet { fill: #9198a1; } .grid { stroke: #3d444d; }
    .s0 { stroke: #58a6ff; fill: #58a6ff; } .s1 { stroke: #f0883e; fill: #f0883e; }
    .s2 { stroke: #3fb950; fill: #3fb950; } .s3 { stroke: #bc8cff; fill: #bc8cff; }
    .s4 { stroke: #9198a1; fill: #9198a1; }
    .line { fill: none; } .bar, .dot, .name { stroke: none; }
  }
"""

Points = Sequence[tuple[float, float]]


def draw_lines(
    title: str, below: str, series: Mapping[str, Points], colours: Sequence[str] = ()
) -> str:
    """Draws a line for each series, both axes in powers of ten. `colours`: series of all charts."""
    points = [point for each in series.values() for point in each]
    x_low, x_high = log10(min(x for x, _ in points)), log10(max(x for x, _ in points))
    y_low, y_high = _powers([y for _, y in points])
    width, bottom = WIDTH - _LEFT - _RIGHT, _TOP + _PLOT_HEIGHT

    def across(value: float) -> float:
        return _LEFT + width * (log10(value) - x_low) / (x_high - x_low)

    def down(value: float) -> float:
        return bottom - _PLOT_HEIGHT * (log10(value) - y_low) / (y_high - y_low)

    parts = [_text(_LEFT, 24, title, "title"), _text(_LEFT + width, bottom + 40, below, "quiet", 1)]
    for power in range(ceil(x_low), floor(x_high) + 1):
        x = across(10.0**power)
        parts.append(_line(x, _TOP, x, bottom))
        parts.append(_text(x, bottom + 18, _number(10.0**power), "quiet", 0.5))
    for power in range(y_low, y_high + 1):
        y = down(10.0**power)
        parts.append(_line(_LEFT, y, _LEFT + width, y))
        parts.append(_text(_LEFT - 8, y + 4, _number(10.0**power), "quiet", 1))
    ends = {name: down(each[-1][1]) for name, each in series.items()}
    labels = _apart(ends)
    for name, each in series.items():
        number = (list(colours) or list(series)).index(name)
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in each)
        parts.append(f'<polyline class="line s{number}" points="{path}"/>')
        parts += [
            f'<circle class="dot s{number}" cx="{across(x):.1f}" cy="{down(y):.1f}" r="3.5"/>'
            for x, y in each
        ]
        label = f"{name}: {_number(each[-1][1])}"
        parts.append(_text(across(each[-1][0]) + 10, labels[name] + 4, label, f"name s{number}"))
    return _page(bottom + _BOTTOM, parts)


def draw_bars(title: str, panels: Mapping[str, Mapping[str, float]]) -> str:
    """Draws a panel for each group, each with its own scale; the value is at the bar's end."""
    parts = [_text(16, 24, title, "title")]
    y, left, room = 40.0, 180, WIDTH - 180 - 90
    for panel, values in panels.items():
        y += 22
        parts.append(_text(16, y, panel, "quiet"))
        limit = max(values.values())
        for number, (name, value) in enumerate(values.items()):
            y += 22
            length = max(2.0, room * value / limit)
            parts.append(_text(left - 10, y + 4, name, "", 1))
            parts.append(
                f'<rect class="bar s{number}" x="{left}" y="{y - 8:.1f}" width="{length:.1f}" '
                'height="16" rx="2"/>'
            )
            parts.append(_text(left + length + 8, y + 4, _number(value), ""))
        y += 14
    return _page(int(y) + 16, parts)


def _powers(values: Sequence[float]) -> tuple[int, int]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)


def _apart(wanted: Mapping[str, float]) -> dict[str, float]:
    """Returns heights of labels near the wanted ones, without overlaps."""
    placed: dict[str, float] = {}
    free_above = float("-inf")
    for name, y in sorted(wanted.items(), key=lambda item: item[1]):
        placed[name] = max(y, free_above)
        free_above = placed[name] + _LABEL_GAP
    return placed


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _text(x: float, y: float, text: str, style: str, anchor: float = 0) -> str:
    where = {0: "start", 0.5: "middle", 1: "end"}[anchor]
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{where}"'
    return f'<text class="{style}" {place}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _page(height: int, parts: Sequence[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img">',
            f"<style>{_STYLE}</style>",
            *parts,
            "</svg>\n",
        ]
    )
