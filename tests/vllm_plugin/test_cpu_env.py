"""The work-arounds for vLLM's CPU build, without vLLM: torchvision's CUDA build beside torch's CPU build, llvmlite."""

from __future__ import annotations

import subprocess
import sys
import textwrap

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
