"""Settings of SGLang with a draft model: trees of the draft's first choices, or chains of sampled drafts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spectheory.deployment.candidates import Candidate
from spectheory.deployment.engines.base import ARGMAX, TOKEN, Ask, EngineSettings, command
from spectheory.deployment.fastest_tree import fastest_tree
from spectheory.drafting import Shape, Tree
from spectheory.prediction import Prediction, predict
from spectheory.shape_calls import calls_by_shape
from spectheory.verification import RULES, RankRule

ENGINE = "sglang"


@dataclass(frozen=True)
class GrownTree(Shape):
    """A tree as SGLang grows it: after the first pass, each pass is on the `top` best nodes, needed or not.

    Parameters
    ----------
    kept : Tree
        The nodes that are verified.

    Examples
    --------
    >>> grown = GrownTree(Tree.from_paths([(1,), (2,), (1, 1), (1, 2), (1, 3), (1, 1, 1)]))
    >>> grown.top, grown.passes, grown.kept.passes
    (3, (1, 3, 3), (1, 1, 1))
    """

    kept: Tree

    @property
    def top(self) -> int:
        """The eagle-topk that reaches every kept node."""
        return max(self.kept.max_rank, *self.kept.passes)

    @property
    def nodes(self) -> int:
        """Drafted tokens per call; the target processes one more."""
        return self.kept.nodes

    @property
    def depth(self) -> int:
        """Draft passes per call."""
        return self.kept.depth

    @property
    def passes(self) -> tuple[int, ...]:
        """One token first, then `top` in each pass."""
        return (1,) + (self.top,) * (self.depth - 1)

    @property
    def max_rank(self) -> int:
        """The largest rank at any node."""
        return self.kept.max_rank

    def tree(self) -> Tree:
        """The nodes that are verified."""
        return self.kept

    def __str__(self) -> str:
        """Short form for tables."""
        return f"tree of {self.nodes}, depth {self.depth}, top {self.top}"


def sglang_settings(ask: Ask) -> EngineSettings | None:
    """The fastest of a tree of first choices, a chain of them, and a chain of sampled drafts.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.deployment.candidates import Draft
    >>> from spectheory.trace import Trace
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 2)
    >>> ask = Ask.about(Draft("small", trace, ConstantRatio(0.1)), range(1, 9), 8)
    >>> sglang_settings(ask).options["speculative-num-steps"]
    6
    """
    greedy = ask.sampling.temperature == 0
    chain = ask.matching() if greedy else ask.fastest(TOKEN, ARGMAX)
    known = [p for p in (chain, None if greedy else _tree(ask)) if p is not None]
    if not known:
        return None
    best = max(known, key=lambda p: p.speedup.best if p.speedup else 0.0)
    options: dict[str, Any] = {
        "speculative-algorithm": "STANDALONE",
        "speculative-draft-model-path": ask.draft_name,
        "speculative-num-steps": best.shape.depth,
        "speculative-eagle-topk": best.shape.top if isinstance(best.shape, GrownTree) else 1,
        "speculative-num-draft-tokens": best.shape.nodes + 1,
    }
    if best.rule.name == TOKEN and not greedy:
        options["speculative-use-rejection-sampling"] = True
    words = ["python", "-m", "sglang.launch_server", "--model-path", ask.target_name]
    return EngineSettings(
        ENGINE, Candidate(ask.draft, best), options, command(words, options), tuple(_remarks(ask, best, greedy))
    )


def _tree(ask: Ask) -> Prediction | None:
    """The fastest tree of first choices, with the passes that growing it takes."""
    trace, cost, rule = ask.draft.trace, ask.draft.cost, RULES["topk"]
    assert isinstance(rule, RankRule)
    if rule.recorded_in not in trace.columns:
        return None
    wanted = fastest_tree(trace, rule, cost, ask.nodes, drafted_as=GrownTree)
    if wanted is None:
        return None
    (found,) = calls_by_shape(trace, rule, [wanted])
    shape = GrownTree(found.shape.tree())
    return predict(trace, rule, shape, cost)


def _remarks(ask: Ask, best: Prediction, greedy: bool) -> list[str]:
    if greedy:
        return [
            "Rule: drafts are accepted where they match the target's first choices; a greedy trace ranks no second "
            "choices, so no tree is predicted.",
        ]
    lines = [
        "Rule: the draft's first choices are accepted with the target's probability (topk; argmax in a chain) while "
        "both accept thresholds are 1, their default; lower ones change the output.",
        "Sampled drafts with token verification need speculative-use-rejection-sampling and topk 1, in versions that "
        "have it.",
    ]
    default = ask.fastest(ARGMAX)
    if best.rule.name == TOKEN and default is not None:
        lines.append(f"Without it a chain gives at best k = {default.shape.nodes}, speed-up {default.speedup}x.")
    if best.rule.name == TOKEN and (ask.sampling.top_k or ask.sampling.top_p):
        lines.append("Not certain: whether sampled drafts are cut by top-k and top-p, as the prediction assumes.")
    if isinstance(best.shape, GrownTree):
        lines.append(
            "The tree is grown anew in each call by the draft's confidence; predicted is the best fixed tree of that "
            "size, so this is an estimate."
        )
    return lines
