"""The rendering process: limits, crashes, restarts, threads, memory."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from jocr.errors import ConfigError
from jocr.pages import wire
from jocr.pages.render import Renderer, RenderLimits
from jocr.records import REASONS, DocRef, PageFailure, PageImage, PageRef

from .made import Pdf, hanging_pdf, words_image


def write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def opened(renderer: Renderer, uri: str) -> tuple[DocRef, int]:
    answer = renderer.open(uri)
    assert not isinstance(answer, PageFailure), answer
    return answer


def child_of(renderer: Renderer) -> int:
    assert renderer._child is not None
    return renderer._child._process.pid


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_hanging_page_is_killed_and_the_others_are_rendered(tmp_path: Path) -> None:
    uri = write(tmp_path / "hang.pdf", hanging_pdf())
    with Renderer(RenderLimits(seconds_page=1.0)) as renderer:
        doc, pages = opened(renderer, uri)
        first = child_of(renderer)
        started = time.monotonic()
        shots = [renderer.render(PageRef(doc, index), long_side=300) for index in range(pages)]
        assert time.monotonic() - started < 20
        assert [getattr(shot, "reason", "ok") for shot in shots] == ["ok", "render_timeout", "ok"]
        failure = shots[1]
        assert isinstance(failure, PageFailure)
        assert (failure.index, failure.stage, failure.retryable) == (1, "render", True)
        assert renderer.restarts == 1
        assert gone(first)
        last = child_of(renderer)
    assert gone(last)


def test_it_works_in_any_thread_and_a_death_costs_one_page(tmp_path: Path) -> None:
    uri = write(tmp_path / "hang.pdf", hanging_pdf())
    shots: list[Any] = []

    def work() -> None:
        with Renderer(RenderLimits(seconds_page=30)) as renderer:
            doc, _ = opened(renderer, uri)
            children.append(child_of(renderer))
            for index in (1, 0):
                shots.append(renderer.render(PageRef(doc, index), long_side=300))

    children: list[int] = []
    thread = threading.Thread(target=work)
    thread.start()
    while not children:
        time.sleep(0.02)
    time.sleep(0.7)
    os.kill(children[0], signal.SIGSEGV)
    thread.join(30)
    assert isinstance(shots[0], PageFailure)
    assert shots[0].reason == "render_crash"
    assert "SIGSEGV" in shots[0].detail
    assert isinstance(shots[1], PageImage)


def test_a_child_that_died_of_earlier_pages_gets_a_second_chance(tmp_path: Path) -> None:
    uri = write(tmp_path / "two.pdf", Pdf().page().page().bytes())
    with Renderer() as renderer:
        doc, _ = opened(renderer, uri)
        assert isinstance(renderer.render(PageRef(doc, 0), long_side=200), PageImage)
        os.kill(child_of(renderer), signal.SIGKILL)
        assert isinstance(renderer.render(PageRef(doc, 1), long_side=200), PageImage)
        assert renderer.restarts == 1


def _looked_ahead(renderer: Renderer, doc: DocRef, pages: int) -> list[PageImage | PageFailure]:
    return [
        renderer.render(PageRef(doc, index), long_side=300, then=index + 1 if index + 1 < pages else None)
        for index in range(pages)
    ]


def _named(pages: int) -> bytes:
    document = Pdf()
    for number in range(pages):
        document.page(b"BT /F1 40 Tf 60 400 Td (Page %d) Tj ET" % number if number != 2 else b"")  # one is blank
    return document.bytes()


def test_pages_drawn_ahead_are_the_same_pages(renderer: Renderer, tmp_path: Path) -> None:
    def looks(shots: list[PageImage | PageFailure]) -> list[tuple[bytes, str, bool]]:
        return [(shot.png, shot.evidence, shot.blank) for shot in shots if isinstance(shot, PageImage)]

    doc, pages = opened(renderer, write(tmp_path / "named.pdf", _named(6)))
    plain = [renderer.render(PageRef(doc, index), long_side=300) for index in range(pages)]
    assert [shot.blank for shot in plain if isinstance(shot, PageImage)] == [n == 2 for n in range(6)]
    assert len(set(looks(plain))) == 6
    assert looks(_looked_ahead(renderer, doc, pages)) == looks(plain)


def test_a_page_begun_and_not_asked_for_next_changes_nothing(renderer: Renderer, tmp_path: Path) -> None:
    doc, _ = opened(renderer, write(tmp_path / "named.pdf", _named(4)))
    other, _ = opened(renderer, write(tmp_path / "other.pdf", Pdf().page().bytes()))

    def shot(of: DocRef, index: int, **more: Any) -> bytes:
        found = renderer.render(PageRef(of, index), **{"long_side": 300, **more})
        assert isinstance(found, PageImage)
        return found.png

    first, second, small, turned, single = (
        shot(doc, 0), shot(doc, 1), shot(doc, 1, long_side=90), shot(doc, 1, rotate=90), shot(other, 0)
    )  # fmt: skip
    for ask, expected in (
        (lambda: shot(doc, 0), first), (lambda: shot(doc, 1, long_side=90), small),
        (lambda: shot(doc, 1, rotate=90), turned), (lambda: shot(other, 0), single), (lambda: shot(doc, 1), second),
    ):  # fmt: skip
        assert shot(doc, 0, then=1) == first
        assert ask() == expected
    assert shot(doc, 0, then=1) == first
    assert opened(renderer, str(tmp_path / "other.pdf")) == (other, 1)


def test_a_page_that_hangs_while_it_is_drawn_ahead_costs_itself_alone(tmp_path: Path) -> None:
    uri = write(tmp_path / "hang.pdf", hanging_pdf())
    with Renderer(RenderLimits(seconds_page=1.0)) as renderer:
        doc, pages = opened(renderer, uri)
        renderer.render(PageRef(doc, 2), long_side=300)  # a fresh child draws nothing ahead
        shots = _looked_ahead(renderer, doc, pages)
        assert [getattr(shot, "reason", "ok") for shot in shots] == ["ok", "render_timeout", "ok"]
        assert renderer.restarts == 1


def test_a_child_that_dies_with_a_page_begun_loses_none(tmp_path: Path) -> None:
    with Renderer() as renderer:
        doc, _ = opened(renderer, write(tmp_path / "named.pdf", _named(4)))
        renderer.render(PageRef(doc, 3), long_side=300)
        assert isinstance(renderer.render(PageRef(doc, 0), long_side=300, then=1), PageImage)
        os.kill(child_of(renderer), signal.SIGKILL)
        for index, then in ((1, 2), (2, 3), (3, None)):
            assert isinstance(renderer.render(PageRef(doc, index), long_side=300, then=then), PageImage)
        assert renderer.restarts == 1


def test_memory_is_limited(tmp_path: Path) -> None:
    out = io.BytesIO()
    Image.new("RGB", (6000, 6000)).save(out, "PNG", compress_level=1)
    uri = write(tmp_path / "large.png", out.getvalue())
    small = write(tmp_path / "small.png", saved_png(words_image()))
    with Renderer(RenderLimits(memory_mb=130)) as renderer:
        doc, _ = opened(renderer, uri)
        failure = renderer.render(PageRef(doc, 0), long_side=300)
        assert isinstance(failure, PageFailure)
        assert failure.reason == "render_crash"
        assert "memory" in failure.detail
        doc, _ = opened(renderer, small)
        assert isinstance(renderer.render(PageRef(doc, 0), long_side=300), PageImage)


def saved_png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def test_children_are_replaced_by_age_without_losing_pages(tmp_path: Path) -> None:
    uri = write(tmp_path / "seven.pdf", _seven().bytes())
    before = os.listdir("/proc/self/fd")
    with Renderer(RenderLimits(pages_per_child=3)) as renderer:
        doc, pages = opened(renderer, uri)
        shots = [renderer.render(PageRef(doc, index), long_side=150) for index in range(pages)]
        assert all(isinstance(shot, PageImage) for shot in shots)
        assert renderer.restarts == 2
    assert len(os.listdir("/proc/self/fd")) == len(before)  # nothing of the three children stays open


def _seven() -> Pdf:
    document = Pdf()
    for _ in range(7):
        document.page()
    return document


def test_one_renderer_serves_many_threads_without_cross_talk(renderer: Renderer, tmp_path: Path) -> None:
    tones = {tone: write(tmp_path / f"{tone}.png", saved_png(Image.new("L", (40, 30), tone))) for tone in (10, 90, 200)}
    wrong: list[Any] = []

    def work(tone: int) -> None:
        doc, _ = opened(renderer, tones[tone])
        for _ in range(6):
            shot = renderer.render(PageRef(doc, 0), long_side=40)
            if not isinstance(shot, PageImage) or Image.open(io.BytesIO(shot.png)).getpixel((3, 3)) != tone:
                wrong.append(shot)

    threads = [threading.Thread(target=work, args=(tone,)) for tone in tones]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_a_file_that_changed_since_it_was_identified_is_no_page(renderer: Renderer, tmp_path: Path) -> None:
    uri = write(tmp_path / "a.png", saved_png(words_image()))
    doc, _ = opened(renderer, uri)
    other = write(tmp_path / "b.png", saved_png(words_image(text="other")))
    opened(renderer, other)
    os.replace(other, uri)
    failure = renderer.render(PageRef(doc, 0), long_side=100)
    assert isinstance(failure, PageFailure)
    assert failure.reason == "unreadable_file"
    assert "changed" in failure.detail


def test_identity_is_of_the_bytes_and_names_are_taken_as_they_are(renderer: Renderer, tmp_path: Path) -> None:
    import hashlib

    data = saved_png(words_image())
    for name in ("Vol 1 (2) #3 %41.pdf", "ve\u0301lin.png", "v\u00e9lin.png", "~home", os.fsdecode(b"\xff\xfe.tif")):
        doc, pages = opened(renderer, write(tmp_path / name, data))
        assert (doc.sha256, doc.size, doc.kind, pages) == (hashlib.sha256(data).hexdigest(), len(data), "png", 1)
        assert isinstance(renderer.render(PageRef(doc, 0), long_side=50), PageImage)


def test_missing_and_unreadable_files_are_failures(renderer: Renderer, tmp_path: Path) -> None:
    for uri in (str(tmp_path / "nowhere.pdf"), str(tmp_path)):
        failure = renderer.open(uri)
        assert isinstance(failure, PageFailure)
        assert failure.reason == "unreadable_file"
        assert failure.reason in REASONS


def test_a_page_beyond_the_last_and_a_senseless_size(renderer: Renderer, tmp_path: Path) -> None:
    doc, _ = opened(renderer, write(tmp_path / "one.pdf", Pdf().page().bytes()))
    failure = renderer.render(PageRef(doc, 7), long_side=100)
    assert isinstance(failure, PageFailure)
    assert failure.reason == "render_error"
    for long_side in (0, -5, 100_000):
        with pytest.raises(ConfigError, match="long_side"):
            renderer.render(PageRef(doc, 0), long_side=long_side)


@pytest.mark.parametrize("form", ["pdf", "png"])
def test_a_page_may_be_turned_on_top_of_what_it_says(renderer: Renderer, tmp_path: Path, form: str) -> None:
    data = Pdf().page(more=b"/Rotate 90").bytes() if form == "pdf" else saved_png(words_image())
    doc, _ = opened(renderer, write(tmp_path / "page", data))
    shots = {turn: renderer.render(PageRef(doc, 0), long_side=300, rotate=turn) for turn in (0, 90, 180, 270)}
    own = 90 if form == "pdf" else 0
    for turn, shot in shots.items():
        assert isinstance(shot, PageImage)
        assert shot.rotation == (own + turn) % 360
        image = Image.open(io.BytesIO(shot.png))
        assert image.size == (shot.width, shot.height)
        turned = Image.open(io.BytesIO(shots[0].png)).rotate(-turn, expand=True)
        assert image.tobytes() == turned.tobytes()
    with pytest.raises(ConfigError, match="rotate"):
        renderer.render(PageRef(doc, 0), rotate=45)


def test_the_bytes_may_lie_elsewhere_than_the_name_says(renderer: Renderer, tmp_path: Path) -> None:
    paths = [write(tmp_path / f"copy{n}", saved_png(words_image(text=text))) for n, text in enumerate(("one", "two"))]
    shots = []
    for path in paths:
        answer = renderer.open("s3://bucket/all.zip", path=path)
        assert not isinstance(answer, PageFailure)
        assert answer[0].uri == "s3://bucket/all.zip"
        shots.append((PageRef(answer[0], 0), path))
    pngs = {renderer.render(ref, path=path, long_side=200).png for ref, path in (*shots, *shots)}  # type: ignore[union-attr]
    assert len(pngs) == 2
    moved = write(tmp_path / "moved", Path(paths[0]).read_bytes())
    os.unlink(paths[0])
    assert isinstance(renderer.render(shots[0][0], path=moved), PageImage)
    failure = renderer.render(shots[0][0], path=paths[0])
    assert isinstance(failure, PageFailure)
    assert (failure.uri, failure.reason) == ("s3://bucket/all.zip", "unreadable_file")


def test_a_renderer_that_is_dropped_takes_its_child_along(tmp_path: Path) -> None:
    renderer = Renderer()
    opened(renderer, write(tmp_path / "one.pdf", Pdf().page().bytes()))
    pid = child_of(renderer)
    del renderer
    assert gone(pid)


def test_a_killed_parent_leaves_no_child_behind(tmp_path: Path) -> None:
    uri = write(tmp_path / "hang.pdf", hanging_pdf())
    code = (
        "import sys; from jocr.pages.render import *; from jocr.records import *\n"
        "r = Renderer(); d, n = r.open(sys.argv[1]); print(r._child._process.pid, flush=True)\n"
        "r.render(PageRef(d, 1), long_side=300)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, uri], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.3)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(100):
        if gone(child):
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child went on after its parent was killed")


def test_messages_survive_the_pipe_and_deadlines_hold() -> None:
    read, write_end = os.pipe()
    wire.send(write_end, {"name": "caf\u00e9 \udcff", "n": 1}, b"\0\1\2")
    assert wire.receive(read, 1.0) == ({"name": "caf\u00e9 \udcff", "n": 1}, b"\0\1\2")
    long = os.urandom(wire.PIPE_BYTES * 2 + 7)
    sender = threading.Thread(target=wire.send, args=(write_end, {"n": 2}, long))
    sender.start()  # more than the pipe holds: it comes in pieces
    assert wire.receive(read, 10.0) == ({"n": 2}, long)
    sender.join()
    os.write(write_end, b"\0\0")  # a message that never becomes whole
    with pytest.raises(wire.OutOfTime):
        wire.receive(read, 0.2)
    os.close(write_end)
    with pytest.raises(wire.Ended):
        wire.receive(read, 5.0)
    os.close(read)


@pytest.mark.slow
def test_three_thousand_pages_leave_memory_flat(tmp_path: Path) -> None:
    document = Pdf()
    for number in range(3000):
        document.page(b"BT /F1 40 Tf 60 400 Td (Page %d) Tj ET" % number)
    uri = write(tmp_path / "long.pdf", document.bytes())
    with Renderer(RenderLimits(pages_per_child=10_000)) as renderer:
        doc, pages = opened(renderer, uri)
        assert pages == 3000
        used = []
        for index in range(pages):
            assert isinstance(renderer.render(PageRef(doc, index), long_side=200), PageImage)
            if index % 500 == 499:
                assert renderer._child is not None
                used.append(renderer._child.private_mb())
    assert max(used) - used[0] < 30, used


@pytest.mark.slow
def test_the_same_page_two_thousand_times_leaves_memory_flat(tmp_path: Path) -> None:
    uris = [write(tmp_path / f"{n}.pdf", Pdf().page(b"%% %d\n" % n + b"BT /F1 9 Tf (x) Tj ET").bytes()) for n in (0, 1)]
    with Renderer(RenderLimits(pages_per_child=10_000)) as renderer:
        used = []
        for turn in range(2000):
            doc, _ = opened(renderer, uris[turn % 2])
            assert isinstance(renderer.render(PageRef(doc, 0), long_side=200), PageImage)
            if turn % 400 == 399:
                assert renderer._child is not None
                used.append(renderer._child.private_mb())
    assert max(used) - used[0] < 30, used
