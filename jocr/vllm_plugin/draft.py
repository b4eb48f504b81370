"""FastMTP's draft head as a draft architecture for vLLM's method ``eagle``.

vLLM pairs the token at j + 1 with the state at j and calls that position j: EAGLE's pairing, one position earlier
throughout than in ``jocr.model.draft``, which relative rotary positions do not notice. Method ``eagle`` chains the
second value that ``forward`` returns; method ``mtp`` would ground each step on the verifier again, which this head was
not trained for.
"""

# No postponed annotations here: vLLM's compile decorator reads them.

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from vllm.compilation.decorators import support_torch_compile
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.models.llama import LlamaDecoderLayer
from vllm.model_executor.models.utils import AutoWeightsLoader, WeightsMapper, maybe_prefix

HEAD = "mtp_module.heads.0."
NAMES = {
    f"{HEAD}mtp_block.": "model.block.",
    f"{HEAD}": "model.",
    "model.norm.": "model.norm.",
}  # a checkpoint's names -> ours; the first that fits counts
FUSED = {
    ".q_proj": (".qkv_proj", "q"),
    ".k_proj": (".qkv_proj", "k"),
    ".v_proj": (".qkv_proj", "v"),
    ".gate_proj": (".gate_up_proj", 0),
    ".up_proj": (".gate_up_proj", 1),
}


@support_torch_compile(
    dynamic_arg_dims={"input_ids": 0, "positions": 0, "hidden_states": 0, "inputs_embeds": 0},
)
class FastMTPModel(nn.Module):
    """eh_proj, one dense block, the verifier's final norm. ``embed_tokens`` is attached by the runner."""

    hf_to_vllm_mapper = WeightsMapper(orig_to_new_stacked=FUSED)
    embed_tokens: nn.Module

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "", layer: int = 0) -> None:
        super().__init__()
        self.config = config = vllm_config.speculative_config.draft_model_config.hf_config
        width, eps = config.hidden_size, config.rms_norm_eps
        self.enorm = RMSNorm(width, eps=eps)
        self.hnorm = RMSNorm(width, eps=eps)
        self.eh_proj = ReplicatedLinear(
            2 * width,
            width,
            bias=False,
            params_dtype=vllm_config.model_config.dtype,
            return_bias=False,
            prefix=maybe_prefix(prefix, "eh_proj"),
        )
        self.block = LlamaDecoderLayer(vllm_config, prefix=maybe_prefix(prefix, f"layers.{layer}"), config=config)
        self.norm = RMSNorm(width, eps=eps)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        hidden_states: torch.Tensor,
        inputs_embeds: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows (T, H) -> the post-norm state twice: what the head reads, and the next step's ``hidden_states``."""
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)
        pair = torch.cat([self.enorm(inputs_embeds), self.hnorm(hidden_states)], dim=-1)
        x, residual = self.block(positions, self.eh_proj(pair), None)
        x, _ = self.norm(x, residual)
        return x, x

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        return AutoWeightsLoader(self).load_weights(weights, mapper=self.hf_to_vllm_mapper)


class EagleFastMTPForCausalLM(nn.Module):
    """Has no embedding and no head of its own: the runner attaches the verifier's."""

    supports_multimodal_embeddings = True  # else vLLM silently drafts from text alone

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        self.config = config = vllm_config.speculative_config.draft_model_config.hf_config
        layer = vllm_config.model_config.get_num_layers(vllm_config.parallel_config)
        self.model = FastMTPModel(vllm_config=vllm_config, prefix=maybe_prefix(prefix, "model"), layer=layer)
        self.logits_processor = LogitsProcessor(config.vocab_size)

    def embed_input_ids(
        self,
        input_ids: torch.Tensor,
        multimodal_embeddings: Any = None,
        is_multimodal: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Embedded tokens with the visual rows in their places."""
        embedded = self.model.embed_tokens(input_ids)
        if multimodal_embeddings is None or is_multimodal is None or not len(multimodal_embeddings):
            return embedded
        rows = torch.cat([e.reshape(-1, e.shape[-1]) for e in multimodal_embeddings])
        return embedded.masked_scatter(is_multimodal.to(embedded.device)[:, None], rows.to(embedded))

    def forward(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return self.model(*args, **kwargs)  # the module above is the one that vLLM compiles

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        return self.logits_processor(self.lm_head, hidden_states)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        return AutoWeightsLoader(self).load_weights((renamed(name), tensor) for name, tensor in weights)


def renamed(name: str) -> str:
    """A checkpoint's name of a draft tensor -> the module here that holds it."""
    return next((new + name.removeprefix(old) for old, new in NAMES.items() if name.startswith(old)), name)
