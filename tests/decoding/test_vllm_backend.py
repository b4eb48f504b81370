"""The decoder over vLLM against an engine of a few lines: feeding, stops, failures, death and cancellation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jocr.decoding import vllm_backend
from jocr.decoding.engine import Limits
from jocr.decoding.protocol import Decoder, EngineInfo
from jocr.decoding.vllm_backend import VllmDecoder
from jocr.decoding.vllm_options import VllmSettings
from jocr.errors import EngineError
from jocr.markup.repeats import LoopGuard
from jocr.records import PageInput
from tests.decoding.models import byte_tokenizer, png
from tests.vllm_plugin.checkpoints import PROCESSOR, TINY

EOS = 1


class ScriptedEngine:
    """Answers with the tokens of a script, two at a time, ``pause`` seconds apart; ``die`` kills it, ``hang`` never
    answers."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script, self.errored = script, False
        self.running = self.most = self.closed = 0
        self.stopped, self.pause = False, 0.0

    async def generate(self, prompt: dict[str, Any], params: Any, request_id: str) -> AsyncIterator[Any]:
        text = byte_tokenizer().decode(prompt["prompt_token_ids"])
        tokens = next((v for k, v in self.script.items() if k in text), [70, 71, EOS])
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0.5 if "late" in text else 0.001)
            if tokens == "die":
                self.errored = True
            if self.errored:
                raise RuntimeError("the process is gone")
            if tokens == "fail":
                raise ValueError("this page is refused")
            if tokens == "hang":
                await asyncio.sleep(60)
            for at in range(0, len(tokens), 2):
                await asyncio.sleep(self.pause)
                last = at + 2 >= len(tokens)
                reason = ("stop" if tokens[-1] == EOS else "length") if last else None
                part = SimpleNamespace(token_ids=tokens[at : at + 2], finish_reason=reason)
                yield SimpleNamespace(prompt_token_ids=[9, 9], outputs=[part])
        finally:
            self.running -= 1
            self.closed += 1

    def shutdown(self) -> None:
        self.stopped = True


def decoder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: dict[str, Any], *, concurrency: int = 2,
    limits: Limits | None = None, stall_seconds: float = 600.0,
) -> VllmDecoder:  # fmt: skip
    engine = ScriptedEngine(script)

    async def start(self: VllmDecoder, arguments: dict[str, Any]) -> ScriptedEngine:
        return engine

    monkeypatch.setattr(VllmDecoder, "_start", start)
    monkeypatch.setattr(vllm_backend, "sampling", lambda *args, **kwargs: None)
    monkeypatch.setattr(vllm_backend.OcrConfig, "load", lambda path: TINY)
    monkeypatch.setattr(vllm_backend, "engine_arguments", lambda *args: {})
    info = EngineInfo("tiny", "", "vllm", "cpu", "float32", "0", "up to near-ties")
    tokenizer = byte_tokenizer()
    return VllmDecoder(
        tmp_path, VllmSettings(concurrency=concurrency, stall_seconds=stall_seconds), tokenizer=tokenizer,
        processor=PROCESSOR, info=info, limits=limits or Limits(),
        make_guard=lambda: LoopGuard(decode=tokenizer.decode),
    )  # fmt: skip


def pages(*instructions: str) -> list[PageInput]:
    return [PageInput(text, png(i), text, 1500) for i, text in enumerate(instructions)]


def test_every_page_gets_its_transcript_in_order_of_completion(monkeypatch, tmp_path):
    made = decoder(monkeypatch, tmp_path, {"late": [70, 80, 81, EOS], "cut": [70, 71, 72]}, concurrency=3)
    assert isinstance(made, Decoder)
    out = list(made.decode(pages("late one", "short one", "cut one")))
    assert {t.page_id: t.stop for t in out} == {"late one": "end", "short one": "end", "cut one": "length"}
    assert out[-1].page_id == "late one"
    assert {t.text for t in out if t.page_id != "late one"} == {"@A", "@AB"}
    assert made.stats.pages == 3
    made.close()
    assert made.engine.stopped


def test_pages_are_pulled_as_room_appears_and_never_more(monkeypatch, tmp_path):
    made = decoder(monkeypatch, tmp_path, {}, concurrency=2)
    pulled = []

    def source() -> Iterator[PageInput]:
        for page in pages(*[f"page {i}" for i in range(9)]):
            pulled.append(page.page_id)
            yield page

    finished = 0
    for _ in made.decode(source()):
        assert len(pulled) <= finished + 2 + 1
        finished += 1
    assert finished == 9
    assert made.engine.most == 2
    made.close()


