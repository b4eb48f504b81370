r"""LaTeX tables to HTML, for predictions that write ``tabular``.

The v1.5 scorer calls latexmlc, the v1.6 scorer a converter of its own; neither is a dependency here. This one knows
``\multicolumn``, ``\multirow``, rules and escapes, which is what page parsers emit; anything else stays as text.
"""

from __future__ import annotations

import re
from html import escape

_BODY = re.compile(r"\\begin\{tabular\*?\}(.*?)\\end\{tabular\*?\}", re.DOTALL)
_RULES = re.compile(r"\\(?:hline|toprule|midrule|bottomrule)\b|\\c(?:line|midrule)(?:\([^)]*\))?\{[^}]*\}")
_ROW_END = re.compile(r"\\\\(?:\[[^\]]*\])?")
_CELL_END = re.compile(r"(?<!\\)&")
_MULTICOLUMN = re.compile(r"\\multicolumn\s*\{(\d+)\}\s*\{[^}]*\}\s*\{(.*)\}\s*$", re.DOTALL)
_MULTIROW = re.compile(r"\\multirow(?:\[[^\]]*\])?\s*\{(-?\d+)\}\s*\{[^}]*\}\s*\{(.*)\}\s*$", re.DOTALL)
_STYLE = re.compile(r"\\(?:textbf|textit|emph|text)\{([^{}]*)\}")


def latex_table_to_html(latex: str) -> str:
    """One ``<table>`` for the first ``tabular`` of ``latex``; an empty table where there is none."""
    body = _BODY.search(latex)
    if not body:
        return "<table></table>"
    source = _RULES.sub("", _without_arguments(body.group(1)))
    rows = [r for r in _ROW_END.split(source) if r.strip()]
    return "<table>" + "".join(_row(row, above) for row, above in _with_pending(rows)) + "</table>"


def _without_arguments(body: str) -> str:
    """The body after its width and column arguments, brace by brace."""
    body = re.sub(r"^\s*\[[^\]]*\]", "", body)
    while (match := re.match(r"\s*\{", body)) is not None:
        depth = 0
        for i in range(match.end() - 1, len(body)):
            depth += {"{": 1, "}": -1}.get(body[i], 0)
            if depth == 0:
                break
        body = body[i + 1 :]
    return body


def _with_pending(rows: list[str]) -> list[tuple[list[tuple[str, int, int]], set[int]]]:
    """Each row's cells as (text, colspan, rowspan), with the columns that a multirow above still covers."""
    out: list[tuple[list[tuple[str, int, int]], set[int]]] = []
    open_rows: dict[int, int] = {}
    for row in rows:
        covered = {c for c, left in open_rows.items() if left > 0}
        open_rows = {c: left - 1 for c, left in open_rows.items() if left > 1}
        cells = [_cell(c) for c in _CELL_END.split(row)]
        column = 0
        for _, colspan, rowspan in cells:
            if rowspan > 1:
                open_rows.update({column + k: rowspan - 1 for k in range(colspan)})
            column += colspan
        out.append((cells, covered))
    return out


def _cell(source: str) -> tuple[str, int, int]:
    text, colspan, rowspan = source.strip(), 1, 1
    if (match := _MULTICOLUMN.match(text)) is not None:
        colspan, text = max(1, int(match.group(1))), match.group(2).strip()
    if (match := _MULTIROW.match(text)) is not None:
        rowspan, text = max(1, abs(int(match.group(1)))), match.group(2).strip()
    text = re.sub(r"\\([%&_#$])", r"\1", _STYLE.sub(r"\1", text))
    return " ".join(text.split()), colspan, rowspan


def _row(cells: list[tuple[str, int, int]], covered: set[int]) -> str:
    out, column = [], 0
    for text, colspan, rowspan in cells:
        if text or column not in covered:
            span = (f' colspan="{colspan}"' if colspan > 1 else "") + (f' rowspan="{rowspan}"' if rowspan > 1 else "")
            out.append(f"<td{span}>{escape(text, quote=False)}</td>")
        column += colspan
    return f"<tr>{''.join(out)}</tr>"
