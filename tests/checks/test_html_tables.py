"""Our reading of broken HTML against Beautiful Soup's html.parser tree, which the benchmark's scorer reads."""

from __future__ import annotations

import random

from bs4 import BeautifulSoup

from jocr.checks.html_tables import html_tables

PIECES = (
    "<table> </table> <tr> </tr> <td> </td> <th> </th> <thead> </thead> <tbody> <p> </p> <b> </b> <br> <br/> </br> "
    "<hr> <TD> <td/> <span/> &amp; &lt; &#233; a b c | <i> </i> <!--x--> <img src=x>"
).split()
Rows = list[list[tuple[str, bool]]]


def theirs(markup: str) -> list[Rows]:
    soup = BeautifulSoup(markup, "html.parser")
    for br in soup.find_all("br"):
        br.insert(0, "\n")
    tables = []
    for table in soup.find_all("table"):
        rows: Rows = []
        for row in table.find_all("tr"):
            head = row.find_parent("thead") is not None
            cells = row.find_all(["td", "th"], recursive=False)
            rows.append([(cell.get_text().strip(), head or cell.name == "th") for cell in cells])
        if any(rows):
            tables.append([cells for cells in rows if cells])
    return tables


def ours(markup: str) -> list[Rows]:
    tables = []
    for grid in html_tables(markup):
        rows: dict[int, list[tuple[str, bool]]] = {}
        for cell in grid.cells:
            rows.setdefault(cell.row, []).append((cell.text, cell.heads_row))
        tables.append(list(rows.values()))
    return tables


def test_tables_are_read_as_beautiful_soup_reads_them() -> None:
    rng = random.Random(0)
    full = 0
    for _ in range(800):
        markup = rng.choice(["<table>", "<table><tr><td>a", "<table><thead><tr><th>a"]) + "".join(
            rng.choices(PIECES, k=rng.randint(1, 40))
        )
        assert ours(markup) == theirs(markup), markup
        full += bool(ours(markup))
    assert full > 200
