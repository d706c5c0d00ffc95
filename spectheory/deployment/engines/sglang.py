"""Settings of SGLang with a draft model: trees or chains of the draft's first choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spectheory.deployment.engines.base import ARGMAX, Ask, EngineSettings, command
from spectheory.deployment.engines.facts import Engine, Fact
from spectheory.deployment.fastest_tree import fastest_tree
from spectheory.drafting import Shape, Tree
from spectheory.prediction import Prediction, predict
from spectheory.verification import TopKMatch

_CHECKED = "source of 0.5.23; not run"
FIRST_CHOICES = Fact(
    "--speculative-algorithm STANDALONE",
    "The draft's first choices are accepted with the target's probability (topk; argmax in a chain) while both accept "
    "thresholds are 1, their default; lower ones change the output.",
    "documentation, sgl-project/sglang#10308; not run",
)
REFUSED = Fact(
    "--speculative-use-rejection-sampling",
    "Sampled drafts are not available: speculative-use-rejection-sampling is refused for a draft model of its own "
    "(STANDALONE).",
    f"{_CHECKED}: `NotImplementedError`, only EAGLE, EAGLE3 and NEXTN take it",
)
MATCHED = Fact(
    "temperature 0", "Drafts are accepted where they match the target's first choices.", "documentation; not run"
)
GROWN = Fact(
    "--speculative-num-steps, --speculative-eagle-topk, --speculative-num-draft-tokens",
    "Each call grows a new tree by the draft's confidence; the prediction is an estimate, for the best fixed tree of "
    "that size.",
    "documentation: num-draft-tokens counts the root, so it is nodes + 1; not run",
)
DTYPE = Fact("--dtype", "It is the type of both models: the draft is loaded in the target's.", _CHECKED)
MIN_P = Fact(
    "min_p", "Verification leaves min-p out: no settings for traces with it.", "sgl-project/sglang#10617, open"
)
SGLANG = Engine("sglang", "0.5.23", (FIRST_CHOICES, REFUSED, MATCHED, GROWN, MIN_P, DTYPE))


@dataclass(frozen=True)
class GrownTree(Shape):
    """A tree as SGLang grows it: every pass after the first is on the `top` best nodes. The `kept` nodes are verified.

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
    """The faster of a tree and a chain of first choices."""
    known = [p for p in (ask.drafted(ARGMAX), None if ask.greedy else _tree(ask)) if p is not None]
    if not known:
        return None
    best = max(known, key=lambda p: p.gain)
    target, drafter = ask.target, ask.drafter
    of_target = {"revision": target.revision, "dtype": target.dtype}
    options: dict[str, Any] = {
        **{name: value for name, value in of_target.items() if value},
        "speculative-algorithm": "STANDALONE",
        "speculative-draft-model-path": drafter.source,
        **({"speculative-draft-model-revision": drafter.revision} if drafter.revision else {}),
        "speculative-num-steps": best.shape.depth,
        "speculative-eagle-topk": best.shape.top if isinstance(best.shape, GrownTree) else 1,
        "speculative-num-draft-tokens": best.shape.nodes + 1,
    }
    words = ["python", "-m", "sglang.launch_server", "--model-path", target.source]
    return ask.settings(SGLANG, best, options, command(words, options), _remarks(ask, best))


def _tree(ask: Ask) -> Prediction | None:
    """The fastest tree of first choices, with the passes that growing it takes."""
    trace, cost, rule = ask.draft.trace, ask.draft.cost, TopKMatch()
    if rule.lacks(trace.columns):
        return None
    wanted = fastest_tree(trace, rule, cost, ask.nodes, drafted_as=GrownTree)
    return predict(trace, rule, wanted, cost) if wanted else None


def _remarks(ask: Ask, best: Prediction) -> list[str]:
    types = [DTYPE.does] if ask.types_differ else []
    if ask.greedy:
        return [
            MATCHED.as_rule,
            "A greedy trace ranks no second choices, so no tree is predicted.",
            ask.requests,
            *types,
        ]
    grown = [GROWN.does] if isinstance(best.shape, GrownTree) else []
    return [FIRST_CHOICES.as_rule, REFUSED.does, *grown, ask.requests, *types]
