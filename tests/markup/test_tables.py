import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jocr.errors import MarkupError
from jocr.markup.tables import Cell, Grid, find_tables, parse_html_table, parse_pipe_table

TEXT = st.text(alphabet="ab 1é漢|<>&\"'\\-", max_size=8).map(lambda s: " ".join(s.split()))


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Rectangular grids with random spans."""
    rows, cols = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    taken: set[tuple[int, int]] = set()
    cells = []
    for r in range(rows):
        for c in range(cols):
            if (r, c) in taken:
                continue
            wide = draw(st.integers(1, cols - c))
            while any((r, c + k) in taken for k in range(wide)):
                wide -= 1
            high = draw(st.integers(1, rows - r))
            taken |= {(r + i, c + k) for i in range(high) for k in range(wide)}
            cells.append(Cell(draw(TEXT), r, c, high, wide, draw(st.booleans())))
    return Grid(tuple(cells), rows, cols)


@given(grids())
@settings(max_examples=50, deadline=None)
def test_html_round_trip(grid: Grid) -> None:
    assert grid.rectangular
    assert parse_html_table(grid.to_html()) == grid


@given(st.lists(st.lists(TEXT, min_size=3, max_size=3), min_size=1, max_size=4))
@settings(max_examples=50, deadline=None)
def test_pipe_round_trip(rows: list[list[str]]) -> None:
    rows = [["x", *row[1:-1], "y"] for row in rows]  # an empty cell at an end is the pipe's own edge
    cells = tuple(Cell(t, r, c, 1, 1, r == 0) for r, row in enumerate(rows) for c, t in enumerate(row))
    grid = Grid(cells, len(rows), 3)
    assert parse_pipe_table(grid.to_markdown()) == grid


def test_spans_push_later_cells_aside() -> None:
    grid = parse_html_table(
        "<table><thead><tr><td rowspan=2>a</td><td colspan='2'>b</td></tr></thead>"
        "<tr><td>c</td><td>d<br>e</td></tr><tr><th>f</th></tr></table>"
    )
    assert [(c.text, c.row, c.col, c.rowspan, c.colspan, c.header) for c in grid.cells] == [
        ("a", 0, 0, 2, 1, True),
        ("b", 0, 1, 1, 2, True),
        ("c", 1, 1, 1, 1, False),
        ("d\ne", 1, 2, 1, 1, False),
        ("f", 2, 0, 1, 1, True),
    ]
    assert (grid.rows, grid.cols, grid.rectangular) == (3, 3, False)
    assert grid.at(1, 0) == grid.cells[0]
    assert grid.at(2, 2) is None


def test_rowspan_zero_reaches_the_last_row_and_wild_spans_are_cut() -> None:
    grid = parse_html_table("<table><tr><td rowspan=0>a</td><td>b</td></tr><tr><td rowspan=999999>c</td></tr></table>")
    assert [(c.text, c.rowspan) for c in grid.cells] == [("a", 2), ("b", 1), ("c", 1)]
    assert grid.rectangular


def test_missing_close_tags_and_bare_cells() -> None:
    grid = parse_html_table("<TABLE><td>a<td>b<tr><td>c &lt; d<td>e<p>f")
    assert [[c.text for c in grid.cells if c.row == r] for r in range(grid.rows)] == [["a", "b"], ["c < d", "e f"]]


def test_nested_table_is_text_of_its_cell() -> None:
    grid = parse_html_table("<table><tr><td>x<table><tr><td>1</td><td>2</td></tr></table></td><td>y</td></tr></table>")
    assert [c.text for c in grid.cells] == ["x 1 2", "y"]


def test_no_table() -> None:
    with pytest.raises(MarkupError):
        parse_html_table("<p>none</p>")
    with pytest.raises(MarkupError):
        parse_pipe_table("no pipes\nhere")


@given(st.lists(st.sampled_from([*"<>/=\"' |\n-atrdbhe&;!#x0", "<table", "<td>", "</tr>", "<tr>"])).map("".join))
@example("<table=><td>")  # a tag of another name
@settings(max_examples=50, deadline=None)
def test_malformed_html_raises_nothing_else(soup: str) -> None:
    for parse in (parse_html_table, parse_pipe_table):
        try:
            grid = parse(soup)
        except MarkupError:
            continue
        assert all(0 <= c.row < grid.rows and c.col + c.colspan <= grid.cols for c in grid.cells)
    for span in find_tables(soup):
        assert 0 <= span.start < span.end <= len(soup)


def test_find_tables() -> None:
    page = (
        "text | with a pipe\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\n```\n<table><tr><td>code</td></tr></table>\n```\n"
        "<table><tr><td><table><tr><td>in</td></tr></table></td></tr></table> tail\n<table><tr><td>open</td></tr>\nend"
    )
    spans = find_tables(page)
    assert [s.kind for s in spans] == ["pipe", "html", "html"]
    assert [page[s.start : s.end] for s in spans] == [
        "| a | b |\n|---|:-:|\n| 1 | 2 |",
        "<table><tr><td><table><tr><td>in</td></tr></table></td></tr></table>",
        "<table><tr><td>open</td></tr>",
    ]
    assert [c.header for c in spans[0].grid.cells] == [True, True, False, False]


def test_huge_spans_and_many_tables_stay_cheap() -> None:
    assert len(parse_html_table("<table>" + "<tr><td rowspan=1000 colspan=1000>x" * 300).cells) == 300
    assert len(find_tables("<table><tr><td>" * 3000)) == 1
