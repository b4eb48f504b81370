"""FastMTP's draft head: one dense block, applied recursively (jina-ocr-v1, FastMTP technical report).

Slot j pairs the token at j with the verifier's hidden state at j-1 (EAGLE pairing). The final norm and the lm_head
are the verifier's; the *post-norm* tensor is both what the lm_head reads and the next step's ``hidden``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jocr.model.config import TextConfig
from jocr.model.decoder import Attend, Block
from jocr.model.layers import RMSNorm


class DraftHead(nn.Module):
    def __init__(self, cfg: TextConfig) -> None:
        super().__init__()
        self.enorm = RMSNorm(cfg.hidden_size, cfg.rms_norm_eps)
        self.hnorm = RMSNorm(cfg.hidden_size, cfg.rms_norm_eps)
        self.eh_proj = nn.Linear(2 * cfg.hidden_size, cfg.hidden_size, bias=False)
        nn.init.normal_(self.eh_proj.weight, std=0.02)
        self.mtp_block = Block(cfg, layer=0, dense=True)

    def forward(self, embedded: Tensor, hidden: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        """embedded, hidden (B, T, H) -> (B, T, H) before the verifier's final norm.

        Args:
            embedded: embedding of the token at each slot (zeros at position 0).
            hidden: post-norm state of the position before each slot.
        """
        x = self.eh_proj(torch.cat([self.enorm(embedded), self.hnorm(hidden)], dim=-1))
        return self.mtp_block(x, cos, sin, attend)


class DraftModule(nn.Module):
    """Holds the heads under their published names (``mtp_module.heads.0.*``)."""

    def __init__(self, cfg: TextConfig, heads: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(DraftHead(cfg) for _ in range(heads))
