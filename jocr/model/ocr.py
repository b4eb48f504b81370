"""The whole model under the published names: towers, projector, decoder, lm_head, draft head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jocr.model.clip import ClipEncoder
from jocr.model.config import OcrConfig
from jocr.model.decoder import Attend, Block, Rotary, causal, positions_of, stack
from jocr.model.draft import DraftModule
from jocr.model.layers import RMSNorm
from jocr.model.sam import SamEncoder
from jocr.model.vision import Projector, page_layout, view_tokens


@dataclass(frozen=True)
class PageViews:
    """Pixels of one page in [-1, 1].

    global_view (3, G, G); tiles (n, 3, L, L) row-major with grid (columns, rows), or an empty tensor and None.
    """

    global_view: Tensor
    tiles: Tensor
    grid: tuple[int, int] | None


class OcrBody(nn.Module):
    """Everything published under ``model.``"""

    def __init__(self, cfg: OcrConfig) -> None:
        super().__init__()
        text = cfg.text
        self.embed_tokens = nn.Embedding(text.vocab_size, text.hidden_size)
        nn.init.normal_(self.embed_tokens.weight, std=0.02)
        dense = text.first_k_dense_replace
        self.layers = nn.ModuleList(Block(text, i, i < dense) for i in range(text.num_hidden_layers))
        self.norm = RMSNorm(text.hidden_size, text.rms_norm_eps)
        self.sam_model = SamEncoder(cfg.sam)
        self.vision_model = ClipEncoder(cfg.clip)
        self.projector = Projector(cfg)
        self.image_newline = nn.Parameter(torch.randn(text.hidden_size) * 0.02)
        self.view_seperator = nn.Parameter(torch.randn(text.hidden_size) * 0.02)  # the published name is spelt so


class OcrModel(nn.Module):
    """Build with ``torch.device("meta")`` and load weights, or build directly for random weights."""

    def __init__(self, cfg: OcrConfig) -> None:
        super().__init__()
        self.cfg = cfg
        self.model = OcrBody(cfg)
        self.lm_head = nn.Linear(cfg.text.hidden_size, cfg.text.vocab_size, bias=False)
        nn.init.normal_(self.lm_head.weight, std=0.02)
        if cfg.mtp_num_heads:
            self.mtp_module = DraftModule(cfg.text, cfg.mtp_num_heads)
        # A checkpoint whose draft head does not share the verifier's tensors brings its own (see weights.load_model).
        self.mtp_embed_tokens: nn.Embedding | None = None
        self.mtp_norm: RMSNorm | None = None
        self.mtp_lm_head: nn.Linear | None = None
        self.rotary = Rotary(cfg.text)

    def encode(self, pixels: Tensor) -> Tensor:
        """Views of one size (B, 3, S, S) -> (B, (S/64)^2, hidden)."""
        body = self.model
        return view_tokens(body.sam_model, body.vision_model, body.projector, pixels)

    def encode_page(self, views: PageViews) -> Tensor:
        """One page -> its visual tokens in prompt order, (n, hidden)."""
        return self.encode_pages([views])[0]

    def encode_pages(self, pages: Sequence[PageViews]) -> list[Tensor]:
        """Several pages, all views of one size encoded as one batch each."""
        whole = self.encode(torch.stack([p.global_view for p in pages]))
        tiled = [p.tiles for p in pages if p.grid is not None]
        local = self.encode(torch.cat(tiled)) if tiled else whole[:0]
        sizes = [p.tiles.shape[0] if p.grid is not None else 0 for p in pages]
        return [self.arrange(t, g, p.grid) for t, g, p in zip(local.split(sizes), whole, pages, strict=True)]

    def arrange(self, tiles: Tensor, whole: Tensor, grid: tuple[int, int] | None) -> Tensor:
        """Tile tokens (n, l*l, H) and global tokens (g*g, H) -> prompt order, newlines and separator added."""
        side = int(whole.shape[0] ** 0.5)
        local_side = int(tiles.shape[1] ** 0.5) if grid is not None else 0
        bank = [tiles.reshape(-1, whole.shape[-1])] if grid is not None else []
        body = self.model
        rows = torch.cat([*bank, whole, body.image_newline[None], body.view_seperator[None]])
        order = torch.from_numpy(page_layout(grid, side, local_side)).to(rows.device)
        return rows[order % rows.shape[0]]  # -2 and -1 wrap to the two learned vectors

    def embed(self, ids: Tensor, visual: Tensor | None = None) -> Tensor:
        """Token ids (T,) -> (T, H); image-token places take ``visual`` rows in order."""
        x = self.model.embed_tokens(ids)
        if visual is not None:
            x = x.masked_scatter((ids == self.cfg.image_token_id)[:, None], visual.to(x.dtype))
        return x

    def hidden(self, x: Tensor, positions: Tensor | None = None, longest: int | None = None,
               attend: Attend = causal) -> Tensor:  # fmt: skip
        """Embedded rows (B, T, H) -> post-norm states (B, T, H)."""
        positions = positions_of(x) if positions is None else positions
        cos, sin = self.rotary(positions, longest or x.shape[1], x)
        return self.model.norm(stack(self.model.layers, x, cos, sin, attend))

    def draft(self, embedded: Tensor, hidden: Tensor, positions: Tensor, longest: int, attend: Attend) -> Tensor:
        """One application of the draft head -> post-norm states (B, T, H)."""
        cos, sin = self.rotary(positions, longest, embedded)
        norm = self.mtp_norm or self.model.norm
        return norm(self.mtp_module.heads[0](embedded, hidden, cos, sin, attend))

    def draft_embed(self, ids: Tensor) -> Tensor:
        """Token ids -> what the draft head reads of them; the verifier's embedding in the published checkpoint."""
        return (self.mtp_embed_tokens or self.model.embed_tokens)(ids)

    def draft_logits(self, hidden: Tensor) -> Tensor:
        """The draft head's states -> logits; the verifier's lm_head in the published checkpoint."""
        return (self.mtp_lm_head or self.lm_head)(hidden)
