"""``python -m jocr.vllm_plugin CHECKPOINT [DEPTH]`` prints the ``vllm serve`` command that drafts with the checkpoint's
own head, after splitting that head off. The chat template goes with it: the published one is escaped twice and renders
another prompt. Any further options can be added to the command."""

from __future__ import annotations

import json
import shlex
import sys

from jocr.errors import CheckpointError
from jocr.model.hub import resolve_checkpoint
from jocr.model.prompts import CHAT_TEMPLATE
from jocr.model.split_draft import cache_root, prepare_draft
from jocr.storage import atomic_write


def command(checkpoint: str, depth: int) -> str:
    """The command as a shell line; depth 0, or a checkpoint without a draft head, serves without drafting."""
    path = resolve_checkpoint(checkpoint)
    template = cache_root() / "chat_template.jinja"
    template.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(str(template), CHAT_TEMPLATE.encode())
    words = [
        "vllm",
        "serve",
        str(path),
        "--chat-template",
        str(template),
        "--limit-mm-per-prompt",
        '{"image": 1}',
        "--no-enable-prefix-caching",
    ]
    try:
        draft = prepare_draft(path) if depth else None
    except CheckpointError as error:
        print(f"{error}; the command serves without a draft head: the same text, slower", file=sys.stderr)
        draft = None
    if draft:
        drafting = {"method": "eagle", "model": str(draft), "num_speculative_tokens": depth}
        words += ["--speculative-config", json.dumps(drafting)]
    return shlex.join(words)


if __name__ == "__main__":
    print(command(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1))
