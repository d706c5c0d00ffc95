"""Decode prompts with a pair and a method: draft, one pass of the target, verify; all texts of a batch in step."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from spectheory.checks import whole
from spectheory.distributions import Sampling
from spectheory.errors import SettingError, TextError
from spectheory.measure.columns.noise import text_key
from spectheory.measure.copied import removed_from_equal
from spectheory.measure.decoders.methods import Method, check_temperature
from spectheory.measure.decoders.readers import (
    HeadReader,
    KeptReader,
    PmfRows,
    Reader,
    RereadingReader,
    _fewer,
    why_uncached,
)
from spectheory.measure.decoders.translated import TranslatedReader
from spectheory.measure.decoders.tree import ROOT, Clocks, DraftTree, Floats, GeneratorChance, Source
from spectheory.measure.decoders.verifiers import Verifier
from spectheory.measure.forward import check_prompt, too_deep
from spectheory.measure.heads.base import HiddenStates
from spectheory.measure.pair import ModelPair
from spectheory.measure.reading import enough_memory
from spectheory.measure.tokens import check_window
from spectheory.ngrams import Request

Last = Literal["recovered", "bonus", "plain", "end"]
"""What followed the accepted drafts: a token after a rejection, a token after the last draft of a path, the token of a
call without drafts; or nothing, because the last accepted draft ended the text."""


@dataclass(frozen=True)
class Call:
    """One target call of one text.

    `drafted` is the number of nodes of the draft tree (the target processes one token more), `depth` the most drafts
    that could be accepted, `accepted` how many were, `last` what followed them. `draft_seconds` and `target_seconds`
    are forward passes, `seconds` is the whole call; in a batch all three are for its texts together.
    """

    drafted: int
    depth: int
    accepted: int
    last: Last
    draft_seconds: float
    target_seconds: float
    seconds: float

    @property
    def outside(self) -> float:
        """Seconds outside both models' forward passes."""
        return self.seconds - self.draft_seconds - self.target_seconds

    @property
    def tokens(self) -> int:
        """Output tokens: accepted drafts, and the recovered or bonus token unless the text ended before it."""
        return self.accepted + (self.last != "end")


@dataclass(frozen=True)
class Decoded:
    """One decoded text: `output_ids` ``[n]`` after the prompt, its end-of-text token included, on the CPU.

    `calls` are in order; the first one carries the prompt's last token, so their number is C(0) of §7.
    `prefill_seconds` is the time of both models on the rest of the prompt; in a batch, on all its prompts together.
    `remarks` say what made decoding slower than necessary.
    """

    output_ids: Tensor
    calls: tuple[Call, ...]
    prefill_seconds: float
    remarks: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Wall-clock time, prompt included."""
        return self.prefill_seconds + sum(call.seconds for call in self.calls)

    @property
    def overhead(self) -> float:
        """Time of the calls outside the models' forward passes, relative to the time within."""
        within = sum(call.draft_seconds + call.target_seconds for call in self.calls)
        return sum(call.seconds for call in self.calls) / within - 1


@dataclass
class _Running:
    """One text being decoded: `text` is prompt and output so far (shared with the readers), `to_go` the tokens left."""

    text: list[int]
    to_go: int
    source: Source
    calls: list[Call] = field(default_factory=list)

    def follow(self, tokens: Sequence[int]) -> None:
        """Append these tokens."""
        self.text += tokens
        self.to_go -= len(tokens)
        self.source.clocks.follow(tokens)

    def over(self, ends: frozenset[int], most: int | None) -> bool:
        """Whether its last call is made, and still to be listed."""
        return self.to_go == 0 or self.text[-1] in ends or len(self.calls) + 1 == most


def run(
    running: Sequence[_Running],
    target: Reader,
    draft: Reader | None,
    method: Method,
    ends: frozenset[int],
    verifier: Verifier | None = None,
    *,
    greedy: bool = False,
    calls: int | None = None,
    removed: Collection[int] = (),
) -> None:
    """Decode texts to their ends, in step: each round makes one call of every text that has not ended.

    The readers know the texts in the same order; `draft` is None if the method drafts nothing from a model. A text ends
    with the first token of `ends`, or after so many `calls`. `verifier` replaces the method's own. At temperature 0 the
    drafts are `greedy`. `removed` are tokens that a copied draft may leave out.
    """
    readers = [reader for reader in (target, draft) if reader is not None]
    going = {row: text for row, text in enumerate(running) if text.to_go > 0}
    copies = method.copies
    states = [copies and copies.begin(Request(np.asarray(text.text), ends, removed)) for text in running]
    while going:
        started = time.perf_counter()
        for reader in readers:
            reader.seconds = 0.0
        trees = {row: DraftTree() for row in going}
        _draft(going, trees, draft, method, ends, greedy, states)
        paths = _verify(going, trees, target, verifier or method.verifier, ends)
        ended = [row for row, text in going.items() if text.over(ends, calls)]
        for reader in readers:
            reader.settle({row: path for row, (path, _) in paths.items()})
            if ended:
                reader.drop(ended)
        took = draft.seconds if draft is not None else 0.0, target.seconds, time.perf_counter() - started
        for row, (path, last) in paths.items():
            if copies and trees[row].copied:
                copies.accept(states[row], len(path))
            going[row].calls.append(Call(len(trees[row].nodes), trees[row].depth, len(path), last, *took))
        for row in ended:
            del going[row]


