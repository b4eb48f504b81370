"""A small random model and its tokenizer."""

from __future__ import annotations

import pytest

from jocr.model.ocr import OcrModel
from jocr.model.tokenizer import Tokenizer, build_byte_tokenizer

from .tiny_model import TINY, scatter


@pytest.fixture
def tiny() -> OcrModel:
    model = OcrModel(TINY)
    scatter(model)
    return model.eval()


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer(build_byte_tokenizer(["<td>"], ["Read."]))
