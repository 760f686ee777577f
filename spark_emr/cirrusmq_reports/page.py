"""The frame of a report's page: one self-contained HTML file that a browser shows offline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
:root{--ink:#1c2430;--soft:#5d6a7c;--line:#dde3ea;--paper:#fff;--ground:#f4f6f9}
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf2;--soft:#98a5b6;--line:#2f3947;
--paper:#1a212b;--ground:#12171e}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1120px;margin:0 auto;padding:32px 24px 64px}
h1{font-size:26px;margin:0}h2{font-size:17px;margin:0 0 12px}
.sub{color:var(--soft);margin:4px 0 24px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(max(152px,22%),1fr));gap:12px}
.tile,section{background:var(--paper);border:1px solid var(--line);border-radius:10px}
.tile{padding:14px 16px}.tile b{display:block;font-size:20px;font-variant-numeric:tabular-nums;
overflow-wrap:anywhere}
.tile span{color:var(--soft);font-size:13px}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(460px,100%),1fr));gap:16px}
section{padding:18px 20px;margin-top:16px;overflow-x:auto;min-width:0}
.two section{margin-top:0}.two{margin-top:16px}.chart{overflow-x:auto}
svg{width:100%;height:auto;display:block}svg text{font-size:11px;fill:var(--soft)}
.grid{stroke:var(--line)}.line{fill:none!important;stroke-width:2}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;list-style:none;margin:10px 0 0;padding:0;
font-size:13px;color:var(--soft)}
.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:14px;
margin-top:12px}
th,td{padding:5px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--soft);font-weight:500;white-space:normal;vertical-align:bottom}
th.t,td.t{text-align:left}tr.sum td{font-weight:600}
td.t{white-space:normal}td.t:first-child{min-width:min(150px,34vw)}
details{margin-top:8px}summary{cursor:pointer;padding:4px 0;overflow:hidden}
summary b{float:right;padding-left:12px}
.none{color:var(--soft)}a{color:inherit}
@media(max-width:480px){main{padding:20px 12px 40px}section{padding:14px 12px}
.tile{padding:10px 12px}.tile b{font-size:16px}th,td{padding:5px 6px}}
@media print{body{background:none}main{max-width:none;padding:0}section{border:0;padding:0}}
.warn{border-left:4px solid #d6455d;background:var(--paper);padding:8px 14px}
"""
_PALETTE = (
    "#2f6fde", "#12a594", "#e5a000", "#d6455d", "#7c5cd6", "#5b8c2a", "#c2689f", "#7a8797",
)  # fmt: skip


def render_page(title: str, subtitle: str, parts: Iterable[str]) -> str:
    """Returns the whole page; `parts` are HTML."""
    colors = "".join(
        f".c{place}{{fill:{color};stroke:{color};background:{color}}}rect.c{place}{{stroke:none}}"
        for place, color in enumerate(_PALETTE)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{colors}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="sub">{escape(subtitle)}</p>{"".join(parts)}'
        "</main></body></html>\n"
    )


def tiles(entries: Sequence[tuple[str, str]]) -> str:
    """Returns large figures, from pairs of label and value."""
    shown = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(label)}</span></div>'
        for label, value in entries
    )
    return f'<div class="tiles">{shown}</div>'


def section(title: str, content: str) -> str:
    """Returns a titled box around HTML."""
    # Focusable, so that content wider than the window can be scrolled by the keyboard, too.
    name = escape(title)
    return f'<section tabindex="0" aria-label="{name}"><h2>{name}</h2>{content}</section>'


def side_by_side(*sections: str) -> str:
    """Returns boxes beside each other, or below each other in a narrow window."""
    return f'<div class="two">{"".join(sections)}</div>'


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1, summed: bool = False
) -> str:
    """Returns a table whose first `texts` columns are text; `summed`: the last row is a total."""
    listed = list(rows)
    body = []
    for place, row in enumerate(listed):
        style = ' class="sum"' if summed and place == len(listed) - 1 else ""
        body.append(f"<tr{style}>{_cells('td', row, texts)}</tr>")
    return f"<table><tr>{_cells('th', heads, texts)}</tr>{''.join(body)}</table>"


def folded(title: str, value: str, content: str) -> str:
    """Returns HTML that opens on a click."""
    return f"<details><summary>{escape(title)}<b>{escape(value)}</b></summary>{content}</details>"


def links(entries: Iterable[tuple[str, str]]) -> str:
    """Returns links, from names with their addresses."""
    made = [f'<a href="{escape(address)}">{escape(name)}</a>' for name, address in entries]
    return f"<p>{' · '.join(made)}</p>"


def nothing(text: str) -> str:
    """Returns the text in place of an empty table or chart."""
    return f'<p class="none">{escape(text)}</p>'


def warning(text: str) -> str:
    """Returns a sentence as a visible warning."""
    return f'<p class="warn">{escape(text)}</p>'


def _cells(tag: str, values: Sequence[str], texts: int) -> str:
    styles = [' class="t"' if place < texts else "" for place in range(len(values))]
    return "".join(
        f"<{tag}{style}>{escape(value)}</{tag}>"
        for style, value in zip(styles, values, strict=True)
    )