def test_a_loop_is_ended_early_trimmed_and_called_a_loop(monkeypatch, tmp_path):
    unit = [int(b) + 6 for b in b"the same words again and again, "]
    made = decoder(monkeypatch, tmp_path, {"loop": [70, 71, *unit * 40]})
    (answer,) = made.decode(pages("loop"))
    assert (answer.stop, answer.text) == ("loop", "@Athe same words again and again, ")
    assert "copies" in answer.detail
    assert made.engine.closed == 1
    made.close()


def test_a_page_that_fails_costs_the_others_nothing(monkeypatch, tmp_path):
    made = decoder(monkeypatch, tmp_path, {"bad": "fail", "slow": "hang"}, limits=Limits(page_seconds=0.3))
    broken = PageInput("broken", b"no image", "x", 10)
    out = {t.page_id: t for t in made.decode([*pages("bad", "slow", "good"), broken])}
    assert {k: t.stop for k, t in out.items()} == {"bad": "error", "slow": "error", "good": "end", "broken": "error"}
    assert out["bad"].detail == "engine_error: ValueError: this page is refused"
    assert out["slow"].detail.startswith("decode_timeout")
    assert out["broken"].detail.startswith("image_error")
    made.close()


def test_a_dead_engine_is_an_engine_error(monkeypatch, tmp_path):
    made = decoder(monkeypatch, tmp_path, {"poison": "die"})
    begun = time.monotonic()
    with pytest.raises(EngineError, match="died: the process is gone"):
        list(made.decode(pages("poison", "good")))
    assert time.monotonic() - begun < 5
    made.close()


def test_an_engine_that_stops_answering_is_an_engine_error(monkeypatch, tmp_path):
    made = decoder(monkeypatch, tmp_path, {"mute": "hang"}, concurrency=3, stall_seconds=0.4)
    begun, seen = time.monotonic(), []
    with pytest.raises(EngineError, match=r"gave nothing for 0\.4 s with pages in flight"):
        seen.extend(t.page_id for t in made.decode(pages("mute one", "good", "mute two")))
    assert time.monotonic() - begun < 5
    assert seen == ["good"]
    assert _becomes(0, made)
    with pytest.raises(EngineError, match=r"did not finish one page within 0\.4 s"):
        made.ask(*pages("mute"))
    made.close()
    assert made.engine.stopped


def test_a_slow_engine_and_a_slow_reader_are_not_stuck(monkeypatch, tmp_path):
    made = decoder(monkeypatch, tmp_path, {"long": [*range(70, 84), EOS]}, stall_seconds=0.5)
    made.engine.pause = 0.15  # more than a second in all
    stops = []
    for answer in made.decode(pages("quick", "long one", "long two")):
        time.sleep(0.6)
        stops.append(answer.stop)
    assert stops == ["end"] * 3
    made.close()


def test_leaving_early_cancels_what_runs(monkeypatch, tmp_path):
    made = decoder(monkeypatch, tmp_path, {"slow": "hang"}, concurrency=3)
    answers = made.decode(pages("quick", "slow one", "slow two"))
    assert next(answers).page_id == "quick"
    assert _becomes(2, made)
    answers.close()
    assert _becomes(0, made)
    assert made.engine.closed == 3
    made.close()


def test_a_page_handed_in_by_itself_can_be_cancelled(monkeypatch, tmp_path):
    made = decoder(monkeypatch, tmp_path, {"slow": "hang", "poison": "die"})
    assert made.submit(*pages("quick")).result(timeout=10).stop == "end"
    waiting = made.submit(*pages("slow"))
    assert _becomes(1, made)
    waiting.cancel()
    assert _becomes(0, made)
    with pytest.raises(EngineError, match="died"):
        made.submit(*pages("poison")).result(timeout=10)
    made.close()


def _becomes(running: int, made: VllmDecoder) -> bool:
    deadline = time.monotonic() + 10
    while made.engine.running != running and time.monotonic() < deadline:
        time.sleep(0.01)
    return made.engine.running == running


def test_an_engine_that_does_not_start_says_so(monkeypatch, tmp_path):
    async def start(self: VllmDecoder, arguments: dict[str, Any]) -> None:
        raise RuntimeError("no memory")

    made = decoder(monkeypatch, tmp_path, {})
    made.close()
    monkeypatch.setattr(VllmDecoder, "_start", start)
    known = {"tokenizer": made.tokenizer, "processor": PROCESSOR, "info": made.info, "limits": Limits()}
    with pytest.raises(EngineError, match="did not start: RuntimeError: no memory"):
        VllmDecoder(tmp_path, VllmSettings(), **known)
