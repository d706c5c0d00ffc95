"""Responses of servers that score a given text, made from pmfs: the same numbers in the words of each format."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

V = 12
Json = dict[str, Any]


@dataclass(frozen=True)
class Scored:
    """A text, prompt included, with the pmf of a model at every position."""

    tokens: list[int]
    pmfs: NDArray[np.float64]
    prompt: int

    @property
    def logs(self) -> list[float]:
        """Log-probabilities of the tokens."""
        return [float(np.log(pmf[token])) for pmf, token in zip(self.pmfs, self.tokens, strict=True)]

    def top(self, i: int, m: int) -> list[int]:
        """The m most probable tokens at a position."""
        return [int(token) for token in np.argsort(-self.pmfs[i], kind="stable")[:m]]

    def rank(self, i: int) -> int:
        """Place of the text's token in the model's order."""
        return self.top(i, V).index(self.tokens[i]) + 1


def texts(seed: int, count: int = 4, length: int = 14, prompt: int = 3) -> tuple[list[Scored], list[Scored]]:
    """Texts under a target and a draft, drawn from the target."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((count, length, V))
    p, q = (softmax(x, axis=-1) for x in (logits, logits + rng.standard_normal(logits.shape)))
    tokens = [[int(rng.choice(V, p=pmf)) for pmf in text] for text in p]
    target, draft = ([Scored(t, pmfs, prompt) for t, pmfs in zip(tokens, model, strict=True)] for model in (p, q))
    return target, draft


def vllm(text: Scored, m: int) -> Json:
    """``prompt_logprobs``: the first position null, the text's own token first."""
    positions: list[Json | None] = [None]
    for i in range(1, len(text.tokens)):
        listed = {text.tokens[i]: text.rank(i), **{token: r for r, token in enumerate(text.top(i, m), start=1)}}
        positions.append(
            {
                str(t): {"logprob": float(np.log(text.pmfs[i, t])), "rank": r, "decoded_token": f"<{t}>"}
                for t, r in listed.items()
            }
        )
    return {"id": "cmpl-1", "model": "m", "choices": [{"index": 0, "text": "x", "prompt_logprobs": positions}]}


def sglang(text: Scored, m: int) -> Json:
    """``input_token_logprobs`` and ``input_top_logprobs``."""
    entries = [
        [None, text.tokens[0], None],
        *([log, t, None] for log, t in list(zip(text.logs, text.tokens, strict=True))[1:]),
    ]
    tops = [[[float(np.log(text.pmfs[i, t])), t, None] for t in text.top(i, m)] for i in range(1, len(text.tokens))]
    return {"text": "x", "meta_info": {"id": "r", "input_token_logprobs": entries, "input_top_logprobs": [None, *tops]}}


def echoed(text: Scored, m: int) -> Json:
    """OpenAI's completions with echo, and one generated token after the prompt."""
    logs = {
        "tokens": [f" {t}" for t in text.tokens] + [" new"],
        "token_logprobs": [None, *text.logs[1:], -0.5],
        "top_logprobs": None,
        "text_offset": list(range(len(text.tokens) + 1)),
    }
    usage = {"prompt_tokens": len(text.tokens), "completion_tokens": 1}
    return {"model": "m", "choices": [{"index": 0, "finish_reason": "length", "logprobs": logs}], "usage": usage}


def generated(text: Scored, m: int) -> Json:
    """OpenAI's completions as vLLM returns them with ids: the output alone is scored."""
    out = slice(text.prompt, None)
    logs = {"tokens": [f" {t}" for t in text.tokens[out]], "token_logprobs": text.logs[out], "top_logprobs": None}
    ids = {"prompt_token_ids": text.tokens[: text.prompt], "token_ids": text.tokens[out]}
    usage = {"prompt_tokens": text.prompt, "completion_tokens": len(text.tokens) - text.prompt}
    return {"model": "m", "choices": [{"finish_reason": "length", "logprobs": logs, **ids}], "usage": usage}


def chat(text: Scored, m: int) -> Json:
    """Chat completions with ids in their content, as llama.cpp's server returns them."""
    return {"choices": [{"finish_reason": "stop", "logprobs": {"content": _content(text, m, "logprob", np.log)}}]}


def llama(text: Scored, m: int) -> Json:
    """``completion_probabilities`` without drafts."""
    return {"tokens_predicted": 9, "completion_probabilities": _content(text, m, "logprob", np.log)}


def llama_after(text: Scored, m: int) -> Json:
    """The same with ``post_sampling_probs``."""
    content = _content(text, m, "prob", lambda p: p)
    return {"completion_probabilities": [{**each, "top_probs": each.pop("top_logprobs")} for each in content]}


def _content(text: Scored, m: int, name: str, of: Callable[[Any], Any]) -> list[Json]:
    def one(i: int, token: int) -> Json:
        return {"id": token, "token": f" {token}", "bytes": [], name: float(of(text.pmfs[i, token]))}

    out = range(text.prompt, len(text.tokens))
    return [{**one(i, text.tokens[i]), "top_logprobs": [one(i, t) for t in text.top(i, m)]} for i in out]


Server = Callable[[Scored, int], Json]


def write(path: Path, server: Server, scored: Sequence[Scored], m: int = 2, **more: Any) -> Path:
    """A log with a response per line."""
    path.write_text("".join(json.dumps({**server(text, m), **more}) + "\n" for text in scored))
    return path
