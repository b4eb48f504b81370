"""Published benchmark numbers to stand beside ours, each with where it was printed. None of them was measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

OLMOCR_COLUMNS: dict[str, str] = {
    "arxiv_math": "ArXiv",
    "old_scans_math": "OldMath",
    "table_tests": "Tables",
    "old_scans": "OldScan",
    "headers_footers": "H&F",
    "multi_column": "MultiCol",
    "long_tiny_text": "Tiny",
    "baseline": "Base",
}
OMNIDOCBENCH_COLUMNS: dict[str, str] = {
    "overall": "Overall",
    "text_edit": "TextEdit",
    "cdm": "CDM",
    "teds": "TEDS",
    "teds_s": "TEDS-S",
    "reading_order": "ReadOrder",
}


@dataclass(frozen=True, slots=True)
class Published:
    """One system's printed scores; columns it did not print are left out. ``note`` says what to mind."""

    system: str
    overall: float
    scores: Mapping[str, float]
    source: str
    note: str = ""


def _olmocr(system: str, overall: float, row: Sequence[float | None], source: str, note: str = "") -> Published:
    scores = {k: v for k, v in zip(OLMOCR_COLUMNS, row, strict=True) if v is not None}
    return Published(system, overall, scores, source, note)


def _omni(system: str, overall: float, row: Sequence[float | None], source: str, note: str = "") -> Published:
    columns = [name for name in OMNIDOCBENCH_COLUMNS if name != "overall"]
    return Published(system, overall, {k: v for k, v in zip(columns, row, strict=True) if v is not None}, source, note)


_NOTHING: tuple[None, ...] = (None,) * len(OLMOCR_COLUMNS)
_BENCH_README = "allenai/olmocr, bench README"
_LIGHTON = "lightonai/LightOnOCR, result CSV"
_PAPER = "arXiv 2609.03181"
_OMNI_SOURCES = "OmniDocBench README; model cards and READMEs"

OLMOCR_BENCH: tuple[Published, ...] = (
    _olmocr("jina-ocr-v1", 83.4, _NOTHING, f"{_PAPER} and model card", "columns not printed"),
    _olmocr("DeepSeek-OCR", 75.7, (77.2, 73.6, 80.2, 33.3, 96.1, 66.4, 79.4, 99.8), _BENCH_README, f"76.0 in {_PAPER}"),
    _olmocr("olmOCR-2 (0.4.0)", 82.4, (83.0, 82.3, 84.9, 47.7, 96.1, 83.7, 81.9, 99.7), _BENCH_README),
    _olmocr("Chandra 0.1", 83.1, (82.2, 80.3, 88.0, 50.4, 90.8, 81.2, 92.3, 99.9), _BENCH_README),
    _olmocr("PaddleOCR-VL", 80.0, (85.7, 71.0, 84.1, 37.8, 97.0, 79.9, 85.7, 98.5), _BENCH_README),
    _olmocr("Infinity-Parser-7B", 82.5, (84.4, 83.8, 85.0, 47.9, 88.7, 84.2, 86.4, 99.8), _BENCH_README),
    _olmocr("MinerU 2.5.4", 75.2, (76.6, 54.6, 84.9, 33.7, 96.6, 78.2, 83.5, 93.7), _BENCH_README),
    _olmocr("dots.ocr", 79.1, (82.1, 64.2, 88.3, 40.9, 94.1, 82.4, 81.2, 99.5), "dots.ocr README"),
    _olmocr("dots.mocr", 83.9, (85.9, 85.5, 90.7, 48.2, 94.0, 85.3, 81.6, 99.7), "dots.ocr README", "headers removed"),
    _olmocr(
        "chandra-ocr-2", 85.8, (86.9, 89.1, 92.1, 51.3, 91.3, 82.1, 93.7, 99.9), _LIGHTON, "post-processed; raw 85.1"
    ),
    _olmocr(
        "Infinity-Parser2-Pro", 86.9, (88.4, 87.8, 89.9, 57.6, 95.1, 83.9, 92.5, 100.0), _LIGHTON, "post; raw 85.9"
    ),
    _olmocr("LightOnOCR-3-4B", 86.1, (91.0, 88.6, 89.5, 51.7, 89.3, 85.3, 93.7, 99.4), _LIGHTON),
    _olmocr(
        "LightOnOCR-2-1B", 83.2, (89.6, 85.6, 89.0, 42.2, None, 84.8, 91.4, 99.6), "arXiv 2601.14251", "without H&F"
    ),
    _olmocr("Surya OCR 2", 83.3, (88.3, 81.4, 86.6, 41.8, 92.5, 82.4, 93.7, 99.7), "model card"),
    _olmocr("Qianfan-OCR", 79.8, (80.1, 73.1, 81.6, 42.0, 92.2, 80.4, 89.1, 99.6), "model card"),
)

OMNIDOCBENCH_V16: tuple[Published, ...] = (
    _omni("jina-ocr-v1", 91.14, (None,) * 5, _PAPER, "full set; with repeated tails cut"),
    _omni("DeepSeek-OCR-2", 90.25, (0.050, 91.84, 83.89, 87.75, 0.144), _OMNI_SOURCES, "90.17 elsewhere"),
    _omni("dots.ocr", 90.77, (0.048, 89.95, 87.18, 90.58, 0.138), _OMNI_SOURCES),
    _omni("olmOCR", 85.74, (0.139, 88.10, 83.00, 87.17, 0.216), _OMNI_SOURCES),
    _omni("Qwen3-VL-235B", 89.78, (0.063, 92.55, 83.07, 86.75, 0.166), _OMNI_SOURCES),
    _omni("HunyuanOCR-1.5", 94.74, (0.039, 94.50, 93.67, 94.71, 0.129), _OMNI_SOURCES),
    _omni("Unlimited-OCR", 93.92, (0.042, 95.79, 90.16, 93.32, 0.129), _OMNI_SOURCES),
    _omni("MinerU2.5-Pro", 95.75, (0.036, 97.45, 93.42, 95.92, 0.120), _OMNI_SOURCES),
    _omni("PaddleOCR-VL-1.6", 96.33, (0.033, 97.49, 94.76, 97.11, 0.127), _OMNI_SOURCES),
    _omni("OvisOCR2", 96.58, (0.025, 97.53, 94.76, 97.16, 0.111), _OMNI_SOURCES),
)

OMNIDOCBENCH_V15: tuple[Published, ...] = (
    _omni("DeepSeek-OCR", 87.36, (0.073, 84.14, 85.25, 89.01, 0.085), _OMNI_SOURCES),
    _omni("DeepSeek-OCR-2", 91.09, (None,) * 5, _OMNI_SOURCES),
    _omni("FD-RL", 90.41, (None,) * 5, "arXiv 2601.08834"),
)