def _draft(
    going: Mapping[int, _Running],
    trees: Mapping[int, DraftTree],
    draft: Reader | None,
    method: Method,
    ends: frozenset[int],
    greedy: bool,
    states: Sequence[Any],
) -> None:
    """Grow the trees of all texts; they share the passes of the draft."""
    drafting = {
        row: method.drafting(trees[row], text.text, text.to_go - 1, text.source, ends, greedy, states[row])
        for row, text in going.items()
    }
    answers: Mapping[int, PmfRows] = {}
    while True:
        requests = {}
        for row, steps in drafting.items():
            rows = answers.get(row)
            with suppress(StopIteration):
                nodes = next(steps) if rows is None else steps.send([rows[i] for i in range(len(rows))])
                requests[row] = trees[row], nodes
        if draft is None or not requests:
            return
        answers = draft.read(requests)
        drafting = {row: drafting[row] for row in requests}


def _verify(
    going: Mapping[int, _Running],
    trees: Mapping[int, DraftTree],
    target: Reader,
    verifier: Verifier,
    ends: frozenset[int],
) -> dict[int, tuple[list[int], Last]]:
    """One pass of the target; extend the texts by the result. Returns accepted nodes and what followed them."""
    wanted = {row: [ROOT, *tree.nodes] for row, tree in trees.items()}
    rows = target.read({row: (trees[row], nodes) for row, nodes in wanted.items()})
    paths: dict[int, tuple[list[int], Last]] = {}
    for row, tree in trees.items():
        path, token = verifier(tree, _ByNode(rows[row], wanted[row]), going[row].source)
        accepted = [tree.tokens[node] for node in path]
        last: Last = "recovered" if tree.children(path[-1] if path else ROOT) else "bonus" if path else "plain"
        if accepted and accepted[-1] in ends:
            last = "end"
        going[row].follow(accepted if last == "end" else [*accepted, token])
        paths[row] = path, last
    return paths


class _ByNode:
    """Pmfs by node, each computed where it is asked for."""

    def __init__(self, rows: PmfRows, nodes: Sequence[int]) -> None:
        self._rows, self._place = rows, {node: i for i, node in enumerate(nodes)}

    def __getitem__(self, node: int) -> Floats:
        return self._rows[self._place[node]]


MOST_DRAFTED = 1 << 14
"""More drafts in one call are a mistake: building their tree takes longer than decoding a text."""
_IDS = (torch.int64, torch.int32)


