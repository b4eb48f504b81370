"""The work-around for torchvision's CUDA build beside torch's CPU build, without vLLM."""

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
