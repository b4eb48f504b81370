"""Names that any table can hold, and clashes among millions of them found with eight bytes a name."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jocr.errors import ConfigError

MARK = "~bytes:"  # begins the stored form of a name that is not valid Unicode


def stored(name: str) -> str:
    r"""``name`` as valid Unicode: itself, unless it holds bytes outside UTF-8 (which Python spells as lone surrogates).

    Such a name becomes ``~bytes:`` and its text with ``\udcff`` for each surrogate and ``\\`` for a backslash; one that
    begins with ``~bytes:`` is written so too. ``original`` is the inverse; no two names have the same stored form.
    """
    try:
        name.encode("utf-8")
        if not name.startswith(MARK):
            return name
    except UnicodeEncodeError:
        pass
    return MARK + name.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode("utf-8")


def original(text: str) -> str:
    """The name whose stored form is ``text``."""
    if not text.startswith(MARK):
        return text
    return re.sub(r"\\(?:\\|u([0-9a-f]{4}))", _unescape, text.removeprefix(MARK))


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else "\\"


def to_array(names: Sequence[str]) -> pa.Array:
    """Names in stored form as an Arrow column; quick where all are plain."""
    try:
        column = pa.array(names, pa.string())
        if not pc.any(pc.starts_with(column, MARK)).as_py():
            return column
    except UnicodeEncodeError:
        pass
    return pa.array([stored(name) for name in names], pa.string())


def to_list(column: pa.ChunkedArray | pa.Array) -> list[str]:
    """The names of a column in stored form."""
    return [original(text) for text in column.to_pylist()]


def digest(text: str) -> int:
    """Unsigned 64 bits of a name."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


class Digests:
    """Names seen, at eight bytes each. ``repeated`` names the few digests that deserve an exact look."""

    def __init__(self) -> None:
        self._seen = array("Q")

    def add(self, text: str) -> None:
        self._seen.append(digest(text))

    def __len__(self) -> int:
        return len(self._seen)

    def sorted(self) -> np.ndarray:
        """(n,) uint64, ascending."""
        return np.sort(np.frombuffer(self._seen, np.uint64)) if self._seen else np.empty(0, np.uint64)

    def repeated(self) -> set[int]:
        values = self.sorted()
        return set(values[1:][values[1:] == values[:-1]].tolist())


class OutputNames:
    """Output paths of a whole archive; ``check`` refuses two that are one, and a file that is another's folder."""

    def __init__(self) -> None:
        self._files, self._folders = Digests(), Digests()
        self._folder = ""

    def add(self, output: str) -> None:
        """One document's output, a relative path; neighbours in the listing mostly share their folder."""
        self._files.add(output)
        folder = output.rpartition("/")[0]
        if folder != self._folder:
            self._folder = folder
            for parent in _parents(output):
                self._folders.add(parent)

    def check(self, again: Callable[[], Iterable[tuple[str, str]]]) -> None:
        """
        Args:
            again: (output, uri) of every document once more; asked only where two digests are equal.

        Raises:
            ConfigError: two documents would write the same file, or one a file where the other needs a folder.
        """
        both = np.intersect1d(self._files.sorted(), np.unique(self._folders.sorted()), assume_unique=False)
        suspects = self._files.repeated() | set(both.tolist())
        if suspects:
            _refuse(suspects, again)


def _refuse(suspects: set[int], again: Callable[[], Iterable[tuple[str, str]]]) -> None:
    owner: dict[str, str] = {}
    for output, uri in again():
        if digest(output) not in suspects:
            continue
        if output in owner:
            raise ConfigError(
                f"{owner[output]} and {uri} would both be written to {output}; rename one, or parse them into two "
                "directories"
            )
        owner[output] = uri
    for output, uri in again():
        for folder in _parents(output):
            if folder in owner:
                raise ConfigError(
                    f"{owner[folder]} needs a file {folder}, and {uri} a folder of that name; rename one, or parse "
                    "them into two directories"
                )


def _parents(path: str) -> Iterator[str]:
    at = path.find("/")
    while at > 0:
        yield path[:at]
        at = path.find("/", at + 1)
