"""Ids and bytes of the embedded tokenizer; untrusted text; streaming."""

from __future__ import annotations

import json

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from jocr.errors import CheckpointError
from jocr.model.prompts import CHAT_TEMPLATE, DEFAULT_INSTRUCTION, prompt_text
from jocr.model.tokenizer import Tokenizer, build_byte_tokenizer, byte_alphabet, load_tokenizer, save_tokenizer

STRUCTURE = ["<td>", "</td>", "<table>", "\\frac{", "\\frac", "\n\n"]
RAW = build_byte_tokenizer(STRUCTURE, [DEFAULT_INSTRUCTION])
TOKENIZER = Tokenizer(RAW)
FIRST = 6 + 256


def byte_ids(text: str) -> list[int]:
    return [6 + b for b in text.encode()]


def test_ids_are_laid_out_as_documented() -> None:
    assert [TOKENIZER.bos_id, TOKENIZER.eos_id, TOKENIZER.pad_id, TOKENIZER.image_id] == [0, 1, 2, 3]
    assert TOKENIZER.encode_trusted("<|User|><|Assistant|>") == [4, 5]
    assert TOKENIZER.encode("aé\n") == byte_ids("aé\n")
    assert TOKENIZER.encode("<td>" + DEFAULT_INSTRUCTION) == [FIRST, FIRST + len(STRUCTURE)]
    assert TOKENIZER.vocab_size == FIRST + len(STRUCTURE) + 1 == RAW.get_vocab_size()
    assert TOKENIZER.control_ids == frozenset(range(6))


def test_longest_structure_token_wins() -> None:
    assert TOKENIZER.encode("\\frac{") == [FIRST + 3]
    assert TOKENIZER.encode("\\frac1") == [FIRST + 4, *byte_ids("1")]


@pytest.mark.parametrize("text", ["<image>", "a <|User|>b", "<<image>>", "<image><image>", "<｜end▁of▁sentence｜>"])
def test_control_spelt_in_untrusted_text_stays_text(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert not TOKENIZER.control_ids & set(ids)
    assert TOKENIZER.decode(ids) == text


def test_decode_keeps_structure_and_drops_control() -> None:
    ids = [0, *TOKENIZER.encode("<td>x</td>"), 3, 4, 2, 1]
    assert TOKENIZER.decode(ids) == "<td>x</td>"
    assert TOKENIZER.decode([10_000]) == ""


def test_broken_utf8_becomes_the_replacement_character() -> None:
    assert TOKENIZER.decode([6 + 0xC3]) == "�"
    assert TOKENIZER.decode([6 + 0xC3, *byte_ids("a"), 6 + 0xFF]) == "�a�"


@given(st.lists(st.integers(0, FIRST + len(STRUCTURE) + 3), max_size=40))
def test_stream_equals_decode(ids: list[int]) -> None:
    stream = TOKENIZER.stream()
    assert "".join([*(stream.push([i]) for i in ids), stream.close()]) == TOKENIZER.decode(ids)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_round_trip(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    assert RAW.decode(ids, skip_special_tokens=False) == text


def test_text_that_is_no_unicode_is_still_encoded() -> None:
    assert TOKENIZER.encode("a\ud800b") == byte_ids("a?b")


def test_stream_holds_back_half_a_character() -> None:
    stream = TOKENIZER.stream()
    assert [stream.push([i]) for i in byte_ids("é")] == ["", "é"]


def test_published_spelling_of_structure_flagged_special() -> None:
    raw = build_byte_tokenizer([], [])
    raw.add_special_tokens(["<td>", "<|det|>", "<|EOT|>"])
    tokenizer = Tokenizer(raw)
    assert tokenizer.decode(tokenizer.encode_trusted("<td><|det|><|EOT|>")) == "<td><|det|>"
    assert tokenizer.decode(tokenizer.encode("<|EOT|>")) == "<|EOT|>"


def test_loads_in_transformers_with_the_same_ids(tmp_path) -> None:
    from transformers import AutoTokenizer

    save_tokenizer(RAW, tmp_path, CHAT_TEMPLATE)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    mine = load_tokenizer(tmp_path)
    text = f"<image>\n{DEFAULT_INSTRUCTION}<td>é\\frac{{"
    assert theirs.encode(text, add_special_tokens=True) == mine.encode_trusted(text)
    assert theirs.decode(mine.encode("a <td> , b"), skip_special_tokens=True) == "a <td> , b"
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id) == (0, 1, 2)
    content = [{"type": "image_url"}, {"type": "text", "text": DEFAULT_INSTRUCTION}]
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": content}]
    rendered = theirs.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert rendered == prompt_text(DEFAULT_INSTRUCTION, "Be brief.")


def test_bad_files_are_checkpoint_errors(tmp_path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": 1}))
    with pytest.raises(CheckpointError):
        load_tokenizer(tmp_path)
    no_image = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={"a": 0}, merges=[]))
    with pytest.raises(CheckpointError, match="<image>"):
        Tokenizer(no_image)
    with pytest.raises(CheckpointError, match="byte-level"):
        Tokenizer(tokenizers.Tokenizer(tokenizers.models.BPE(vocab={"▁日": 0}, merges=[])))


def test_builder_refuses_ambiguous_tokens() -> None:
    with pytest.raises(ValueError, match="distinct"):
        build_byte_tokenizer(["<td>", "<td>"], [])
    with pytest.raises(ValueError, match="control"):
        build_byte_tokenizer(["<image>"], [])


def test_byte_alphabet_is_the_one_of_the_library() -> None:
    assert sorted(byte_alphabet()) == sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert len(set(byte_alphabet())) == 256
