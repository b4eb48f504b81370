"""The prompt of a page, byte for byte as published: no BOS, roles followed by ``:`` and a line break."""

from __future__ import annotations

from jocr.model.tokenizer import ASSISTANT, IMAGE, USER, Tokenizer
from jocr.provenance import text_hash

DEFAULT_INSTRUCTION = (
    "Transcribe the provided document image into a clean Markdown format, preserving the natural reading order."
)
BENCHMARK_INSTRUCTION = (
    "Transcribe the provided document image into clean Markdown in natural reading order. Write formulas as LaTeX "
    "between $ or $$, tables as HTML. Leave out page headers, page footers and figures. If the page is blank, write "
    "null."
)

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['content'] is string -%}{%- set text = message['content'] -%}"
    "{%- else -%}{%- set parts = namespace(text='', image='') -%}"
    "{%- for part in message['content'] -%}"
    "{%- if part['type'] == 'text' -%}{%- set parts.text = parts.text + part['text'] -%}"
    "{%- elif 'image' in part['type'] -%}{%- set parts.image = parts.image + '" + IMAGE + "\\n' -%}{%- endif -%}"
    "{%- endfor -%}{%- set text = parts.image + parts.text -%}{%- endif -%}"
    "{%- if message['role'] == 'system' -%}{{- text -}}"
    "{%- elif message['role'] == 'user' -%}{{- '" + USER + ":\\n' + text + '\\n' -}}"
    "{%- else -%}{{- '" + ASSISTANT + ":\\n' + text + eos_token -}}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '" + ASSISTANT + ":\\n' -}}{%- endif -%}"
)
"""Jinja for ``tokenizer_config.json``: one user message of an image and a text renders as ``prompt_text``."""


def prompt_text(instruction: str, system: str | None = None) -> str:
    """The prompt with one ``<image>`` in place of the page's visual tokens. A system message stands bare in front."""
    return f"{system or ''}{USER}:\n{IMAGE}\n{instruction}\n{ASSISTANT}:\n"


def prompt_ids(tokenizer: Tokenizer, instruction: str, image_tokens: int, system: str | None = None) -> list[int]:
    """Token ids of the prompt, ``image_tokens`` image tokens in the place of the page.

    The text before and after the image is tokenised separately. ``instruction`` and ``system`` are untrusted: the
    spelling of a control token in them stays plain text.
    """
    before = _joined(tokenizer, "", system or "", f"{USER}:\n")
    after = _joined(tokenizer, "\n", instruction, f"\n{ASSISTANT}:\n")
    return [*before, *[tokenizer.image_id] * image_tokens, *after]


def prompt_hash(instruction: str, system: str | None = None) -> str:
    """What a page row's provenance says of the prompt: 16 hex digits of its SHA-256."""
    return text_hash(prompt_text(instruction, system))


def _joined(tokenizer: Tokenizer, head: str, untrusted: str, tail: str) -> list[int]:
    """Ids of the three texts as one, cut only where the untrusted one spells a control token."""
    pieces = tokenizer.pieces(untrusted)
    pieces[0] = head + pieces[0]
    pieces[-1] += tail
    return [i for piece in pieces for i in tokenizer.encode_trusted(piece)]
