"""Continuations sampled from the target: the texts a measurement is made on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spectheory.checks import whole
from spectheory.distributions import Sampling
from spectheory.errors import DeviceMemoryError
from spectheory.measure.columns.pmf import cuts, divisor, kept_tokens, token_at
from spectheory.measure.machine import widest
from spectheory.measure.pair import ModelPair
from spectheory.measure.reading import Reading, _pad_in_front, enough_memory, why_alone
from spectheory.measure.tokens import check_window


def sample_continuations(
    pair: ModelPair,
    prompt_ids: Tensor,
    sampling: Sampling,
    *,
    tokens: int,
    count: int,
    rng: np.random.Generator,
    stop_at_end: bool = True,
    chunk: int = 256,
) -> list[Tensor]:
    """Sample `count` continuations of one prompt ``[n]`` from the target, as a batch; the draft is not used.

    Returns token ids of each continuation on the CPU, at least one and at most `tokens`. All uniform numbers are drawn
    from `rng` beforehand, one per token and continuation, so a text does not depend on when others end. The same
    generator state gives the same texts on the same machine; on another device or in another precision logits round
    differently, and texts may diverge.
    """
    (texts,) = sample_together(
        pair, [prompt_ids], sampling, tokens=tokens, count=count, rngs=[rng], stop_at_end=stop_at_end, chunk=chunk
    )
    return texts


def sample_together(
    pair: ModelPair,
    prompts_ids: Sequence[Tensor],
    sampling: Sampling,
    *,
    tokens: int,
    count: int,
    rngs: Sequence[np.random.Generator],
    stop_at_end: bool = True,
    chunk: int = 256,
    remark: Callable[[str], None] | None = None,
) -> list[list[Tensor]]:
    """:func:`sample_continuations` of several prompts in shared passes; each prompt has its own generator.

    The prompts are padded in front to the longest one. A text depends on the others of its batch by rounding alone.
    A text that ends leaves the batch at the latest when half of the texts have ended. A target whose logits change with
    padding (:func:`~spectheory.measure.reading.why_alone`) samples the prompts one after the other. Where the device
    runs out of memory, the batch is halved and goes on after the tokens it has: `remark` takes a sentence that says so.
    """
    for name, value in (("tokens", tokens), ("count", count)):
        whole(name, value, remedy="ask for at least one")
    for ids in prompts_ids:
        check_window("", len(ids), tokens, pair.window)
    ends = torch.tensor(sorted(pair.end_of_text) if stop_at_end else [], dtype=torch.int64)
    uniforms = [torch.from_numpy(rng.random((tokens, count))) for rng in rngs]
    alone = len(prompts_ids) > 1 and why_alone(pair.target, max(map(len, prompts_ids)) + tokens) is not None
    batches = [[place] for place in range(len(prompts_ids))] if alone else [list(range(len(prompts_ids)))]
    texts: list[Tensor] = []
    for batch in batches:
        sampled = _Sampled(
            pair,
            [prompts_ids[place] for place in batch],
            torch.cat([uniforms[place] for place in batch], dim=1),
            sampling,
            ends,
            chunk,
        )
        texts += sampled.texts(remark or (lambda _: None))
    return [texts[start : start + count] for start in range(0, len(texts), count)]


@dataclass(eq=False)
class _Sampled:
    """Texts ``[tokens, rows]`` while they are sampled: as many of each prompt, prompt by prompt."""

    pair: ModelPair
    prompts: Sequence[Tensor]
    uniforms: Tensor
    sampling: Sampling
    ends: Tensor
    chunk: int

    def texts(self, remark: Callable[[str], None]) -> list[Tensor]:
        """All texts, each up to its end."""
        self._ids = torch.empty(self.uniforms.shape, dtype=torch.int64)
        left = [(torch.arange(self.uniforms.shape[1]), 0)]
        while left:
            rows, done = left.pop()
            rows, done = self._go_on(rows, done)
            if len(rows):
                half = (len(rows) + 1) // 2
                remark(f"memory ran out with {len(rows)} texts sampled together: they go on {half} at a time")
                left += [(part, done) for part in (rows[half:], rows[:half]) if len(part)]
        ends = [torch.isin(text, self.ends).nonzero() for text in self._ids.T]
        return [text[: int(at[0]) + 1] if len(at) else text for text, at in zip(self._ids.T, ends, strict=True)]

    def _go_on(self, rows: Tensor, done: int) -> tuple[Tensor, int]:
        """Sample these rows to their ends after `done` tokens; those left, and their tokens, if memory runs out."""
        tokens, device = len(self.uniforms), self.pair.target.device
        going_on = torch.ones(len(rows), dtype=torch.bool)
        try:
            reading, logits = self._begun(rows, done)
            while True:
                with enough_memory("drawing tokens", f"{len(rows)} texts at once", "fewer texts per prompt"):
                    latest = draw(logits, self.uniforms[done, rows], self.sampling)
                self._ids[done, rows] = latest.cpu()
                done += 1
                going_on &= ~torch.isin(self._ids[done - 1, rows], self.ends)
                if done == tokens or not going_on.any():
                    return rows[:0], done
                if 2 * int(going_on.sum()) <= len(rows):
                    kept = going_on.nonzero()[:, 0]
                    reading.select(kept, tokens - done)
                    rows, going_on, latest = rows[kept], going_on[kept], latest[kept.to(device)]
                logits = reading.read(latest[:, None])[:, 0]
        except DeviceMemoryError:
            if len(rows) == 1:
                raise
            return rows[going_on], done

    def _begun(self, rows: Tensor, done: int) -> tuple[Reading, Tensor]:
        """A reading of these rows up to the next token, with its logits ``[rows, V]``.

        Texts of one prompt are read once while they have no token of their own.
        """
        of_prompt = rows // (self.uniforms.shape[1] // len(self.prompts))
        if done:
            each = torch.arange(len(rows))
            texts = [
                torch.cat([self.prompts[p], self._ids[:done, row]]) for p, row in zip(of_prompt, rows, strict=True)
            ]
        else:
            places, each = of_prompt.unique(return_inverse=True)
            texts = [self.prompts[place] for place in places]
        ids, padding = _pad_in_front(texts)
        reading = Reading(self.pair.target, self.pair.vocabulary, padding)
        for piece in ids.split(self.chunk, dim=1):
            logits = reading.read(piece)[:, 0]
        reading.select(each, len(self.uniforms) - done)
        return reading, logits[each.to(logits.device)]


def draw(logits: Tensor, uniforms: Tensor, sampling: Sampling) -> Tensor:
    """One token ``[rows]`` (int64, on the device of `logits` ``[rows, V]``) per row, by inversion at `uniforms`.

    The weights are float64, on the device if it has that precision: of the kept tokens alone where some are cut.
    """
    if cuts(sampling, logits.shape[1]):
        ids, log = kept_tokens(logits, sampling)
        return ids.gather(1, _at(log, uniforms))[:, 0]
    best = logits.amax(dim=-1, keepdim=True)
    if not bool(torch.isfinite(best).all()):
        sampling.log_pmf(logits)  # raises an error that names the row
    scaled = logits.to(widest(logits)) - best
    return _at(scaled.div_(divisor(sampling, scaled.dtype)), uniforms)[:, 0]


def _at(log_weights: Tensor, uniforms: Tensor) -> Tensor:
    """The columns ``[rows, 1]`` at `uniforms` ``[rows]`` of the cumulative weights, which need no normaliser."""
    wide = widest(log_weights) == torch.float64
    cumulative = log_weights.to("cpu" if not wide else log_weights.device, torch.float64).exp_().cumsum_(dim=1)
    return token_at(cumulative, uniforms.to(cumulative.device)[:, None]).to(log_weights.device)
