"""The model and its draft head for vLLM, found by vLLM itself through the entry point ``vllm.general_plugins``.

Nothing but installing this package is needed: every process that vLLM starts (engine core, workers, Ray actors) calls
``register``. Checkpoints keep their published ``architectures`` entry, ``DeepseekOCRForCausalLM``; that name is taken
over here, because the stock class has the towers' sizes and six tiles written into its code. DeepSeek-OCR's own
checkpoints (no ``mtp_num_heads``) load through the same class with stock's tile limit.
"""

from __future__ import annotations

import sys
from typing import Any

TARGET = "DeepseekOCRForCausalLM"
MODEL_TYPE = "deepseek_vl_v2"


def register() -> None:
    """Tell vLLM where the two architectures and the completed configuration are. Cheap and repeatable; no CUDA."""
    hide_dunders()
    from vllm.model_executor.models import ModelRegistry
    from vllm.transformers_utils import config as vllm_config

    from jocr.model.split_draft import ARCHITECTURE
    from jocr.vllm_plugin.config import CompletedConfig

    vllm_config._CONFIG_REGISTRY[MODEL_TYPE] = CompletedConfig
    ModelRegistry.register_model(TARGET, "jocr.vllm_plugin.target:OcrForCausalLM")
    ModelRegistry.register_model(ARCHITECTURE, "jocr.vllm_plugin.draft:EagleFastMTPForCausalLM")


def hide_dunders() -> None:
    """Let llvmlite's library object say which special attributes it has.

    It answers to any name, ``__dict__`` too. vLLM 0.32's CPU build looks into the objects of all loaded modules when a
    worker starts, and dies on that one where numba is among them: a spawned worker has its program's imports.
    """
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "_lib_wrapper", None)
    if library is None or library.__getattr__.__name__ == "found":
        return
    function = library.__getattr__

    def found(self: Any, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return function(self, name)

    library.__getattr__ = found
