"""The decoder over vLLM: pages are fed one by one to ``AsyncLLM`` as others end, never in fixed batches.

vLLM decides which tokens come; when a page ends is decided here, token by token, by the same ``Stopper`` and loop guard
as in this project's own engine. So both cut a page at the same token.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

from jocr.decoding.engine import Limits
from jocr.decoding.protocol import EngineInfo
from jocr.decoding.stats import Stats
from jocr.decoding.stopping import Guard, Stopper
from jocr.decoding.vllm_options import Request, VllmSettings, engine_arguments, make_request, sampling
from jocr.decoding.vllm_stats import SpeculationCounts, stat_logger
from jocr.errors import EngineError
from jocr.model.config import OcrConfig
from jocr.model.tokenizer import Tokenizer
from jocr.pages.tiles import ProcessorConfig
from jocr.records import PageInput, Stop, Transcript

STOPS: dict[str, Stop] = {"stop": "end", "length": "length", "repetition": "loop"}  # vLLM's words; all others: error


class LoopThread:
    """An asyncio loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="jocr-vllm", daemon=True)
        self.thread.start()

    def submit(self, work: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def close(self) -> None:
        """Cancel what is left, then end the thread."""
        self.submit(_cancel_all()).result(timeout=10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(timeout=10)
        self.loop.close()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request came to: ids of the prompt as the engine saw it, tokens kept, who ended it."""

    prompt_ids: tuple[int, ...]
    tokens: list[int]
    stopper: Stopper


class VllmDecoder:
    """Implements ``Decoder``. Make it with ``vllm_load.load_vllm``, which also runs the self-test.

    Args:
        make_guard: a loop guard for each page, or None for none.

    Attributes:
        speculation: vLLM's own counts since the start; vLLM does not keep them by page.
    """

    def __init__(self, checkpoint: Path, settings: VllmSettings, *, tokenizer: Tokenizer, processor: ProcessorConfig,
                 info: EngineInfo, limits: Limits, make_guard: Callable[[], Guard] | None = None) -> None:  # fmt: skip
        self.settings, self.tokenizer, self.processor = settings, tokenizer, processor
        self.info, self.limits, self.make_guard = info, limits, make_guard
        text = OcrConfig.load(checkpoint).text
        self.eos, self.positions = text.eos_token_id, text.max_position_embeddings
        self.positions = min(settings.max_positions or self.positions, self.positions)
        self.stats, self.speculation = Stats(), SpeculationCounts()
        self._names = count()
        self._heard = monotonic()  # when the engine last gave a token, or last got a page
        self._thread = LoopThread()
        try:
            self.engine = self._thread.submit(self._start(engine_arguments(checkpoint, settings))).result()
        except Exception as error:
            self._thread.close()
            raise EngineError(f"vLLM did not start: {type(error).__name__}: {error}") from error

    def decode(self, pages: Iterable[PageInput]) -> Iterator[Transcript]:
        """One transcript for each page, in order of completion; closing the iterator cancels what is still running.

        Raises:
            EngineError: the engine died, or gave nothing for ``stall_seconds``; the pages in flight have no result.
        """
        done: queue.SimpleQueue[Future[Transcript]] = queue.SimpleQueue()
        waiting, running, ended = iter(pages), set[Future[Transcript]](), False
        try:
            while True:
                while not ended and len(running) < self.settings.concurrency and done.empty():
                    page = next(waiting, None)
                    ended = page is None
                    if page is not None:
                        task = self.submit(page)
                        running.add(task)
                        task.add_done_callback(done.put)
                if not running:
                    return
                task = self._wait(done)
                running.discard(task)
                yield task.result()
        finally:
            for task in running:
                task.cancel()

    def submit(self, page: PageInput) -> Future[Transcript]:
        """One page, for callers with a concurrency of their own (servers). Cancelling the future frees the engine.

        Raises:
            EngineError: (the future) the engine died. How long a page may take is for ``limits`` and the caller.
        """
        self._heard = monotonic()
        return self._thread.submit(self._page(page))

    def _wait(self, done: queue.SimpleQueue[Future[Transcript]]) -> Future[Transcript]:
        """The next page that ended.

        Raises:
            EngineError: none ends, and the engine gives no token either: it is stuck.
        """
        limit = self.settings.stall_seconds
        while True:
            try:
                return done.get(timeout=min(1.0, limit / 4))
            except queue.Empty:
                if monotonic() - self._heard > limit:
                    message = f"vLLM gave nothing for {limit:g} s with pages in flight: it is stuck"
                    raise EngineError(message) from None

    def close(self) -> None:
        """Stop the engine and its processes."""
        if self._thread.thread.is_alive():
            self._thread.submit(self._stop()).result(timeout=60)
            self._thread.close()

    def ask(self, page: PageInput) -> Answer:
        """One page by itself, without a loop guard: prompt ids as the engine saw them and the tokens.

        Raises:
            EngineError: the engine died, is stuck, or cannot decode this page.
        """
        request = self._request(page)
        stopper, limit = Stopper(self.eos, request.limit), self.settings.stall_seconds
        task = self._thread.submit(self._generate(request, stopper))
        try:
            return task.result(timeout=limit)
        except TimeoutError as error:
            task.cancel()
            raise EngineError(f"vLLM did not finish one page within {limit:g} s: it is stuck") from error
        except Exception as error:
            raise EngineError(f"vLLM failed on a page: {type(error).__name__}: {error}") from error

    async def _start(self, arguments: dict[str, Any]) -> Any:
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments), stat_loggers=[stat_logger(self.speculation)])

    async def _stop(self) -> None:
        self.engine.shutdown()

    def _request(self, page: PageInput) -> Request:
        return make_request(page, self.tokenizer, self.processor, self.positions, self.limits.max_tokens)

    async def _page(self, page: PageInput) -> Transcript:
        """A page's failure is this page's result, unless it is everybody's."""
        begun = perf_counter()
        try:
            return await self._transcribe(page, begun)
        except TimeoutError:
            seconds = perf_counter() - begun
            return _failed(page, f"decode_timeout: not finished after {seconds:.1f} s", seconds)
        except Exception as error:
            if self.engine.errored:
                raise EngineError(f"vLLM's engine process died: {error}") from error
            text = str(error)
            cause = f": {error.__cause__}" if error.__cause__ else ""
            detail = text if text.startswith("image_error") else f"engine_error: {type(error).__name__}: {text}{cause}"
            return _failed(page, detail, perf_counter() - begun)

    async def _transcribe(self, page: PageInput, begun: float) -> Transcript:
        request = await asyncio.to_thread(self._request, page)
        guard = self.make_guard() if self.make_guard else None
        stopper = Stopper(self.eos, request.limit, guard)
        async with asyncio.timeout(self.limits.page_seconds):
            answer = await self._generate(request, stopper)
        seconds = perf_counter() - begun
        tokens = stopper.trim(answer.tokens)
        self.stats.pages += 1
        self.stats.tokens += len(answer.tokens)
        return Transcript(page.page_id, self.tokenizer.decode(tokens), tuple(tokens), stopper.stop or "error",
                          len(answer.prompt_ids), seconds, detail=stopper.detail)  # fmt: skip

    async def _generate(self, request: Request, stopper: Stopper) -> Answer:
        """Take tokens as they come until the stopper or the engine ends the page; leaving early aborts the request."""
        tokens: list[int] = []
        prompt: tuple[int, ...] = ()
        reason: str | None = None
        params = sampling(request.limit, self.eos, streaming=True, temperature=request.temperature, seed=request.seed)
        stream = self.engine.generate(request.prompt, params, f"page-{next(self._names)}")
        try:
            async for output in stream:
                self._heard = monotonic()
                prompt = prompt or tuple(output.prompt_token_ids or ())
                stopper.take(tokens, output.outputs[0].token_ids)
                reason = output.outputs[0].finish_reason
                if stopper.stop is not None:
                    break
        finally:
            await stream.aclose()
        if stopper.stop is None:
            stopper.stop = STOPS.get(reason or "", "error")
            stopper.detail = "" if stopper.stop != "error" else f"engine_error: the engine ended the page with {reason}"
        return Answer(prompt, tokens, stopper)


def _failed(page: PageInput, detail: str, seconds: float) -> Transcript:
    return Transcript(page.page_id, "", (), "error", 0, seconds, detail=detail)
