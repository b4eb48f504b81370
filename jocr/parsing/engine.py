"""From settings to a decoder, an instruction and the size pages are rendered at."""

from __future__ import annotations

from jocr.config import ModelSettings, RenderSettings
from jocr.decoding.fake import is_fake, make_fake
from jocr.decoding.protocol import Decoder, EngineInfo
from jocr.documents import Origin
from jocr.parsing.runner import Instruction

FAKE_SIDE = 768
UNLIMITED = 8192  # tokens asked for where neither recipe nor checkpoint says less


def open_decoder(model: ModelSettings) -> Decoder:
    """Load the checkpoint; ``fake`` needs none.

    Raises:
        CheckpointError: it is not there or not whole.
        EngineError: the device is not there.
    """
    if is_fake(model.name):
        return make_fake(model.name)
    from jocr.decoding.load import load_decoder

    depth = model.depth if model.depth == "auto" else int(model.depth)
    return load_decoder(
        model.name,
        depth=depth,
        engine=model.engine,
        device=model.device,
        dtype=model.dtype,
        batch=model.batch,
        max_tokens=model.max_tokens,
        page_seconds=model.page_seconds,
    )


def instruction(model: ModelSettings) -> Instruction:
    """The words that go with each page and its token limit (a decoder clamps it to what its context holds)."""
    from jocr.model.prompts import DEFAULT_INSTRUCTION

    return Instruction(model.instruction or DEFAULT_INSTRUCTION, model.max_tokens or UNLIMITED)


def origin(info: EngineInfo, words: Instruction) -> Origin:
    """What every row says of the model, the prompt and the engine."""
    from jocr.model.prompts import prompt_hash

    return Origin(info.model, info.revision, prompt_hash(words.text), info.engine)


def long_side(model: ModelSettings, render: RenderSettings) -> int:
    """Pixels of a rendered page's long side: the recipe's, else three local tiles of the checkpoint, which is the most
    that a page of ordinary proportions can use (a grid of 2 x 3)."""
    if render.long_side is not None:
        return render.long_side
    if is_fake(model.name):
        return FAKE_SIDE
    from jocr.model.hub import resolve_checkpoint
    from jocr.pages.tiles import ProcessorConfig

    return 3 * ProcessorConfig.load(resolve_checkpoint(model.name)).image_size
