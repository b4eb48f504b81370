"""olmOCR-Bench on disk: the tests by category, the pages they ask about, and the predictions of one system."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jocr.checks import Check, load_checks, parse_check
from jocr.errors import ConfigError

PUBLISHED_TESTS = {
    "arxiv_math": 2927,
    "old_scans_math": 458,
    "table_tests": 1020,
    "old_scans": 526,
    "headers_footers": 753,
    "multi_column": 884,
    "long_tiny_text": 442,
}  # tests per file of the published set; baseline tests are added here, one per PDF
BASELINE = "baseline"
LISTED = 5  # missing files named in an error

PageKey = tuple[str, int]  # pdf below pdfs/, page counted from 1


@dataclass(frozen=True)
class Bench:
    """The tests of a benchmark folder. ``skipped`` names the JSONL files that hold no tests."""

    root: Path
    categories: dict[str, list[Check]]
    skipped: tuple[str, ...] = ()

    @property
    def pages(self) -> list[PageKey]:
        """Every page some test asks about, in order of first mention."""
        return list(dict.fromkeys((c.pdf, c.page) for checks in self.categories.values() for c in checks))

    def is_published_set(self) -> bool:
        """Whether files and counts are those of the published benchmark (two copies differ by a few tests)."""
        counts = {name: len(checks) for name, checks in self.categories.items() if name != BASELINE}
        return counts.keys() == PUBLISHED_TESTS.keys() and all(
            abs(counts[name] - n) <= 7 for name, n in PUBLISHED_TESTS.items()
        )

    def pdf(self, name: str) -> Path:
        return self.root / "pdfs" / name


def load_bench(data: Path) -> Bench:
    """Read every test file of ``data`` (or of ``data/bench_data``) and add the baseline tests.

    Each PDF named by a test or lying under ``pdfs/`` gets a baseline test for its page 1, unless it has one.

    Raises:
        ConfigError: no folder, no test file, a bad test, or an id that occurs twice.
    """
    root = data / "bench_data" if (data / "bench_data").is_dir() else data
    if not root.is_dir():
        raise ConfigError(f"{data} is no folder; give the benchmark's folder (with *.jsonl and pdfs/)")
    categories: dict[str, list[Check]] = {}
    skipped: list[str] = []
    for path in sorted(root.glob("*.jsonl")):
        if _holds_tests(path):
            categories[path.stem] = load_checks(path)
        else:
            skipped.append(path.name)
    if not categories:
        raise ConfigError(f"{root} holds no .jsonl file with tests (objects with the keys pdf and type)")
    _refuse_double_ids(categories)
    extra = _baselines(root, categories)
    if extra:
        categories[BASELINE] = [*categories.get(BASELINE, []), *extra]
    return Bench(root, categories, tuple(skipped))


def _holds_tests(path: Path) -> bool:
    """Whether the first line looks like a test at all; what exactly is wrong with a test is said on loading."""
    with path.open(encoding="utf-8") as file:
        first = next((line for line in file if line.strip()), "")
    try:
        record = json.loads(first)
    except json.JSONDecodeError:
        return bool(first)
    return isinstance(record, dict) and "pdf" in record and "type" in record


def _refuse_double_ids(categories: dict[str, list[Check]]) -> None:
    seen: dict[str, str] = {}
    for category, checks in categories.items():
        for check in checks:
            if check.id in seen:
                raise ConfigError(f"test id {check.id!r} occurs in {seen[check.id]}.jsonl and in {category}.jsonl")
            seen[check.id] = category


def _baselines(root: Path, categories: dict[str, list[Check]]) -> list[Check]:
    checks = [check for group in categories.values() for check in group]
    have = {check.pdf for check in checks if check.kind == "baseline"}
    folder = root / "pdfs"
    names = {check.pdf for check in checks} | {p.relative_to(folder).as_posix() for p in folder.rglob("*.pdf")}
    record = {"page": 1, "type": "baseline"}
    return [parse_check({**record, "pdf": name, "id": f"{name}_baseline"}) for name in sorted(names - have)]


def load_predictions(pred: Path, pages: Iterable[PageKey], *, force: bool = False) -> dict[PageKey, list[str]]:
    """The Markdown of every page, one text per repeat (``<pdf stem>_pg<page>_repeat<n>.md``, n from 1).

    Raises:
        ConfigError: no folder, or a page without a file; with ``force`` such a page counts as empty.
    """
    if not pred.is_dir():
        raise ConfigError(f"{pred} is no folder; give the folder with <pdf stem>_pg<page>_repeat<n>.md files")
    found = _index(pred)
    texts: dict[PageKey, list[str]] = {}
    missing: list[str] = []
    for pdf, page in pages:
        stem = f"{pdf.removesuffix('.pdf')}_pg{page}"
        files = found.get(stem, [])
        if not files:
            missing.append(f"{stem}_repeat1.md")
        texts[pdf, page] = [_read(path) for path in files] or [""]
    if missing and not force:
        more = f" and {len(missing) - LISTED} more" if len(missing) > LISTED else ""
        raise ConfigError(
            f"{pred} lacks {', '.join(missing[:LISTED])}{more}; write a file for every page, an empty one where "
            "nothing was read, or use --force to count missing pages as empty"
        )
    return texts


def _index(pred: Path) -> dict[str, list[Path]]:
    """Page stems (with their folder) and their files in the order of the repeats."""
    numbered: dict[str, list[tuple[int, Path]]] = defaultdict(list)
    for path in pred.rglob("*.md"):
        stem, mark, number = path.relative_to(pred).as_posix().removesuffix(".md").rpartition("_repeat")
        if mark and number.isascii() and number.isdigit():
            numbered[stem].append((int(number), path))
    return {stem: [path for _, path in sorted(files)] for stem, files in numbered.items()}


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path} as UTF-8 text: {error}") from error
