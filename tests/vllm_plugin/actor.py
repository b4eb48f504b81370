"""What the Ray tests run in a worker, which imports it by this module's name: an actor, and a Serve deployment."""

from __future__ import annotations

import asyncio
import time


class Reader:
    """What an actor stage does: one decoder for its lifetime."""

    def __init__(self, checkpoint: str) -> None:
        from jocr.decoding.load import load_decoder

        self.decoder = load_decoder(checkpoint, engine="vllm", depth=1, batch=4, dtype="float32")

    def read(self, inputs):
        return {t.page_id: t.tokens for t in self.decoder.decode(inputs)}

    def leave_early(self, inputs) -> int:
        """Take one answer and go; how many requests are left in the engine after a while."""
        answers = self.decoder.decode(inputs)
        next(answers)
        answers.close()
        deadline = time.monotonic() + 60
        while self.decoder.engine.get_num_unfinished_requests() and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.decoder.engine.get_num_unfinished_requests()

    def kill_engine(self) -> None:
        for process in self.decoder.engine.engine_core.resources.engine_manager.processes:
            process.kill()


class Replica(Reader):
    """A bare Serve replica: every call is one page, as many at once as Serve lets in."""

    async def __call__(self, page):
        return (await asyncio.wrap_future(self.decoder.submit(page))).tokens

    async def running(self) -> int:
        return self.decoder.engine.get_num_unfinished_requests()

    async def kill(self) -> None:
        self.kill_engine()
