"""Read an engine's output with both models: the trace by which its counts and its texts are judged (§13)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Grown, Shape
from spectheory.errors import SettingError, TextError
from spectheory.judging.changes import LogitChange, Steps
from spectheory.judging.counting import counting_of, rule_of, shape_of
from spectheory.measure.columns.noise import text_key
from spectheory.measure.columns.pmf import log_pmf
from spectheory.measure.copied import ngram_columns, removed_from_equal
from spectheory.measure.forward import Statistics, read_text
from spectheory.measure.grown import grown_columns
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.tokens import check_window
from spectheory.prediction.ngrams import NGRAMS, ngram_of
from spectheory.trace import GIVEN_TEXT, IMPOSSIBLE, LAYERS, READ, SOURCES, TextInfo, Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.verification.by_start import PREFIX

CUT_SLACK = 2**-4
"""How far an engine's cuts may be off, in proportion: bfloat16 logits near 16 are rounded by up to 2^-4 nats. A cut by
rank may be off by one."""

SMALLEST = math.log(np.finfo(np.float32).smallest_subnormal)
"""Log-probability of a token that the target cannot output, so that rules can be read on its text."""


def judged_trace(
    pair: ModelPair,
    log: CallLog,
    *,
    draft_change: LogitChange | None = None,
    target_change: LogitChange | None = None,
    chunk: int = 256,
    key: int = 0,
    k: int | None = None,
) -> Trace:
    """The trace of an engine's outputs, one text per request in their order, by one pass of both models over each.

    A draft head is read at every start, as deep as calls are: `k` tokens where the log does not say (§10).

    It has the cheap columns of a measurement, and those of :data:`~spectheory.trace.JUDGED`. Texts are read at the
    log's sampling settings; those of temperature 0 at temperature 1 without filters, which ``read`` in the provenance
    says. Tokens that the target cannot output under the settings, even if its filters are off by :data:`CUT_SLACK`,
    stand in the provenance under :data:`~spectheory.trace.IMPOSSIBLE`, and have the log-probability
    :data:`SMALLEST` in place of -inf. `draft_change` and `target_change` are other ways to sample
    (:mod:`spectheory.judging.changes`). Where the log states a tree, the columns of trees are read too, the estimated
    one with the randomness of `key`.

    Raises :class:`~spectheory.errors.TextError` for a request without prompt or output ids, ids that the pair lacks, a
    text that is too long for the models; and :class:`~spectheory.errors.SettingError` if the log says no temperature.
    """
    if log.sampling is None:
        raise SettingError(
            "the log does not say its temperature", limit="pmfs depend on it", remedy="state the engine's settings"
        )
    sampling = log.sampling if log.sampling.temperature else Sampling()  # at which texts are read
    check_ids(log)
    shape, rule = shape_of(log, counting_of(log, k).k if pair.draft.head else log.k or 1), rule_of(log)
    copied = ngram_of(rule) if rule is not None else None
    depth = _depth(pair.draft, shape)
    texts = [_ids(pair, request) for request in log.requests]
    target, draft = (change.steps(sampling) if change else (sampling,) for change in (target_change, draft_change))
    race, read = shape.fixed and not isinstance(shape, Chain), []
    for number, (request, ids) in enumerate(zip(log.requests, texts, strict=True)):
        statistics = _Judged(target[-1], race, True, text_key(key, number), request.id, steps=(target, draft))
        (columns,) = read_text(pair, *ids, [statistics], chunk=chunk, stop_at_end=True, depth=depth)
        if isinstance(shape, Grown):  # trees that depend on the log
            columns |= grown_columns(pair, *ids, shape, chunk=chunk, name=request.id)
        elif copied is not None:
            removed = removed_from_equal(pair.target.network, log.sampling)
            columns |= ngram_columns(copied.copies, *ids, pair.end_of_text, removed)
        read.append(columns)
    impossible = [
        f"text {request.id!r}, token {at + 1} (id {request.output[at]})"
        for request, text in zip(log.requests, read, strict=True)
        for at in np.flatnonzero(text["log_target"] == -math.inf).tolist()
    ]
    for text in read:
        never = text["log_target"] == -math.inf
        text["log_target"][never] = SMALLEST
        for name in ("race_g", f"{PREFIX}race_g")[: 1 + (depth is not None)]:  # at p/q
            g, log_draft = text[name], text[name.replace("race_g", "log_draft")]
            rows = np.indices(g.shape).sum(axis=0).clip(max=len(never) - 1)
            g[never[rows] & (log_draft > -math.inf)] = 0.0
    return Trace(
        {name: np.concatenate([text[name] for text in read]) for name in read[0]},
        tuple(
            TextInfo(request.id, len(request.output), ended=request.ended, prompt_tokens=len(ids[0]))
            for request, ids in zip(log.requests, texts, strict=True)
        ),
        _provenance(pair, log, sampling, {"target": target_change, "draft": draft_change}, shape)
        | ({NGRAMS: [copied.name]} if copied is not None else {})
        | ({IMPOSSIBLE: impossible} if impossible else {}),
    )


def check_ids(log: CallLog) -> None:
    """Refuse a log without requests, or with one that lacks ids of its prompt or output."""
    if not log.requests:
        raise TextError("the log has no request", limit="needs at least one", remedy="run the engine on some prompts")
    for request in log.requests:
        if not (request.prompt and request.output):
            raise TextError(
                f"request {request.id!r} has no ids of its {'output' if request.prompt else 'prompt'}",
                limit="models read token ids, at least one",
                remedy="let the engine return token ids, or leave the request out",
            )


def _ids(pair: ModelPair, request: Request) -> tuple[Tensor, Tensor]:
    """Prompt and output of a request, checked before a model runs."""
    for what, ids in (("prompt", request.prompt), ("output", request.output)):
        unknown = next((i for i, token in enumerate(ids) if not 0 <= token < pair.vocabulary), None)
        if unknown is not None:
            raise TextError(
                f"request {request.id!r}, token {unknown + 1} of its {what} has id {ids[unknown]}",
                limit=f"the pair has ids 0..{pair.vocabulary - 1}",
                remedy="name the models that the engine ran",
            )
    check_window(request.id, len(request.prompt), len(request.output), pair.window)
    return torch.tensor(request.prompt, dtype=torch.int64), torch.tensor(request.output, dtype=torch.int64)


@dataclass(frozen=True)
class _Judged(Statistics):
    """Columns of a text that an engine output; `steps` are those by which target and draft are sampled."""

    judged: bool = True
    steps: tuple[Steps, Steps] = ((), ())

    def columns(self, target: Tensor, draft: Tensor, tokens: Tensor, done: int, **options: Any) -> dict[str, Tensor]:
        """The columns of rows of logits, with -inf for tokens that even looser filters of the target cut."""
        of_target, of_draft = self.steps
        target, draft = _applied(target, of_target[:-1]), _applied(draft, of_draft[:-1])
        columns = super().columns(target, draft, tokens, done, draft_sampling=of_draft[-1], **options)
        if self.sampling.truncates and "log_target" in columns:
            columns["log_target"].masked_fill_(_cut_off(target, tokens, self.sampling).cpu(), -math.inf)
        return columns


def _depth(draft: Model, shape: Shape) -> int | None:
    """The depth to which a head is read; None for other drafts. Refuses calls that the head cannot have drafted."""
    head = draft.head
    if head is not None and head.deepest is not None and shape.depth > head.deepest:
        raise SettingError(
            f"the log has calls of {shape.depth} drafts",
            limit=f"the head {draft.name!r} drafts at most {head.deepest}",
            remedy="name the head that the engine ran, with as many slots",
        )
    return None if head is None else shape.depth


def _cut_off(logits: Tensor, tokens: Tensor, sampling: Sampling) -> Tensor:
    """Which tokens ``[rows]`` are cut even by filters that keep a little more than the stated ones."""
    looser = Sampling(
        sampling.temperature,
        top_k=sampling.top_k and sampling.top_k + 1,
        top_p=sampling.top_p and min(1.0, sampling.top_p * (1 + CUT_SLACK)),
        min_p=sampling.min_p and sampling.min_p * (1 - CUT_SLACK),
    )
    return log_pmf(logits.float(), looser).gather(1, tokens[:, None])[:, 0] == -math.inf


def _applied(logits: Tensor, earlier: Steps) -> Tensor:
    """Logits after all settings but the last."""
    for sampling in earlier:
        logits = log_pmf(logits.float(), sampling)
    return logits


def _provenance(
    pair: ModelPair, log: CallLog, sampling: Sampling, changes: dict[str, LogitChange | None], shape: Shape
) -> dict[str, Any]:
    return {
        **pair.describe(),
        SOURCES: {"target": pair.target.source, "draft": pair.draft.source},
        "settings": {"sampling": asdict(sampling), **({"grown": shape.size} if isinstance(shape, Grown) else {})},
        "origin": GIVEN_TEXT,
        "engine": {"name": log.engine, "version": log.version},
        "changes": {model: change.says for model, change in changes.items() if change},
        **({READ: f"temperature {sampling.temperature:g}"} if log.temperature == 0 else {}),
        LAYERS: getattr(pair.target.network.config, "num_hidden_layers", None),
        "versions": versions(),
        "hardware": hardware(),
    }
