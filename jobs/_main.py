"""What every button shares: one recipe file, ``--set a.b=c``, one sentence for an error, the exit codes of the CLI."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from jocr.config import Recipe, load
from jocr.errors import ConfigError, JocrError

R = TypeVar("R", bound=Recipe)


def main(recipe: type[R], run: Callable[[R], int], doc: str | None, argv: Sequence[str] | None = None) -> None:
    """``python -m jobs.NAME [RECIPE.toml] [--set KEY=VALUE]...``; exits with what ``run`` returns."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("recipe", nargs="?", help="TOML file; without it, the defaults")
    parser.add_argument("--set", dest="sets", action="append", default=[], metavar="KEY=VALUE", help="change a setting")
    given = parser.parse_args(argv)
    try:
        sys.exit(run(load(recipe, given.recipe, given.sets)))
    except KeyboardInterrupt:
        _stop("stopped; nothing was written", 130)
    except Exception as error:
        cause = user_error(error)
        if cause is None:
            raise
        _stop(str(cause), 2 if isinstance(cause, ConfigError) else 1)


def user_error(error: BaseException | None) -> JocrError | None:
    """The error of this project behind ``error``: Ray wraps what a task raises, once or more."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, JocrError):
            return error
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__
    return None


def _stop(message: str, code: int) -> None:
    print(f"jobs: {message}", file=sys.stderr)
    sys.exit(code)
