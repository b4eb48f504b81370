"""The model and its draft head for vLLM, found by vLLM itself through the entry point ``vllm.general_plugins``.

Nothing but installing this package is needed: every process that vLLM starts (engine core, workers, Ray actors) calls
``register``. Checkpoints keep their published ``architectures`` entry, ``DeepseekOCRForCausalLM``; that name is taken
over here, because the stock class has the towers' sizes and six tiles written into its code. DeepSeek-OCR's own
checkpoints (no ``mtp_num_heads``) load through the same class with stock's tile limit.
"""

from __future__ import annotations

TARGET = "DeepseekOCRForCausalLM"
MODEL_TYPE = "deepseek_vl_v2"


def register() -> None:
    """Tell vLLM where the two architectures and the completed configuration are. Cheap and repeatable; no CUDA."""
    from vllm.model_executor.models import ModelRegistry
    from vllm.transformers_utils import config as vllm_config

    from jocr.model.split_draft import ARCHITECTURE
    from jocr.vllm_plugin.config import CompletedConfig

    vllm_config._CONFIG_REGISTRY[MODEL_TYPE] = CompletedConfig
    ModelRegistry.register_model(TARGET, "jocr.vllm_plugin.target:OcrForCausalLM")
    ModelRegistry.register_model(ARCHITECTURE, "jocr.vllm_plugin.draft:EagleFastMTPForCausalLM")
