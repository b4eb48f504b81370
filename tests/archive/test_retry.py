"""The ladder with the fake decoder: which rungs are taken, what is kept, what the row says of it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from PIL import Image

from jocr import documents
from jocr.archive.retry import climb
from jocr.config import ParseRecipe, Rung, load
from jocr.decoding.fake import Act, FakeDecoder
from jocr.documents import Origin
from jocr.errors import EngineError
from jocr.records import DocRef, PageFailure, PageImage, PageInput, PageRef, ParsedPage, Transcript

ORIGIN = Origin("fake", "fake-1", "hash", "jocr-fake 1")
REF = PageRef(DocRef("s3://b/a.pdf", "ab" * 32, 9, "pdf"), 4)


def sheet(scale: float = 1.0, rotate: int = 0) -> PageImage:
    width, height = round(60 * scale), round(100 * scale)
    if rotate % 180:
        width, height = height, width
    out = io.BytesIO()
    Image.new("RGB", (width, height), (rotate, 255, 255)).save(out, "png")
    return PageImage(REF, out.getvalue(), width, height, 600, 1000, 72 * scale, rotate, "fake", False, "ink", 0.5)


@dataclass
class Ladder:
    """Decodes with ``FakeDecoder``, the first reading included; ``texts`` and ``details`` replace what it says."""

    script: Mapping[int, Act]
    texts: Mapping[int, str] = field(default_factory=dict)
    refuse: Sequence[float] = ()  # scales that cannot be rendered
    asked: list[PageInput] = field(default_factory=list)
    rendered: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.decoder = FakeDecoder(script=self.script)

    def ask(self, image: PageImage, rung: Rung) -> Transcript:
        number = len(self.asked)
        page = PageInput(REF.page_id, image.png, "read", rung.max_tokens or 1000, rung.temperature, rung.seed)
        self.asked.append(page)
        (done,) = self.decoder.decode([page])
        return replace(done, text=self.texts.get(number, done.text), seconds=2.0)

    def render(self, scale: float, rotate: int) -> PageImage | PageFailure:
        self.rendered.append((scale, rotate))
        if scale in self.refuse:
            return PageFailure(REF.doc.uri, REF.doc.sha256, 4, "render", "render_timeout")
        return sheet(scale, rotate)

    def climb(self, *rungs: dict[str, Any], attempts: int = 1) -> ParsedPage:
        first = documents.transcribed(sheet(), self.ask(sheet(), Rung()), ORIGIN, attempts=attempts)
        first = replace(first, member="in/side.pdf", etag="v1", collection="c", key=77)
        return climb(first, sheet(), [Rung(**rung) for rung in rungs], self.ask, self.render)


def test_a_loop_that_a_smaller_image_ends() -> None:
    ladder = Ladder({0: "loop", 1: "loop"})
    row = ladder.climb({"scale": 1.25}, {"scale": 0.75, "rotate": 90}, {"scale": 0.5})
    assert (row.status, row.reason, row.stop) == ("ok", None, "end")
    assert row.detail == "loop at 100 px; loop at 125 px, rung 1; ok at 75 px, turned 90 degrees, rung 2"
    assert (row.attempts, row.width, row.height, row.rotation, row.dpi) == (3, 75, 45, 90, 54)
    assert (row.decode_seconds, row.render_seconds, row.seconds) == (6.0, 1.5, 7.5)
    single = len(FakeDecoder().decode([ladder.asked[0]]).__next__().tokens)
    assert single > 5
    assert row.tokens == sum(len(t.tokens) for t in FakeDecoder(script={0: "loop", 1: "loop"}).decode(ladder.asked))
    assert row.prompt_tokens == 30
    assert row.sampling == "greedy"
    assert (row.page_id, row.uri, row.page, row.key) == (REF.page_id, REF.doc.uri, 5, 77)
    assert (row.member, row.etag, row.collection) == ("in/side.pdf", "v1", "c")
    assert (row.model, row.revision, row.prompt_hash, row.engine) == ("fake", "fake-1", "hash", "jocr-fake 1")
    assert ladder.rendered == [(1.25, 0), (0.75, 90)]


def test_a_truncated_page_gets_a_larger_cap_and_nothing_else() -> None:
    ladder = Ladder({0: "length"})
    row = ladder.climb({"on": ["loop"], "scale": 0.5}, {"on": ["truncated"], "max_tokens": 4000})
    assert (row.status, row.attempts) == ("ok", 2)
    assert row.detail == "truncated at 100 px; ok at 100 px, up to 4000 tokens, rung 2"
    assert [page.max_tokens for page in ladder.asked] == [1000, 4000]
    assert ladder.rendered == []


def test_an_empty_answer_to_a_page_with_ink_is_asked_again_and_else_failed() -> None:
    rungs = ({"on": ["empty_output"], "temperature": 0.4, "seed": 1},)
    row = Ladder({0: "empty"}).climb(*rungs)
    assert (row.status, row.sampling) == ("ok", "temperature 0.4, seed 1")
    assert row.detail == "empty_output at 100 px; ok at 100 px, temperature 0.4, seed 1, rung 1"
    row = Ladder({0: "empty", 1: "empty"}).climb(*rungs)
    assert (row.status, row.reason, row.attempts, row.sampling) == ("failed", "empty_output", 2, "greedy")
    assert row.detail.endswith("; kept the first")


@pytest.mark.parametrize(("endings", "kept"), [
    (("loop", "length", "empty"), 1), (("empty", "loop", "error"), 1), (("length", "loop", "loop"), 0),
    (("empty", "error", "timeout"), 0), (("loop", "empty", "length"), 2),
])  # fmt: skip
def test_the_best_of_bad_endings_is_kept(endings: Sequence[Act], kept: int) -> None:
    ladder = Ladder(dict(enumerate(endings)))
    row = ladder.climb({"scale": 0.5}, {"scale": 0.75})
    alone = Ladder({0: endings[kept]}).climb()
    assert (row.status, row.reason, row.stop) == (alone.status, alone.reason, alone.stop)
    assert row.width == (60, 30, 45)[kept]
    assert row.attempts == 3
    assert f"kept {('the first', 'rung 1', 'rung 2')[kept]}" in row.detail


def test_of_equal_endings_the_longest_good_text_is_kept_and_then_the_earliest() -> None:
    texts = {0: "# A", 1: "# A\n\nand more", 2: "# B\n\nand more"}
    row = Ladder({0: "loop", 1: "loop", 2: "loop"}, texts).climb({"scale": 0.5}, {"scale": 0.75})
    assert row.markdown == texts[1]
    assert row.detail.endswith("; kept rung 1: scripted")
    row = Ladder({0: "loop", 1: "loop"}, {0: "# A", 1: "# B"}).climb({"scale": 0.5})
    assert row.markdown == "# A"


def test_rungs_follow_how_the_page_would_end_now() -> None:
    """A loop became a truncation: the rung for truncation applies, one for loops does not any more."""
    ladder = Ladder({0: "loop", 1: "length"})
    row = ladder.climb(
        {"on": ["loop"], "scale": 0.5}, {"on": ["loop"], "scale": 0.25}, {"on": ["truncated"], "max_tokens": 2000}
    )
    assert row.detail == "loop at 100 px; truncated at 50 px, rung 1; ok at 100 px, up to 2000 tokens, rung 3"
    ladder = Ladder({0: "loop", 1: "empty"})  # an empty answer is no better than the loop: still a loop
    row = ladder.climb({"scale": 0.5}, {"on": ["empty_output"], "scale": 0.75}, {"on": ["loop"], "scale": 1.25})
    assert row.detail == "loop at 100 px; empty_output at 50 px, rung 1; ok at 125 px, rung 3"


def test_nothing_is_asked_twice() -> None:
    ladder = Ladder(dict.fromkeys(range(9), "loop"))
    hot = {"temperature": 0.4, "seed": 1}
    row = ladder.climb({"seed": 5}, {"scale": 0.5}, {"scale": 0.5}, hot, hot, {**hot, "seed": 2}, {"scale": 0.5, **hot})
    assert [(p.temperature, p.seed) for p in ladder.asked] == [(0, 0), (0, 0), (0.4, 1), (0.4, 2), (0.4, 1)]
    assert row.attempts == 5
    assert ladder.rendered == [(0.5, 0)]  # one rendering for both rungs of that size, paid once
    assert row.render_seconds == 1.0


def test_pages_that_no_rung_is_for_stay_as_they_are() -> None:
    rungs = ({"scale": 0.5},)
    for act in ("end", "error", "timeout"):
        ladder = Ladder({0: act})  # type: ignore[dict-item]
        row = ladder.climb(*rungs, attempts=2)
        assert (len(ladder.asked), row.attempts, row.detail) == (1, 2, Ladder({0: act}).climb().detail)  # type: ignore[dict-item]
    assert Ladder({0: "loop"}).climb().detail == "scripted"


def test_attempts_go_on_from_the_first_readings() -> None:
    assert Ladder({0: "loop"}).climb({"scale": 0.5}, attempts=3).attempts == 4


def test_a_size_that_cannot_be_rendered_costs_no_decode_and_does_not_end_the_ladder() -> None:
    ladder = Ladder({0: "loop"}, refuse=(2.0,))
    row = ladder.climb({"scale": 2.0}, {"scale": 0.5})
    assert (row.status, row.attempts, len(ladder.asked)) == ("ok", 2, 2)
    assert row.detail == "loop at 100 px; render_timeout when drawn at 2 times the size, rung 1; ok at 50 px, rung 2"


def test_a_decoder_that_dies_is_not_the_ladders_to_judge() -> None:
    with pytest.raises(EngineError):
        Ladder({0: "loop", 1: "die"}).climb({"scale": 0.5})


def test_a_ladder_is_a_table_of_the_recipe(tmp_path: Any) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text('[[retry]]\non = ["loop"]\nscale = 0.8\n[[retry]]\ntemperature = 0.4\nseed = 3\n', "utf-8")
    rungs = load(ParseRecipe, recipe).retry
    assert rungs == (Rung(on=("loop",), scale=0.8), Rung(temperature=0.4, seed=3))
