"""Words, layouts and fonts of the splits are kept apart; missing fonts are said so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jocr.errors import ConfigError
from jocr.synth import fonts
from jocr.synth.lexicon import FUNCTION, Lexicon, adverb, held_out, lexicon, plural, verb_forms
from jocr.synth.page import make_page


def _words(lex: Lexicon) -> set[str]:
    return {word.lower() for word in lex.words}


def test_word_lists_are_disjoint_and_large() -> None:
    train, held = _words(lexicon("train")), _words(lexicon("heldout"))
    assert not train & held
    assert len(train) > 2800
    assert len(held) > 600
    assert lexicon("heldout_font").words == lexicon("heldout").words


def test_pages_of_the_splits_share_no_content_word() -> None:
    shared = set(FUNCTION.split()) | {"said", "asked", "wrote", "cried", "replied", "kept", "began", "miss", "captain"}
    shared |= {"professor", "although", "because", "mr", "mrs", "dr"}
    seen = {}
    for split in ("train", "heldout"):
        text = " ".join(make_page(seed, "paragraph", 384, 384, split=split).markdown for seed in range(60))
        known = _words(lexicon("train")) | _words(lexicon("heldout"))
        seen[split] = {w for w in re.findall(r"\w+", text.lower()) if w in known} - shared
    assert not seen["train"] & seen["heldout"]
    assert min(len(s) for s in seen.values()) > 60


def _named(families: tuple[fonts.Family, ...]) -> set[str]:
    return {text for f in families for text in (f.name, f.regular, f.bold, f.italic)} - {""}


def _drawn(split: str) -> set[str]:
    return {make_page(seed, "paragraph", 96, 96, split=split).font for seed in range(60)}


def test_fonts_of_the_splits_are_disjoint() -> None:
    held = _named(fonts.HELD_OUT)
    assert not _named(fonts.TRAIN) & held
    assert not _named(fonts.EXTRA) & held
    assert not {m.name for m in fonts.TRAIN_MATH} & {m.name for m in fonts.HELD_OUT_MATH}
    train, extra = {f.name for f in fonts.TRAIN}, {f.name for f in fonts.EXTRA}
    assert not train & extra
    assert _drawn("train") <= train | extra
    assert _drawn("heldout") <= train  # whatever else is installed, held-out pages stay the same
    assert _drawn("heldout_font") <= {f.name for f in fonts.HELD_OUT}


def test_no_fonts_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "font_files", dict)
    for lookup in (fonts.families, fonts.math_families):
        with pytest.raises(ConfigError, match="apt-get install"):
            lookup.__wrapped__("train")
        with pytest.raises(ConfigError, match="JOCR_FONTS"):
            lookup.__wrapped__("heldout_font")


def test_fonts_are_found_in_a_named_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "NotoSans-Regular.ttf").write_bytes(b"")
    monkeypatch.setenv("JOCR_FONTS", str(tmp_path))
    assert fonts.font_files.__wrapped__()["NotoSans-Regular"] == tmp_path / "deep" / "NotoSans-Regular.ttf"


def test_about_a_fifth_of_the_words_is_held_out() -> None:
    share = sum(held_out(f"word{i}") for i in range(2000)) / 2000
    assert 0.15 < share < 0.25


@pytest.mark.parametrize(
    ("base", "forms"),
    [
        ("stop", ("stop", "stops", "stopped", "stopping")),
        ("open", ("open", "opens", "opened", "opening")),
        ("try", ("try", "tries", "tried", "trying")),
        ("tie", ("tie", "ties", "tied", "tying")),
        ("bake", ("bake", "bakes", "baked", "baking")),
        ("see:saw", ("see", "sees", "saw", "seeing")),
        ("fix", ("fix", "fixes", "fixed", "fixing")),
        ("pray", ("pray", "prays", "prayed", "praying")),
    ],
)
def test_verb_forms(base: str, forms: tuple[str, ...]) -> None:
    assert verb_forms(base) == forms


def test_adverbs() -> None:
    assert [adverb(a) for a in ("basic", "gentle", "happy", "full", "pale", "sole")] == [
        "basically", "gently", "happily", "fully", "palely", "solely",
    ]  # fmt: skip


def test_plurals() -> None:
    assert [plural(n) for n in ("box", "city", "day", "child", "knife")] == [
        "boxes",
        "cities",
        "days",
        "children",
        "knives",
    ]
