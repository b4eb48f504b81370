"""A drawn page with glyph positions -> one training example: views, token ids and the labels the renderer knows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from jocr.losses.sft import IGNORE
from jocr.model.vision import page_layout
from jocr.pages.tiles import ProcessorConfig, page_views
from jocr.synth.page import SynthPage

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CELL_GLYPHS = 12  # how many glyphs of one cell the projector's auxiliary head names
_EXTRA = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿœŒšŽž€£¥§©°±·×÷–—‘’“”„…•√∑∫∏∞≤≥≠≈→←∈∂∇"
_GREEK = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ"
GLYPH_CLASSES = {c: i + 1 for i, c in enumerate([*map(chr, range(33, 127)), *_EXTRA, *_GREEK])}
NUM_GLYPHS = len(GLYPH_CLASSES) + 1  # class 0: no glyph


@dataclass(frozen=True, slots=True)
class Example:
    """One page. T tiles of L px (T may be 0), one global view of G px, R response tokens with the end token.

    tiles (T, L, L) and whole (G, G), uint8 grey; ids (R,). Glyphs are named in the V views of S px where the text is
    largest, the tiles or, without any, the global view: patch_glyphs (V, S/16, S/16), cell_glyphs (V, (S/64)^2,
    CELL_GLYPHS). looks (2, R): visual row that holds the glyph just written and the one to write next. IGNORE where
    unknown.
    """

    tiles: np.ndarray
    whole: np.ndarray
    grid: tuple[int, int] | None
    ids: np.ndarray
    patch_glyphs: np.ndarray
    cell_glyphs: np.ndarray
    looks: np.ndarray
    instruction: int


def make_example(page: SynthPage, tokenizer: Tokenizer, cfg: ProcessorConfig, instruction: int, eos: int) -> Example:
    """Encode one drawn page; ``instruction`` is the token id of the instruction it is trained with."""
    views = page_views(Image.fromarray(page.image), cfg)
    named = (1, cfg.base_size) if views.grid is None else (len(views.tiles), cfg.image_size)
    where = locate(page, cfg, views.grid)
    encoding = tokenizer.encode(page.markdown, add_special_tokens=False)
    ids = np.array([*encoding.ids, eos], np.int64)
    starts = np.array([start for start, _ in encoding.offsets], np.int64)
    return Example(views.tiles[..., 0], views.global_view[..., 0], views.grid, ids, _patch_glyphs(where, *named, cfg),
                   _cell_glyphs(where, *named, cfg), _looks(where, starts, len(page.markdown)),
                   instruction)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Located:
    """Glyphs with known class or position, in view coordinates: all arrays (G,)."""

    kind: np.ndarray  # glyph class, IGNORE for unknown characters
    view: np.ndarray
    x: np.ndarray  # pixels inside the view
    y: np.ndarray
    pos: np.ndarray  # index in the Markdown, -1 for none
    visual: np.ndarray  # index of the visual row, in prompt order, that covers the glyph


def locate(page: SynthPage, cfg: ProcessorConfig, grid: tuple[int, int] | None) -> Located:
    """Where every glyph falls in the views: in its tile, or in the global view where there are no tiles."""
    h, w = page.image.shape
    gx, gy = page.glyphs["x"].astype(np.float64), page.glyphs["y"].astype(np.float64)
    kind = np.array([GLYPH_CLASSES.get(c, IGNORE) for c in page.glyphs["char"]], np.int64)
    size = cfg.base_size if grid is None else cfg.image_size
    if grid is None:
        scale = min(size / w, size / h)
        x = gx * scale + round((size - round(w * scale)) / 2)
        y = gy * scale + round((size - round(h * scale)) / 2)
        column = row = np.zeros(len(x), np.int64)
        view = column
    else:
        x, y = gx * grid[0] * size / w, gy * grid[1] * size / h
        column = np.clip(x // size, 0, grid[0] - 1).astype(np.int64)
        row = np.clip(y // size, 0, grid[1] - 1).astype(np.int64)
        view, x, y = row * grid[0] + column, x - column * size, y - row * size
    x, y = np.clip(x, 0, size - 1), np.clip(y, 0, size - 1)
    side = cfg.side(size)
    bank = view * side**2 + (y // 64).astype(np.int64) * side + (x // 64).astype(np.int64)
    inverse = _inverse_layout(grid, cfg.side(cfg.base_size), cfg.side(cfg.image_size))
    return Located(kind, view, x, y, page.glyphs["pos"].astype(np.int64), inverse[bank])


@lru_cache(maxsize=64)
def _inverse_layout(grid: tuple[int, int] | None, g: int, n: int) -> np.ndarray:
    layout = page_layout(grid, g, n)
    inverse = np.full(layout.max() + 1, IGNORE, np.int64)
    inverse[layout[layout >= 0]] = np.flatnonzero(layout >= 0)
    return inverse


def _patch_glyphs(where: Located, views: int, size: int, cfg: ProcessorConfig) -> np.ndarray:
    n = size // cfg.patch_size
    labels = np.zeros((views, n, n), np.int64)
    labels[where.view[::-1], where.y[::-1].astype(int) // 16, where.x[::-1].astype(int) // 16] = where.kind[::-1]
    return labels


def _cell_glyphs(where: Located, views: int, size: int, cfg: ProcessorConfig) -> np.ndarray:
    side = cfg.side(size)
    labels = np.zeros((views, side * side, CELL_GLYPHS), np.int64)
    cell = where.view * side**2 + (where.y // 64).astype(np.int64) * side + (where.x // 64).astype(np.int64)
    order = np.lexsort((where.pos, cell))
    order = order[where.pos[order] >= 0]
    ordered = cell[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    fits = rank < CELL_GLYPHS
    labels.reshape(-1, CELL_GLYPHS)[ordered[fits], rank[fits]] = where.kind[order][fits]
    return labels


def _looks(where: Located, starts: np.ndarray, length: int) -> np.ndarray:
    at = np.full(length + 1, IGNORE, np.int64)
    seen = where.pos >= 0
    at[where.pos[seen]] = where.visual[seen]
    of_token = at[starts]
    upcoming = np.append(_fill(of_token[::-1])[::-1], IGNORE)  # the end token looks nowhere
    written = np.append(IGNORE, _fill(of_token))
    return np.stack([written, upcoming])


def _fill(values: np.ndarray) -> np.ndarray:
    """Carry the last known value forward."""
    last = np.maximum.accumulate(np.where(values != IGNORE, np.arange(len(values)), -1))
    return np.where(last >= 0, values[np.maximum(last, 0)], IGNORE)
