"""An engine of a Markov pair with faults planted in it, and the counts and texts that it logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from spectheory.trace import TextInfo, Trace
from spectheory.trace.calls import CallLog, Request
from tests.judging.toy_texts import Floats, columns_of, pmfs, toy_logits

K, TOKENS = 4, 96
LOGITS = toy_logits(31)
TARGET = pmfs(LOGITS)
DRAFT_LOGITS = LOGITS + toy_logits(32, 1.2)
DRAFT = pmfs(DRAFT_LOGITS)


@dataclass(frozen=True)
class Engine:
    """Chains of token verification, right unless a field says otherwise.

    `drafts` and `bonus` are what drafts and bonus tokens are drawn from; `accepts` gives the chance of accepting a
    draft, `recovers` the law of what replaces it, both of the pmfs at a position and the drafted token. `reads` is how
    far from its position the draft's pmf is read, `shared` says that one uniform number draws and accepts. A share
    `loses` of the drafts, and those deeper than `deepest`, are replaced by samples of the target unseen.
    """

    drafts: Floats | None = None
    bonus: Floats | None = None
    target: Floats | None = None
    accepts: Callable[[Floats, Floats, int], float] = lambda p, q, x: min(1.0, p[x] / q[x])
    recovers: Callable[[Floats, Floats, int], Floats] = lambda p, q, x: np.maximum(p - q, 0.0)
    reads: int = 0
    loses: float = 0.0
    shared: bool = False
    argmax: bool = False
    deepest: int = K
    extra_calls: int = 0

    def log(self, prompts: int, seed: int) -> CallLog:
        """What so many prompts log."""
        rng = np.random.default_rng([seed, prompts])
        return CallLog(
            tuple(self._request(n, rng) for n in range(prompts)), "planted", "1", K, 1.0, prefill_emits_token=False
        )

    def _request(self, number: int, rng: np.random.Generator) -> Request:
        p = TARGET if self.target is None else self.target
        q = DRAFT if self.drafts is None else self.drafts
        first = number % len(p)
        text, accepted, drafted = [first], list[int](), list[int]()
        while len(text) <= TOKENS:
            room = min(K, TOKENS - len(text))
            taken = 0
            for depth in range(room):
                at, before = text[-1], text[max(len(text) - 1 - self.reads, 0)]
                u = rng.random()
                pmf = q[before] if self.reads else q[at]
                token = int(pmf.argmax()) if self.argmax else _drawn(pmf, u)
                if depth >= self.deepest or rng.random() < self.loses:
                    text.append(_drawn(p[at], rng.random()))
                    break
                coin = u if self.shared else rng.random()
                if coin < (p[at][token] if self.argmax else self.accepts(p[at], q[at], token)):
                    text.append(token)
                    taken += 1
                    continue
                left = p[at] * (np.arange(len(pmf)) != token) if self.argmax else self.recovers(p[at], q[at], token)
                text.append(_drawn(left if left.sum() > 0 else p[at], rng.random()))
                break
            else:
                text.append(_drawn((p if self.bonus is None else self.bonus)[text[-1]], rng.random()))
            accepted.append(taken)
            drafted.append(room)
        made = Request(
            str(number), (first,), tuple(text[1 : TOKENS + 1]), accepted=tuple(accepted), drafted=tuple(drafted)
        )
        if self.extra_calls:
            made = replace(made, accepted=(), drafted=(), calls=len(accepted) + self.extra_calls)
        return made


def _drawn(weights: Floats, u: float) -> int:
    sums = weights.cumsum()
    return min(int(np.searchsorted(sums, u * sums[-1], side="right")), len(weights) - 1)


def read(log: CallLog) -> Trace:
    """Both models on the engine's texts."""
    before = np.array([t for r in log.requests for t in (*r.prompt, *r.output)[:-1]])
    tokens = np.array([t for r in log.requests for t in r.output])
    p, q = TARGET[before], DRAFT[before]
    columns = columns_of(p, q, tokens) | {
        "greedy_agreement": p.argmax(axis=1) == q.argmax(axis=1),
        "race_g": np.maximum(p[np.arange(len(p)), tokens, None] / q[np.arange(len(p)), tokens, None] * q - p, 0.0).sum(
            axis=1
        ),
    }
    texts = tuple(TextInfo(request.id, len(request.output)) for request in log.requests)
    settings = {"sampling": {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None}}
    return Trace(columns, texts, {"settings": settings})


def _typical(p: Floats, _: Floats, x: int) -> float:
    entropy = -float((p * np.log(p)).sum())
    return float(p[x] >= min(0.3, 0.6 * np.exp(-entropy)))


def _cut(pmf: Floats, keep: int) -> Floats:
    least = np.sort(pmf, axis=1)[:, -keep, None]
    kept = np.where(pmf >= least, pmf, 0.0)
    return kept / kept.sum(axis=1, keepdims=True)


RIGHT = Engine()
FAULTS = {
    "target sampled again instead of the residual": Engine(recovers=lambda p, q, x: p),
    "residual of the exchanged models": Engine(recovers=lambda p, q, x: np.maximum(q - p, 0.0)),
    "recovered token from the draft": Engine(recovers=lambda p, q, x: q),
    "most probable token of the residual": Engine(
        recovers=lambda p, q, x: np.eye(len(p))[np.maximum(p - q, 0).argmax()]
    ),
    "bonus token from the draft": Engine(bonus=DRAFT),
    "bonus token is the most probable": Engine(bonus=np.eye(len(TARGET))[TARGET.argmax(axis=1)]),
    "typical acceptance": Engine(accepts=_typical),
    "acceptance 1.3 times too generous": Engine(accepts=lambda p, q, x: min(1.0, 1.3 * p[x] / q[x])),
    "acceptance 2 times too generous": Engine(accepts=lambda p, q, x: min(1.0, 2 * p[x] / q[x])),
    "acceptance 0.8 times too strict": Engine(accepts=lambda p, q, x: 0.8 * min(1.0, p[x] / q[x])),
    "acceptance by the target's probability alone": Engine(accepts=lambda p, q, x: float(p[x])),
    "acceptance by the inverse ratio": Engine(accepts=lambda p, q, x: min(1.0, q[x] / p[x])),
    "every draft accepted": Engine(accepts=lambda p, q, x: 1.0),
    "drafts at temperature 0.7, read at 1": Engine(drafts=pmfs(DRAFT_LOGITS, 0.7)),
    "drafts cut to the 4 most probable": Engine(drafts=_cut(DRAFT, 4)),
    "first choices of the draft": Engine(argmax=True),
    "draft read one position late": Engine(reads=1),
    "one uniform number for draft and acceptance": Engine(shared=True),
    "target at temperature 0.9": Engine(target=pmfs(LOGITS, 0.9)),
    "nothing accepted beyond depth 2": Engine(deepest=2),
    "one draft in ten lost": Engine(loses=0.1),
    "a call too many in each request": Engine(extra_calls=1),
}
