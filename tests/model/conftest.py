"""A small random model and its tokenizer."""

from __future__ import annotations

import pytest

from jocr.model.ocr import OcrModel
from jocr.model.tokenizer import Tokenizer, build_byte_tokenizer
from jocr.model.weights import save_checkpoint

from .tiny_model import PROCESSOR, TINY, scatter


@pytest.fixture
def tiny() -> OcrModel:
    model = OcrModel(TINY)
    scatter(model)
    return model.eval()


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer(build_byte_tokenizer(["<td>"], ["Read."]))


@pytest.fixture
def saved(tmp_path, tiny, tokenizer):
    save_checkpoint(tiny, tokenizer, PROCESSOR, tmp_path / "ck")
    return tmp_path / "ck"
