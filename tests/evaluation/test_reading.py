"""The reading benchmark scores what a decoder wrote, not what it was meant to write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from jocr.decoding.protocol import EngineInfo
from jocr.evaluation.reading import SETS, inputs_of, pages_of, score_set
from jocr.records import PageInput, Transcript

INFO = EngineInfo("scripted", "", "test", "cpu", "float32", "0", "exact")


class Scripted:
    """Writes ``answer(reference)`` for page i of a set, last page first."""

    info = INFO

    def __init__(self, references: list[str], answer: Callable[[str], str], stop: str = "end") -> None:
        self.references, self.answer, self.stop = references, answer, stop

    def decode(self, pages: Iterable[PageInput]) -> Iterator[Transcript]:
        for page in reversed(list(pages)):
            text = self.answer(self.references[int(page.page_id)])
            yield Transcript(page.page_id, text, (1,) * 4, self.stop, 30, 0.0, 2, (2, 2), (2, 1))  # type: ignore[arg-type]

    def close(self) -> None: ...


@pytest.mark.parametrize("which", SETS[:2], ids=lambda s: s.name)
def test_scores(which: object) -> None:
    assert which in SETS
    page_set = SETS[SETS.index(which)]  # type: ignore[arg-type]
    references = [p.markdown for p in pages_of(page_set, 4)]
    perfect, pairs = score_set(page_set, Scripted(references, lambda r: r), 4)
    assert (perfect.cer, perfect.exact, perfect.loops) == (0.0, 1.0, 0)
    assert [ref for ref, _ in pairs] == references
    assert perfect.tau == pytest.approx(1 + 3 / 2)
    assert perfect.acceptance == (1.0, 0.5)
    silent, _ = score_set(page_set, Scripted(references, lambda r: "", "loop"), 4)
    assert (silent.cer, silent.exact, silent.loops) == (1.0, 0.0, 4)
    if page_set.kind == "table":
        assert perfect.teds == 1.0
        assert silent.teds == 0.0


def test_inputs_are_the_pages_and_none_is_a_training_page() -> None:
    pages = pages_of(SETS[3], 2)
    assert [p.image.shape for p in pages] == [(512, 512), (768, 512)]
    assert [i.page_id for i in inputs_of(pages)] == ["0", "1"]