def decode(
    pair: ModelPair,
    prompts_ids: Sequence[Tensor],
    method: Method,
    *,
    tokens: int,
    sampling: Sampling | None = None,
    seed: int = 0,
    batch: int = 1,
    stop_at_end: bool = True,
    chunk: int = 256,
    verifier: Verifier | None = None,
    calls: int | None = None,
) -> list[Decoded]:
    """Decode each prompt ``[n]``, n >= 1; the texts have the target's law for any draft if the rule is lossless.

    A call is one pass of the target on the last token and the drafts after it. With m tokens to go no draft is deeper
    than m - 1, and none follows an end of text. At temperature 0 every such method gives the target's greedy text. Pmfs
    are computed on the CPU in float64, so target and draft may be on different devices.

    `batch` texts are decoded in step: they share passes and times, and a text that ends leaves the batch. The
    randomness of a text is fixed by `seed` and its number: texts depend on `batch`, device and precision only by
    rounding. With the rule ``race`` they depend on the shape and the draft only by rounding too. `verifier` replaces
    the method's own, e.g. by a biased one for comparison. A text ends after so many `calls`, if they are given, even if
    tokens are left.

    A draft head reads the hidden states of the target's passes (§10). Its prompts have two tokens or more, and it reads
    the texts of a batch one after the other.
    """
    sampling = sampling or Sampling()
    numbers = {"tokens": tokens, "batch": batch, "chunk": chunk, **({} if calls is None else {"calls": calls})}
    _check_numbers(method, sampling, seed, numbers)
    head = pair.draft.head if method.uses_draft else None
    if head is not None and head.deepest is not None and method.depth > head.deepest:
        raise too_deep(f"{method.rule} is asked for {method.shape}", pair.draft.name, head.deepest)
    _check_prompts(pair, prompts_ids, tokens, method)
    models = [pair.target, *([pair.draft] if method.uses_draft and head is None else [])]
    uncached = [(model, why_uncached(model)) for model in models]
    remarks = tuple(f"{model.name} {why}: every call reads its text again" for model, why in uncached if why)
    kinds = [KeptReader if why is None else RereadingReader for _, why in uncached]
    ends = pair.end_of_text if stop_at_end else frozenset[int]()
    removed = removed_from_equal(pair.target.network, sampling) if method.copies else ()
    decoded = []
    for first in range(0, len(prompts_ids), batch):
        prompts = [[int(token) for token in ids] for ids in prompts_ids[first : first + batch]]
        running = []
        for number, prompt in enumerate(prompts, start=first):
            clocks = Clocks(text_key(seed, number, 1), pair.vocabulary)
            clocks.follow(prompt)
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number, 0)))
            running.append(_Running(list(prompt), tokens, Source(GeneratorChance(rng), clocks)))
        texts = len(running)
        # A pass reports this itself; moving caches and computing pmfs take memory as well.
        with (
            enough_memory("the decoder", f"{texts} texts at once", _fewer(texts, "fewer drafts or shorter texts")),
            _readers(pair, method, sampling, [one.text for one in running], kinds) as readers,
        ):
            for reader in readers:
                reader.prefill(chunk)
            prefill = sum(reader.seconds for reader in readers)
            draft = readers[1] if method.uses_draft else None
            greedy = sampling.temperature == 0
            run(running, readers[0], draft, method, ends, verifier, greedy=greedy, calls=calls, removed=removed)
        decoded += [
            Decoded(torch.tensor(one.text[len(prompt) :]), tuple(one.calls), prefill, remarks)
            for one, prompt in zip(running, prompts, strict=True)
        ]
    return decoded


@contextmanager
def _readers(
    pair: ModelPair,
    method: Method,
    sampling: Sampling,
    texts: Sequence[list[int]],
    kinds: Sequence[type[KeptReader | RereadingReader]],
) -> Iterator[list[Reader]]:
    """The readers of target and draft; a head takes the target's hidden states as long as this is open."""
    head, confidences = pair.draft.head if method.uses_draft else None, method.confidences(sampling)
    sampling = method.judged_by(sampling)
    if head is None:
        models = (pair.target, sampling), (pair.draft, confidences)
        yield [
            kind(model, pair.vocabulary, how, texts)
            if model.common is None
            else TranslatedReader(model, pair.vocabulary, how, texts, kind=kind)
            for (model, how), kind in zip(models, kinds, strict=False)
        ]
        return
    with HiddenStates(pair.target.network, head.layers) as states:
        draft = HeadReader(pair.draft, pair.vocabulary, confidences, texts, depth=method.depth, states=states)
        yield [kinds[0](pair.target, pair.vocabulary, sampling, texts, draft), draft]


def _check_numbers(method: Method, sampling: Sampling, seed: int, numbers: dict[str, int]) -> None:
    for name, value, least in (*((name, value, 1) for name, value in numbers.items()), ("seed", seed, 0)):
        whole(name, value, least=least, remedy=f"use {least} or more")
    if method.shape is not None and method.shape.nodes > MOST_DRAFTED:
        raise SettingError(
            f"a call drafts {method.shape.nodes} tokens", limit=f"at most {MOST_DRAFTED}", remedy="use a smaller shape"
        )
    if method.law is not None:
        check_temperature(method.law, sampling.temperature)
    if method.stop:
        method.stop.check_temperature(sampling.temperature)


def _check_prompts(pair: ModelPair, prompts_ids: Sequence[Tensor], tokens: int, method: Method) -> None:
    if len(prompts_ids) == 0:
        raise TextError("there is no prompt", limit="needs at least one", remedy="pass a prompt")
    for i, ids in enumerate(prompts_ids, start=1):
        if not isinstance(ids, Tensor) or ids.ndim != 1 or len(ids) == 0 or ids.dtype not in _IDS:
            what = f"shape {tuple(ids.shape)}, {ids.dtype}" if isinstance(ids, Tensor) else f"type {type(ids).__name__}"
            raise TextError(
                f"prompt {i} has {what}", limit="needs a tensor [n] of token ids, n >= 1", remedy="encode a text"
            )
        if int(ids.min()) < 0 or int(ids.max()) >= pair.vocabulary:
            raise TextError(
                f"prompt {i} has token ids {int(ids.min())}..{int(ids.max())}",
                limit=f"the pair has ids 0..{pair.vocabulary - 1}",
                remedy="encode it with the pair's tokenizer",
            )
        check_window(str(i), len(ids), tokens, pair.window, beyond=method.beyond)
        if method.uses_draft:
            check_prompt(pair.draft, str(i), len(ids))
