"""OmniDocBench annotations: a page's blocks in reading order, truncated ones joined, by the kind they are scored as."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jocr.errors import ConfigError

TEXT = ("text_block", "title", "code_txt", "code_txt_caption", "reference")
UNSCORED = (  # in the matching pool, so that a prediction may belong to them, but never counted
    "equation_caption",
    "figure_caption",
    "figure_footnote",
    "table_caption",
    "table_footnote",
    "code_algorithm",
    "code_algorithm_caption",
    "header",
    "footer",
    "page_footnote",
    "page_number",
)
FORMULA = "equation_isolated"
TABLE = "table"


@dataclass(frozen=True, slots=True)
class Block:
    """One annotated block. ``order`` is None for blocks outside the reading order (headers, page numbers)."""

    category: str
    content: str  # text, LaTeX or HTML as annotated
    order: int | None
    alternatives: tuple[str, ...] = ()  # further valid readings of a formula (v1.6)


@dataclass(frozen=True, slots=True)
class Page:
    """One annotated page; ``image`` is its file name and the key of every per-page result."""

    image: str
    attributes: dict[str, Any]
    mixed: tuple[Block, ...]  # text, display formulas and unscored kinds, in the scorer's order
    tables: tuple[Block, ...]
    anno: dict[str, Any] = field(repr=False, default_factory=dict)

    @property
    def stem(self) -> str:
        return self.image.rsplit(".", 1)[0]


def load(path: Path) -> list[Page]:
    """All pages of an ``OmniDocBench.json``. Raises ConfigError where the file is no such list."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as e:
        raise ConfigError(f"cannot read annotations {path}: {e}") from e
    if not isinstance(data, list) or not data:
        raise ConfigError(f"{path} is not a non-empty JSON list of annotated pages")
    try:
        pages = [parse_page(entry) for entry in data]
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        raise ConfigError(f"{path} does not follow OmniDocBench's annotation format: {e!r}") from e
    names = [p.image for p in pages]
    if len(set(names)) != len(names):
        raise ConfigError(f"{path} holds a page image twice")
    return pages


def parse_page(entry: dict[str, Any]) -> Page:
    """One page object. Blocks marked ``ignore`` and kinds that no metric knows are left out."""
    blocks = [b for b in _join_truncated(entry) if not b.get("ignore")]
    mixed = [b for b in blocks if b["category_type"] in (*TEXT, *UNSCORED, FORMULA)]
    tables = [b for b in blocks if b["category_type"] == TABLE]
    info = entry["page_info"]
    return Page(
        image=Path(info["image_path"]).name,
        attributes=dict(info.get("page_attribute") or {}),
        mixed=tuple(_block(b) for b in sorted(mixed, key=_order_key)),
        tables=tuple(_block(b) for b in sorted(tables, key=_order_key)),
        anno=entry,
    )


def _order_key(block: dict[str, Any]) -> int:
    return block.get("order") or 0


def _block(raw: dict[str, Any]) -> Block:
    kind = raw["category_type"]
    content = raw.get("html") if kind == TABLE else raw.get("latex") if kind == FORMULA else raw.get("text")
    if content is None:  # annotators sometimes left the kind's own field empty
        content = next((raw[k] for k in ("html", "latex", "text") if raw.get(k)), "")
    extra = raw.get("alternatives") or raw.get("latex_alternatives") or ()
    return Block(kind, content, raw.get("order"), tuple(extra))


def _join_truncated(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Chains of blocks linked by ``truncated`` become one block with the joined text and the first one's order.

    A block in the middle of a chain is an end of two links and is joined twice: the official scorer does so, and its
    numbers cannot be met otherwise.
    """
    by_id = {b["anno_id"]: b for b in entry["layout_dets"]}
    chains: list[list[int]] = []  # ends of links, with repeats
    for relation in (entry.get("extra") or {}).get("relation") or ():
        ends = [relation["source_anno_id"], relation["target_anno_id"]]
        if relation.get("relation_type") == "truncated" and all(i in by_id for i in ends):
            touched = [c for c in chains if set(c) & set(ends)]
            chains = [c for c in chains if c not in touched] + [[i for c in touched for i in c] + ends]
    chain_of = {i: k for k, chain in enumerate(chains) for i in chain}
    done: set[int] = set()
    for block in entry["layout_dets"]:
        k = chain_of.get(block["anno_id"])
        if k is None:
            yield block
        elif k not in done:
            done.add(k)
            parts = sorted((by_id[i] for i in chains[k]), key=_order_key)
            yield {**parts[0], "text": "".join(p.get("text") or "" for p in parts)}
