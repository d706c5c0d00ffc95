"""Texts of toy Markov models, right and wrong, with the columns of a judged trace computed in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.trace import TextInfo, Trace

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
TOKENS = 16
END = 0
"""The token after which a text may end."""


def toy_logits(seed: int, spread: float = 2.0) -> Floats:
    """Logits ``[V, V]`` of the next token by the last one; pairs of tokens are tied."""
    logits = np.random.default_rng(seed).normal(0, spread, (TOKENS, TOKENS))
    logits[:, 2] = logits[:, 1]
    return logits


def pmfs(logits: Floats, temperature: float = 1.0) -> Floats:
    weights = np.exp((logits - logits.max(axis=1, keepdims=True)) / temperature)
    return weights / weights.sum(axis=1, keepdims=True)


def draw(p: Floats, rng: np.random.Generator) -> Ids:
    """A token per row of pmfs."""
    return (p.cumsum(axis=1) < rng.random((len(p), 1)) * p.sum(axis=1, keepdims=True)).sum(axis=1)


def plain(p: Floats, texts: int, tokens: int, rng: np.random.Generator) -> Ids:
    """Texts ``[texts, tokens]`` sampled token by token, all after token 1."""
    ids = np.empty((texts, tokens), dtype=np.int64)
    last = np.ones(texts, dtype=np.int64)
    for n in range(tokens):
        ids[:, n] = last = draw(p[last], rng)
    return ids


Verified = Callable[[Floats, Floats, int, int, np.random.Generator], tuple[bool, int]]
"""Of a drafted token after a last one: whether it is accepted, and what replaces it if not."""


def token_rule(p: Floats, q: Floats, last: int, draft: int, rng: np.random.Generator) -> tuple[bool, int]:
    """Token verification (A1): lossless."""
    if rng.random() * q[last, draft] <= p[last, draft]:
        return True, draft
    return False, int(draw(np.maximum(p[last] - q[last], 0.0)[None], rng)[0])


def another_token_rule(p: Floats, q: Floats, last: int, draft: int, rng: np.random.Generator) -> tuple[bool, int]:
    """A faulty rule: accepts by the target's probability of another sampled token, recovers from the next position."""
    other = int(draw(p[last][None], rng)[0])
    if rng.random() <= q[last, draft] / p[last, other]:
        return True, draft
    return False, int(draw(p[draft][None], rng)[0])


def speculative(
    p: Floats, q: Floats, texts: int, tokens: int, rng: np.random.Generator, rule: Verified, k: int = 3
) -> Ids:
    """Texts of chains of k sampled drafts under a rule, with a bonus token from the target."""
    ids = np.empty((texts, tokens), dtype=np.int64)
    for row in ids:
        text = [1]
        while len(text) <= tokens:
            for _ in range(k):
                accepted, token = rule(p, q, text[-1], int(draw(q[text[-1]][None], rng)[0]), rng)
                text.append(token)
                if not accepted:
                    break
            else:
                text.append(int(draw(p[text[-1]][None], rng)[0]))
        row[:] = text[1 : tokens + 1]
    return ids


def judged(p: Floats, texts: Ids, *, ends: bool = False, draft: Floats | None = None) -> Trace:
    """The judged trace of texts under pmfs ``[V, V]``; with `ends` a text is cut after its first end token."""
    kept = [list(text[: int(np.argmax(text == END)) + 1]) if ends and END in text else list(text) for text in texts]
    tokens = np.concatenate(kept)
    last = np.concatenate([[1, *text[:-1]] for text in kept])
    infos = tuple(TextInfo(str(i), len(text), ended=ends and text[-1] == END) for i, text in enumerate(kept))
    return Trace(columns_of(p[last], (p if draft is None else draft)[last], tokens), infos)


def columns_of(p: Floats, q: Floats, tokens: Ids) -> dict[str, Any]:
    """The columns of tokens ``[N]`` under pmfs ``[N, V]``; logits are log-probabilities."""
    at = np.arange(len(tokens))
    of_token = p[at, tokens]
    with np.errstate(divide="ignore"):
        log_target, log_draft, log_p = np.log(of_token), np.log(q[at, tokens]), np.log(p)
    finite = np.where(p > 0, log_p, 0.0)
    second, first = np.sort(log_p, axis=1)[:, -2:].T
    return {
        "token": tokens,
        "log_target": log_target,
        "log_draft": log_draft,
        "target_entropy": -(p * finite).sum(axis=1),
        "target_second_moment": (p * finite**2).sum(axis=1),
        "target_rank": _rank(p, tokens),
        "draft_rank": _rank(q, tokens),
        "target_above": np.where(p > of_token[:, None], p, 0.0).sum(axis=1),
        "target_tied": np.where(p == of_token[:, None], p, 0.0).sum(axis=1),
        "target_top": p.max(axis=1),
        "target_gap": first - log_target,
        "target_margin": first - second,
        "target_scale": np.abs(finite).max(axis=1),
        "total_variation": np.abs(p - q).sum(axis=1) / 2,
    }


def _rank(pmf: Floats, tokens: Ids) -> Ids:
    order = np.argsort(-pmf, axis=1, kind="stable")
    return np.asarray(1 + (order == tokens[:, None]).argmax(axis=1))
