"""What every button shares: one recipe file, ``--set a.b=c``, one sentence for an error, the exit codes of the CLI."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from jocr.config import Recipe, load, parse_set
from jocr.errors import ConfigError
from pipelines.stages import project_error as user_error

__all__ = ["main", "user_error"]

R = TypeVar("R", bound=Recipe)


class Terminated(BaseException):
    """SIGTERM, as an exception: what is open is closed on the way out."""


def main(
    recipe: type[R],
    run: Callable[[R], int],
    doc: str | None,
    argv: Sequence[str] | None = None,
    *,
    stopped: str = "stopped; nothing was written",
    shortcuts: Mapping[str, str] | None = None,
) -> None:
    """``python -m jobs.NAME [RECIPE.toml] [--set KEY=VALUE]...``; exits with what ``run`` returns.

    Args:
        stopped: what to say on Ctrl-C and SIGTERM.
        shortcuts: options of their own for some settings: name of the option -> key.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="?", help="TOML file; without it, the defaults")
    parser.add_argument("--set", dest="sets", action="append", default=[], metavar="KEY=VALUE", help="change a setting")
    for option, key in (shortcuts or {}).items():
        parser.add_argument(f"--{option}", dest=key, metavar=option.rpartition("-")[2].upper(), help=f"same as {key}=")
    given = vars(parser.parse_args(argv))
    own = {key: _value(given[key]) for key in (shortcuts or {}).values() if given[key] is not None}
    try:
        end_on_sigterm()
        sys.exit(run(load(recipe, given["recipe"], given["sets"], own)))
    except KeyboardInterrupt:
        _stop(stopped, 130)
    except Terminated:
        _stop(stopped, 143)
    except Exception as error:
        cause = user_error(error)
        if cause is None:
            raise
        _stop(str(cause), 2 if isinstance(cause, ConfigError) else 1)


def end_on_sigterm() -> None:
    """Turn SIGTERM into ``Terminated``. To be called again after ``ray.init``, which sets a handler of its own."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)


def _value(text: str) -> Any:
    return parse_set(f"key={text}")[1]


def _terminate(*_: object) -> NoReturn:
    raise Terminated


def _stop(message: str, code: int) -> NoReturn:
    print(f"jobs: {message}", file=sys.stderr)
    sys.exit(code)
