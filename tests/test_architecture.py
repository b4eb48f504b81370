"""Who may import whom, which packages live where, and how long a module may be: read from the source itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
LAYERS = (
    {"records", "config", "errors", "storage", "provenance"},
    {"markup", "pages"},
    {"checks", "model", "documents"},
    {"cleaning", "synth", "rewards", "decoding", "losses", "report", "vllm_plugin"},
    {"training", "evaluation", "serving", "parsing"},
    {"archive"},
    {"pipelines", "cli", "__main__"},
    {"jobs"},
)
LAYER = {unit: level for level, units in enumerate(LAYERS) for unit in units}
SINGLE = LAYERS[0] | {"documents"}  # modules of one layer that may see each other: layer 0 is one vocabulary
HEAVY = {
    "torch": {"model", "losses", "training", "decoding", "vllm_plugin"},
    "ray": {"pipelines", "jobs"},
    "vllm": {"decoding", "vllm_plugin"},
}
JOBS_TORCH = "jobs"  # a button may start torch's own launcher
LONGEST = 300

SOURCES = sorted(
    path
    for top in ("jocr", "pipelines", "jobs")
    for path in (REPO / top).rglob("*.py")
    if "__pycache__" not in path.parts
)


def unit_of(module: str) -> str | None:
    """The unit of the map that a module belongs to: ``jocr.model.moe`` -> ``model``, ``jobs.parse`` -> ``jobs``."""
    top, _, rest = module.partition(".")
    if top in {"jobs", "pipelines"}:
        return top
    return rest.partition(".")[0] or None if top == "jocr" else None


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(REPO).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> list[tuple[str, int]]:
    """(module, line) of every import in a file, wherever it stands, except under ``if TYPE_CHECKING``."""
    found: list[tuple[str, int]] = []
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            return
        if isinstance(node, ast.Import):
            found.extend((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([base] if base else [])])
            names = (
                [f"{base}.{alias.name}" for alias in node.names] if base in {"jocr", "jobs", "pipelines"} else [base]
            )
            found.extend((name, node.lineno) for name in names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def violations(path: Path) -> list[str]:
    """Broken rules of one file, each as a sentence."""
    module, unit = module_name(path), unit_of(module_name(path))
    if unit is None:
        return []
    broken = []
    for target, line in imports(path):
        where = f"{path.relative_to(REPO)}:{line}"
        other = unit_of(target)
        if other is not None and other != unit and other in LAYER:
            above = LAYER[other] > LAYER[unit]
            beside = LAYER[other] == LAYER[unit] and not {unit, other} <= SINGLE
            if above or (beside and unit != "__main__"):
                broken.append(f"{where}: {module} (layer {LAYER[unit]}) imports {target} (layer {LAYER[other]})")
        package = target.partition(".")[0]
        if package in HEAVY and unit not in HEAVY[package] and not (package == "torch" and unit == JOBS_TORCH):
            broken.append(f"{where}: {package} belongs in {sorted(HEAVY[package])}")
    return broken


def test_every_unit_is_on_the_map():
    unknown = {unit for path in SOURCES if (unit := unit_of(module_name(path))) is not None and unit not in LAYER}
    assert not unknown, f"give {sorted(unknown)} a layer"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(REPO)))
def test_imports_go_down(path):
    assert violations(path) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(REPO)))
def test_modules_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST
    assert path.name != "utils.py"


@pytest.mark.parametrize(
    ("place", "source", "broken"),
    [
        ("jocr/pages/x.py", "from jocr.model import ocr", True),
        ("jocr/pages/x.py", "import jocr.markup.text", True),
        ("jocr/pages/x.py", "def f():\n    from jocr import documents", True),
        ("jocr/pages/x.py", "from ..model.moe import x", True),
        ("jocr/pages/x.py", "from .sniff import sniff", False),
        ("jocr/pages/x.py", "import ray", True),
        ("jocr/rewards/x.py", "import torch.nn", True),
        ("jocr/model/x.py", "import torch.nn", False),
        ("jocr/model/x.py", "if TYPE_CHECKING:\n    import ray", False),
        ("jocr/evaluation/x.py", "from jocr.rewards import combine", False),
        ("jocr/rewards/x.py", "from jocr.evaluation import report", True),
        ("pipelines/x.py", "import ray.data\nfrom jocr.parsing import plan", False),
        ("pipelines/x.py", "from jobs import parse", True),
        ("jocr/storage.py", "from jocr.errors import StorageError", False),
    ],
)
def test_the_rule_itself_can_fail(tmp_path, monkeypatch, place, source, broken):
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    monkeypatch.setitem(globals(), "REPO", tmp_path)
    assert bool(violations(path)) is broken
