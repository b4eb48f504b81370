"""Text to token ids and back, over a checkpoint's ``tokenizer.json``.

Three kinds of added tokens are told apart by their spelling, not by the file's ``special`` flag (the published file
flags ``<td>`` as special): *control* tokens (begin, end, pad, ``<image>``, roles) steer the model and are never part of
a text; *structure* tokens (``<td>``, ``\\frac{``) and whole instructions are text like any other.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from jocr.errors import CheckpointError

BOS, EOS, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
IMAGE, USER, ASSISTANT = "<image>", "<|User|>", "<|Assistant|>"
CONTROL = (BOS, EOS, PAD, IMAGE, USER, ASSISTANT)  # ids 0..5 of a tokenizer built here

_CONTROL = re.compile(r"<｜[^<>]*｜>|<image>|<\|(?!/?(?:ref|det)\||grounding\|)[^<>]*\|>")


class Tokenizer:
    """A byte-level tokenizer with the ids the model's prompt needs.

    Raises:
        CheckpointError: the tokenizer is not byte-level, or lacks ``<image>`` or the end token.
    """

    def __init__(self, raw: tokenizers.Tokenizer) -> None:
        self.raw = raw
        self._bytes = _token_bytes(raw)
        added = {token.content: i for i, token in raw.get_added_tokens_decoder().items()}
        control = {text: i for text, i in added.items() if _CONTROL.fullmatch(text)}
        self.control_ids = frozenset(control.values())
        for i in self.control_ids:
            self._bytes[i] = b""
        literals = sorted(control, key=len, reverse=True)
        self._literal = re.compile("|".join(re.escape(text) for text in literals) or r"(?!)")
        self.bos_id, self.eos_id, self.pad_id = (control.get(name) for name in (BOS, EOS, PAD))
        if IMAGE not in control or EOS not in control:
            raise CheckpointError(f"tokenizer.json has no {IMAGE} or no {EOS} token")
        self.image_id: int = control[IMAGE]

    @property
    def vocab_size(self) -> int:
        """One more than the largest id."""
        return max(self._bytes) + 1

    def pieces(self, text: str) -> list[str]:
        """Cut ``text`` so that no piece holds the spelling of a control token; joined they are ``text`` again."""
        cuts = [0, *(match.start() + 1 for match in self._literal.finditer(text)), len(text)]
        return [text[a:b] for a, b in pairwise(cuts)]

    def encode(self, text: str) -> list[int]:
        """Ids of untrusted text: a literal ``<image>`` or ``<|User|>`` in it stays plain characters."""
        return [i for piece in self.pieces(text) for i in self.encode_trusted(piece)]

    def encode_trusted(self, text: str) -> list[int]:
        """Ids of a text whose control tokens are meant. Nothing is added (no BOS). Lone surrogates become ``?``."""
        text = text.encode("utf-8", "replace").decode()
        return self.raw.encode(text, add_special_tokens=False).ids

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """UTF-8 bytes of the text; of a prefix of the ids, a prefix of the bytes. Control and unused ids give none."""
        table = self._bytes
        return b"".join(table.get(i, b"") for i in ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text; invalid or unfinished UTF-8 becomes U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def stream(self) -> TextStream:
        """A decoder for tokens that come one by one."""
        return TextStream(self)


class TextStream:
    """Decodes tokens as they come, holding back an unfinished character until it is finished.

    The pieces returned by ``push`` and ``close`` joined together are exactly ``Tokenizer.decode`` of all the ids.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, ids: Sequence[int]) -> str:
        return self._utf8.decode(self._tokenizer.decode_bytes(ids))

    def close(self) -> str:
        return self._utf8.decode(b"", True)


def load_tokenizer(directory: str | Path) -> Tokenizer:
    """Read ``directory/tokenizer.json``.

    Raises:
        CheckpointError: the file is missing, unreadable or not a byte-level tokenizer of this family.
    """
    path = Path(directory) / "tokenizer.json"
    try:
        raw = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for every kind of failure
        raise CheckpointError(f"cannot read {path}: {error}") from error
    return Tokenizer(raw)


def build_byte_tokenizer(structure: Sequence[str], instructions: Sequence[str]) -> tokenizers.Tokenizer:
    """A tokenizer without merges: 6 control tokens, 256 bytes, structure tokens, then whole instructions.

    Byte b has id 6 + b. Structure tokens and instructions are matched longest first and are part of the text.
    """
    more = [*structure, *instructions]
    if len(set(more)) != len(more) or any(not text or _CONTROL.fullmatch(text) for text in more):
        raise ValueError("structure tokens and instructions must be distinct, not empty and no control token")
    alphabet = byte_alphabet()
    vocab = {text: i for i, text in enumerate([*CONTROL, *(alphabet[b] for b in range(256))])}
    raw = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in CONTROL])
    raw.add_tokens([AddedToken(text, special=False, normalized=False) for text in more])
    return raw


def save_tokenizer(raw: tokenizers.Tokenizer, directory: str | Path, chat_template: str | None = None) -> None:
    """Write ``tokenizer.json`` and the ``tokenizer_config.json`` with which transformers and vLLM load it."""
    directory = Path(directory)
    raw.save(str(directory / "tokenizer.json"))
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS, "eos_token": EOS, "pad_token": PAD, "unk_token": None,
        "add_bos_token": False, "add_eos_token": False, "clean_up_tokenization_spaces": False,
    }  # fmt: skip
    if chat_template is not None:
        config["chat_template"] = chat_template
    text = json.dumps(config, ensure_ascii=False, indent=2) + "\n"
    (directory / "tokenizer_config.json").write_text(text, encoding="utf-8")


def byte_alphabet() -> list[str]:
    """The character that stands for each byte in a byte-level vocabulary.

    Printable Latin-1 stands for itself; the other bytes take the code points from 256 on, in order.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(moved)) for b in range(256)]


def _token_bytes(raw: tokenizers.Tokenizer) -> dict[int, bytes]:
    """Bytes of every token of the vocabulary; added tokens are spelt as they are."""
    byte_of = {char: b for b, char in enumerate(byte_alphabet())}
    added = raw.get_added_tokens_decoder()
    table = {i: token.content.encode() for i, token in added.items()}
    for text, i in raw.get_vocab(with_added_tokens=True).items():
        if i in table:
            continue
        try:
            table[i] = bytes(byte_of[char] for char in text)
        except KeyError as error:
            raise CheckpointError(f"tokenizer.json is not byte-level: token {text!r}") from error
    return table
