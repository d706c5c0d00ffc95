"""Heads as tables: a pmf for each start and run of drafts, random ones, and the trace of all their texts (§10, §12)."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import Texts, columns_of
from proofs_check.agreement.path_cases import TREES, SurvivalOf
from proofs_check.prelude import *
from proofs_check.twins.path_theorem import Survival
from proofs_check.twins.tree_theorem import depth
from spectheory import Trace
from spectheory.trace.columns import BY_START, START_RANKS
from spectheory.verification.by_start import PREFIX

HeadTable = Mapping[tuple[Prefix, Prefix], Pmf]
"""A pmf for each text before a call and each run of drafts in it."""


def from_start(head: HeadTable, start: Prefix) -> Model:
    """The draft of the call after `start`; of shorter texts the first drafts, which the call does not read."""
    return lambda prefix: head[prefix[: len(start)], prefix[len(start) :]]


def by_start(of: SurvivalOf, target: Model, head: HeadTable, text: Prefix) -> Survival:
    """§10: the survival with the pmfs of the call's own start."""
    return lambda n, i: of(target, from_start(head, text[:n]), text)(n, i)


TREE = TREES[1]


def random_heads(effort: Effort, sizes: tuple[tuple[int, int, int], ...], rounds: int) -> Iterator[Case]:
    """Random targets and heads {target, head, k, length}, for each (tokens, length, k)."""
    rng = random.Random(f"heads {effort.seed}")
    for _ in range(effort.pick(rounds, 8 * rounds)):
        for tokens, length, k in sizes:
            deepest = max(k, depth(TREE))
            target = random_model(rng, tokens, length + deepest, 8)
            head = {
                (start, run): random_pmf(rng, tokens, 8)
                for start in prefixes(tokens, length)
                for run in prefixes(tokens, length - len(start) + deepest)
            }
            yield {"target": target, "head": head, "k": k, "length": length}


def heads(effort: Effort) -> Iterator[Case]:
    """The head of B7/starts, then random ones."""
    yield certain_head((1, 2, 0, 0), 2)
    yield from random_heads(effort, ((2, 3, 1), (2, 3, 2), (2, 4, 2), (3, 2, 2)), 3)


def certain_head(right: Sequence[int], k: int) -> Case:
    """A target that always says 0, and a head that is right on so many drafts of the call from each start."""
    sure, wrong = (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))
    head_cases = random_heads(Effort(), ((2, len(right), k),), 1)
    case = next(iter(head_cases))
    target = dict.fromkeys(case["target"], sure)
    head = {(start, run): sure if len(run) < right[len(start)] else wrong for start, run in case["head"]}
    return {"target": target, "head": head, "k": k, "length": len(right)}


def head_trace(target: Table, head: HeadTable, k: int, length: int) -> Trace:
    """All texts with the columns by start to depth k, and those of the first drafts by position."""
    texts = Texts(target, {start: head[start, ()] for start, run in head if not run}, length)
    by_depth = [_at_depth(texts, head, i) for i in range(k)]
    deep = {name: np.stack([at[name] for at in by_depth], axis=1) for name in by_depth[0]}
    plain = texts.trace()
    return replace(plain, columns={**plain.columns, **deep})


def _at_depth(texts: Texts, head: HeadTable, i: int) -> dict[str, NDArray[Any]]:
    """The columns by start of draft i + 1 of the call at each position; past the end those of the last position."""
    rows = []
    for text in texts.all:
        for n in range(texts.length):
            m = min(n + i, texts.length - 1)
            rows.append((texts.target[text[:m]], head[text[:n], text[n:m]], text[m]))
    columns = columns_of(rows)
    ours = {name: columns[name.removeprefix(PREFIX)] for name in BY_START if name.removeprefix(PREFIX) in columns}
    return {name: values[:, :START_RANKS] if values.ndim == 2 else values for name, values in ours.items()}
