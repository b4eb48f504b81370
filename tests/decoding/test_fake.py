"""The decoder without a model: settings in its name, marks in the pages."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from jocr.decoding.fake import MARKS, is_fake, make_fake, mark_of
from jocr.decoding.load import load_decoder
from jocr.errors import ConfigError
from jocr.pages.png import encode_png
from jocr.records import PageInput


def page(colour=None, size=(300, 200)):
    rgb = np.full((*size, 3), 255, np.uint8)
    rgb[100:110, 20:150] = 0
    if colour:
        rgb[: round(size[0] * 0.06), : round(size[1] * 0.1)] = colour
    return rgb


def pillow_png(rgb):
    out = io.BytesIO()
    Image.fromarray(rgb).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("encode", [encode_png, pillow_png])
@pytest.mark.parametrize("act", MARKS)
def test_a_mark_is_seen_at_any_size_and_in_any_png(encode, act):
    for size in ((300, 200), (64, 90), (1280, 900)):
        assert mark_of(encode(page(MARKS[act], size))) == act
        assert mark_of(encode(page(None, size))) is None


def test_settings_come_with_the_name():
    assert is_fake("fake")
    assert is_fake("fake:marks")
    assert not is_fake("fakes")
    made = load_decoder("fake:seconds=0.25,batch=3,marks")
    assert (made.seconds, made.batch, made.marks) == (0.25, 3, True)
    for wrong in ("fake:speed=3", "fake:seconds=fast", "fake:marks=1", "fake:batch"):
        with pytest.raises(ConfigError, match="write fake:seconds"):
            make_fake(wrong)


def test_marks_decide_how_a_page_ends():
    wanted = {"loop": "loop", "length": "length", "error": "error", "empty": "end"}
    pages = [PageInput(act, encode_png(page(MARKS[act])), "", 100) for act in wanted]
    ends = {transcript.page_id: transcript for transcript in make_fake("fake:marks,batch=2").decode(pages)}
    assert {name: transcript.stop for name, transcript in ends.items()} == wanted
    assert ends["empty"].text == ""
    assert all(t.stop == "end" and t.text for t in make_fake("fake").decode(pages))


@pytest.mark.parametrize(("act", "code"), [("exit", 13), ("hang", None)])
def test_a_page_can_take_its_process_with_it(act, code):
    words = f"""
import numpy as np
from jocr.decoding.fake import MARKS, make_fake
from jocr.pages.png import encode_png
from jocr.records import PageInput
png = encode_png(np.full((50, 50, 3), MARKS[{act!r}], np.uint8))
list(make_fake("fake:marks").decode([PageInput("a", png, "", 9)]))
"""
    run = [sys.executable, "-c", words]
    if code is None:
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(run, timeout=3, check=False)
    else:
        assert subprocess.run(run, timeout=30, check=False).returncode == code
