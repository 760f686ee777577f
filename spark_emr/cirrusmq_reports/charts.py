"""Draws charts as inline SVG, without scripts or network; colours come from the page's style."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

WIDE, HALF = 960, 440
"""Widths of charts, with text of equal size if each is in its place on the page."""

_HEIGHT = 220
_LEFT, _BOTTOM, _TOP = 64, 26, 10
_ROW_HEIGHT, _LABEL_WIDTH, _VALUE_WIDTH = 24, 190, 76
_COLORS = 8
_LETTER_WIDTH = 7.0
_SHRUNK = 0.8
"""Smallest scale of a drawing before it is scrolled."""
_ROUND = (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10)
_CENT, _THOUSANDTH = 0.01, 0.001


def color_class(place: int) -> str:
    """Returns the style class of the series at `place`."""
    return f"c{place % _COLORS}"


def stacked_columns(
    labels: Sequence[str], series: Mapping[str, Sequence[float]], *, title: str, width: int = WIDE
) -> str:
    """Draws a column for each label, with the series stacked in order."""
    heights = [sum(values[place] for values in series.values()) for place in range(len(labels))]
    top = _nice_top(heights)
    slot = (width - _LEFT) / max(1, len(labels))
    column = min(slot * 0.72, 44.0)
    parts = [_grid(top, width)]
    for place, label in enumerate(labels):
        x, y = _LEFT + slot * (place + 0.5) - column / 2, float(_HEIGHT - _BOTTOM)
        for number, (name, values) in enumerate(series.items()):
            height = _scaled(values[place], top)
            if height <= 0:
                continue
            y -= height
            hint = f"{label} · {name}: {show_number(values[place])}"
            parts.append(_rectangle(x, y, column, height, color_class(number), hint))
        if place % max(1, -(-len(labels) // 12)) == 0:
            parts.append(_label_below(x + column / 2, label, width))
    return _svg(width, _HEIGHT, title, parts) + _legend(series.items())


def lines(labels: Sequence[str], series: Mapping[str, Sequence[float]], *, title: str) -> str:
    """Draws a line for each series over evenly spaced labels."""
    top = _nice_top([value for values in series.values() for value in values])
    step = (WIDE - _LEFT - 20) / max(1, len(labels) - 1)
    parts = [_grid(top, WIDE)]
    for number, (name, values) in enumerate(series.items()):
        points = [
            (_LEFT + 10 + step * place, _HEIGHT - _BOTTOM - _scaled(value, top))
            for place, value in enumerate(values)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        style = color_class(number)
        parts.append(f'<polyline class="line {style}" points="{path}"/>')
        parts += [
            f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="3.5">'
            f"<title>{escape(f'{label} · {name}: {show_number(value)}')}</title></circle>"
            for (x, y), label, value in zip(points, labels, values, strict=True)
        ]
    for place, label in enumerate(labels):
        if place % max(1, -(-len(labels) // 8)) == 0:
            parts.append(_label_below(_LEFT + 10 + step * place, label, WIDE))
    return _svg(WIDE, _HEIGHT, title, parts) + _legend((name, [1]) for name in series)


def stacked_rows(
    rows: Sequence[tuple[str, Sequence[float]]],
    names: Sequence[str],
    *,
    title: str,
    show: Callable[[Any], str] | None = None,
    width: int = WIDE,
) -> str:
    """Draws a bar for each row, its label on the left and its sum, by `show`, on the right."""
    show = show or show_number
    limit = max((sum(values) for _, values in rows), default=0) or 1
    room = width - _LABEL_WIDTH - _VALUE_WIDTH
    parts = []
    for place, (label, values) in enumerate(rows):
        y, x = place * _ROW_HEIGHT + 4, float(_LABEL_WIDTH)
        parts.append(_text(_LABEL_WIDTH - 8, y + 12, _shortened(label), "end"))
        for number, value in enumerate(values):
            length = room * max(0.0, value) / limit
            if length <= 0:
                continue
            hint = f"{label} · {names[number]}: {show(value)}"
            parts.append(_rectangle(x, y, length, _ROW_HEIGHT - 8, color_class(number), hint))
            x += length
        parts.append(_text(x + 6, y + 12, show(sum(values)), "start"))
    drawing = _svg(width, max(1, len(rows)) * _ROW_HEIGHT + 4, title, parts)
    shown = [(name, [values[place] for _, values in rows]) for place, name in enumerate(names)]
    return drawing + _legend(shown)


def show_number(value: float) -> str:
    """Returns the number with commas; a fraction has two decimals, or more if it is small."""
    if isinstance(value, int):
        return f"{value:,}"
    return _plain(float(f"{value:.2g}")) if 0 < abs(value) < _CENT else f"{value:,.2f}"


def _grid(top: float, width: int) -> str:
    parts = []
    for quarter in range(5):
        value = top * quarter / 4
        y = _HEIGHT - _BOTTOM - _scaled(value, top)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{width}" y2="{y:.1f}"/>')
        parts.append(_text(_LEFT - 6, y + 4, _short_number(value), "end"))
    return "".join(parts)


def _label_below(x: float, label: str, width: int) -> str:
    """Draws a column's or point's label; the last labels end at the drawing's edge."""
    half = len(label) * _LETTER_WIDTH / 2
    return _text(min(x, width - half), _HEIGHT - 8, label, "middle")


def _scaled(value: float, top: float) -> float:
    return max(0.0, value) / top * (_HEIGHT - _BOTTOM - _TOP)


def _nice_top(heights: Sequence[float]) -> float:
    """Returns the first round number that is not below them, with four short quarters.

    Quarters of counts are whole.
    """
    limit = max(heights, default=0)
    whole = all(isinstance(height, int) for height in heights)
    if limit <= 0:
        return 4 if whole else 1
    power = 10.0 ** (len(f"{int(limit)}") - 1) if limit >= 1 else 10.0 ** int(f"{limit:e}"[-3:])
    tops = [factor * times * power for times in (1, 10) for factor in _ROUND]
    return next(top for top in tops if top >= limit and not (whole and top % 4))


def _short_number(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value * 1e6:g}µ" if 0 < value < _THOUSANDTH else f"{value:g}"


def _plain(value: float) -> str:
    """Returns the number without an exponent."""
    return f"{value:.15f}".rstrip("0").rstrip(".")


def _shortened(label: str) -> str:
    return label if len(label) <= 28 else f"{label[:13]}…{label[-14:]}"


def _rectangle(x: float, y: float, width: float, height: float, style: str, hint: str) -> str:
    return (
        f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}"><title>{escape(hint)}</title></rect>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _legend(series: Iterable[tuple[str, Sequence[float]]]) -> str:
    """Returns the names of series with a value, or nothing for a single series."""
    named = [(place, name, values) for place, (name, values) in enumerate(series)]
    if len(named) < 2:
        return ""
    entries = "".join(
        f'<li><i class="{color_class(place)}"></i>{escape(name)}</li>'
        for place, name, values in named
        if any(values)
    )
    return f'<ul class="legend">{entries}</ul>'


def _svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    return (
        f'<div class="chart" tabindex="0"><svg viewBox="0 0 {width} {height}" role="img" '
        f'style="min-width:{round(width * _SHRUNK)}px" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg></div>"
    )
