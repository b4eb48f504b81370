"""One training step's forward pass for a model that learns to read from nothing.

Beside the token loss, three auxiliary heads name glyphs where the renderer drew them (patches, compressed cells,
projected cells), and two attention heads are guided to the glyph just written and the one to write next. All of it
is for training only and is not part of the checkpoint.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jocr.losses.sft import IGNORE, glyph_loss, guided_attention_loss, token_loss
from jocr.model.decoder import causal
from jocr.model.moe import MoE
from jocr.model.ocr import OcrModel
from jocr.model.vision import join_towers, page_layout
from jocr.training.batches import Batch
from jocr.training.examples import CELL_GLYPHS, NUM_GLYPHS

GUIDED = {1: 0, 2: 1}  # layer -> row of Batch.looks; head 0 of each


class GlyphHeads(nn.Module):
    """Linear readers of the three stages; C glyph classes."""

    def __init__(self, sam_width: int, compressed: int, hidden: int) -> None:
        super().__init__()
        self.patch = nn.Linear(sam_width, NUM_GLYPHS)
        self.compressed = nn.Linear(compressed, 16 * NUM_GLYPHS)
        self.cell = nn.Linear(hidden, CELL_GLYPHS * NUM_GLYPHS)


class Teacher(nn.Module):
    def __init__(self, model: OcrModel, specials: dict[str, list[int]]) -> None:
        """``specials``: token ids of the prompt ``before`` and ``after`` the image, and its ``end``."""
        super().__init__()
        self.model = model
        cfg = model.cfg
        self.aux = GlyphHeads(cfg.sam.width, cfg.sam.downsample_channels[1], cfg.text.hidden_size)
        self.specials = specials

    def see(self, batch: Batch) -> tuple[Tensor, Tensor, dict[str, float]]:
        """Visual rows (B, n, H), summed glyph losses, metrics."""
        body = self.model.model
        b, h = batch.whole.shape[0], self.model.cfg.text.hidden_size
        tiles = [] if batch.grid is None else [batch.tiles.flatten(0, 1)]
        parts: list[Tensor] = []
        sides: list[int] = []
        for pixels in [*tiles, batch.whole]:  # glyphs are named in the first
            patches = body.sam_model.patches(pixels)
            compressed = body.sam_model.compress(patches)
            cells = join_towers(body.vision_model, body.projector, compressed)
            if not parts:
                loss, metrics = self._glyphs(batch, patches, compressed, cells)
            parts.append(cells.reshape(b, -1, h))
            sides.append(compressed.shape[-1])
        learned = (t.expand(b, 1, -1).to(cells.dtype) for t in (body.image_newline, body.view_seperator))
        rows = torch.cat([*parts, *learned], dim=1)
        order = torch.from_numpy(page_layout(batch.grid, sides[-1], sides[0])) % rows.shape[1]
        return rows[:, order], loss, metrics

    def _glyphs(
        self, batch: Batch, patches: Tensor, compressed: Tensor, cells: Tensor
    ) -> tuple[Tensor, dict[str, float]]:
        """Summed losses of the three readers over the views whose glyphs are named, and their accuracies."""
        labels = batch.patch_glyphs.flatten(0, 1)
        n = labels.shape[0]
        side = labels.shape[-1] // 4
        by_cell = labels.view(n, side, 4, side, 4).transpose(2, 3).reshape(-1)
        flat = compressed.flatten(2).transpose(1, 2)
        results = {
            "patch": glyph_loss(self.aux.patch(patches).view(-1, NUM_GLYPHS), labels.view(-1)),
            "compressed": glyph_loss(self.aux.compressed(flat).view(-1, NUM_GLYPHS), by_cell),
            "cell": glyph_loss(self.aux.cell(cells).view(-1, NUM_GLYPHS), batch.cell_glyphs.reshape(-1)),
        }
        metrics = {f"{name}_accuracy": m["accuracy"] for name, (_, m) in results.items()}
        return torch.stack([loss for loss, _ in results.values()]).sum(), metrics

    def rows(self, batch: Batch, visual: Tensor) -> tuple[Tensor, int]:
        """Embedded prompt and response (B, T, H), and the index of the last prompt row, which answers first."""
        model, b = self.model, batch.ids.shape[0]
        before, after, end = (torch.tensor(self.specials[k]).expand(b, -1) for k in ("before", "after", "end"))
        tail = torch.cat([after, batch.instruction[:, None], end, batch.ids[:, :-1]], dim=1)
        x = torch.cat([model.embed(before), visual.to(model.lm_head.weight.dtype), model.embed(tail)], dim=1)
        return x, x.shape[1] - batch.ids.shape[1]

    def read(self, batch: Batch, visual: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Post-norm states of the response rows (B, R, H) and the guided-attention losses."""
        x, first = self.rows(batch, visual)
        start = len(self.specials["before"])
        guided: list[Tensor] = []

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            if layer in GUIDED and self.training:
                seen = slice(start, start + visual.shape[1])
                guided.append(guided_attention_loss(q[:, first:, 0], k[:, seen, 0], batch.looks[GUIDED[layer]]))
            return causal(layer, q, k, v)

        return self.model.hidden(x, attend=attend)[:, first:], guided

    def forward(self, batch: Batch, weights: dict[str, float]) -> tuple[Tensor, dict[str, float]]:
        """Loss and metrics; ``weights`` of token, glyph, guide and balance terms (token 0: encoder only)."""
        visual, loss, metrics = self.see(batch)
        loss = loss * weights["glyph"]
        if not weights["token"]:
            return loss, metrics
        states, guided = self.read(batch, visual)
        keep = batch.targets != IGNORE
        token, more = token_loss(self.model.lm_head(states[keep]), batch.targets[keep])
        loss = loss + weights["token"] * token
        if guided and weights["guide"]:
            guide = torch.stack(guided).mean()
            metrics["guide"] = guide.item()
            loss = loss + weights["guide"] * guide
        balances = [m.balance for m in self.model.modules() if isinstance(m, MoE) and m.balance is not None]
        if balances:
            loss = loss + weights["balance"] * torch.stack(balances).mean()
        return loss, metrics | more
