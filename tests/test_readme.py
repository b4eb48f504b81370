"""The README's tree is the repository's, its commands exist, and its links lead somewhere.

``python tests/test_readme.py`` writes the tree anew, a line a file, from the first sentence of each docstring.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
README = REPO / "README.md"
TOPS = ("jocr", "pipelines", "jobs", "cluster")
BLOCK = re.compile(r"(<!-- tree -->\n```text\n)(.*?)(```\n<!-- /tree -->)", re.DOTALL)
WIDTH = 118  # characters of a line of the tree


def files() -> list[Path]:
    """Tracked files of the tree that a person reads: modules, recipes, manifests, but no ``__init__.py``."""
    listed = subprocess.run(["git", "ls-files", *TOPS], cwd=REPO, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [REPO / line for line in listed.stdout.splitlines()]
    return [path for path in paths if path.exists() and "data" not in path.parts and not _is_marker(path)]


def _is_marker(path: Path) -> bool:
    return path.name in {"__init__.py", "py.typed"}


def tree() -> str:
    """The block's text: folders in order, each with its docstring, and a line a file."""
    lines: list[str] = []
    folder: Path | None = None
    for path in sorted(files(), key=lambda p: (p.parent.relative_to(REPO).parts, p.name)):
        if path.parent != folder:
            folder = path.parent
            lines.append(_line(f"{folder.relative_to(REPO)}/", _says(folder / "__init__.py")))
        lines.append(_line(f"  {path.name}", _says(path)))
    return "\n".join(lines) + "\n"


def _line(name: str, says: str) -> str:
    text = f"{name:<24} {says}".rstrip()
    return text if len(text) <= WIDTH else text[: WIDTH - 2].rsplit(" ", 1)[0] + " …"


def _says(path: Path) -> str:
    """First sentence of a module's docstring, or of a file's first comment."""
    if not path.exists():
        return ""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
    else:
        text = next((line.lstrip("# ") for line in text.splitlines() if line.startswith("#")), "")
    return re.split(r"(?<=[^.])\.(?:\s|$)", " ".join(text.split()), maxsplit=1)[0].replace("``", "")


def names(block: str) -> set[str]:
    """Paths named in a tree block."""
    found, folder = set(), ""
    for line in block.splitlines():
        name = line.split()[0] if line.split() else ""
        if not line.startswith(" "):
            folder = name
        elif name:
            found.add(folder + name)
    return found


def commands() -> list[str]:
    """Lines of the README's shell blocks, joined where they continue, without comments."""
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:sh|bash|shell)\n(.*?)```", text, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.strip() and not line.startswith("#")]


def test_tree_names_every_file():
    match = BLOCK.search(README.read_text(encoding="utf-8"))
    assert match, "README.md needs a tree between its markers"
    listed, there = names(match[2]), {str(path.relative_to(REPO)) for path in files()}
    assert listed == there, (
        f"missing: {sorted(there - listed)}; gone: {sorted(listed - there)}; run `python tests/test_readme.py`"
    )


def test_readme_shows_commands():
    assert len(commands()) >= 8


@pytest.mark.parametrize("line", commands())
def test_command_exists(line):
    words = [word for word in shlex.split(line) if not re.fullmatch(r"[A-Z_]+=\S*", word)]
    if words[:2] == ["ray", "job"]:
        words = words[words.index("--") + 1 :]
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (REPO / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    elif words[0] == "jocr":
        _check_cli(words[1:])
    elif words[:2] == ["python", "-m"] and words[2].startswith("jobs."):
        _check_job(words[2:])
    elif words[:3] == ["python", "-m", "jocr.vllm_plugin"]:
        assert (REPO / "jocr/vllm_plugin/__main__.py").exists()
    elif words[0] in {"docker", "kubectl"}:
        assert all((REPO / word).exists() for word in words if word.startswith("cluster/"))
    elif words[:2] == ["pip", "install"] or words[0] in {"cd", "git", "export"}:
        pass
    else:
        raise AssertionError(f"a command this test does not know: {line}")


def _check_cli(words: list[str]) -> None:
    from typer.testing import CliRunner

    from jocr.cli import app

    path = []
    for word in words:
        if word.startswith("-") or CliRunner().invoke(app, [*path, word, "--help"]).exit_code != 0:
            break
        path.append(word)
        if len(path) == 2 or path[0] in {"parse", "reward", "synth"}:
            break
    assert path, words
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"}).output
    for word in words:
        if word.startswith("--"):
            assert re.search(rf"{word.split('=')[0]}\b", shown), f"jocr {' '.join(path)} has no option {word}"


def _check_job(words: list[str]) -> None:
    module, *arguments = words
    assert (REPO / Path(*module.split("."))).with_suffix(".py").exists(), module
    recipes = [word for word in arguments if word.endswith(".toml")]
    assert all((REPO / recipe).exists() for recipe in recipes), recipes
    if module == "jobs.parse":
        from jocr.config import ParseRecipe, load

        sets = [arguments[i + 1] for i, word in enumerate(arguments) if word == "--set"]
        load(ParseRecipe, REPO / recipes[0] if recipes else None, sets)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo"], "jocr parse jocr/data/examples --out out/demo"),
        (["demo", "SRC=a b.pdf", "OUT=elsewhere"], "jocr parse a b.pdf --out elsewhere"),
        (["test"], "-m pytest"),
        (["lint"], "ruff check"),
    ],
)
def test_make_says_what_the_readme_says(arguments, words):
    if shutil.which("make") is None:
        pytest.skip("no make here")
    done = subprocess.run(["make", "-n", *arguments], cwd=REPO, capture_output=True, text=True, check=True)
    assert words in done.stdout


def test_links_lead_somewhere():
    text = README.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (REPO / target).exists(), target


def test_a_wrong_tree_is_noticed():
    assert names("jocr/\n  a.py   does a\n  b.py\njocr/x/  folder\n  c.py  c\n") == {
        "jocr/a.py",
        "jocr/b.py",
        "jocr/x/c.py",
    }


if __name__ == "__main__":
    before = README.read_text(encoding="utf-8")
    README.write_text(BLOCK.sub(lambda m: m[1] + tree() + m[3], before), encoding="utf-8")
