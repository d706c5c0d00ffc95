"""§10: drafts that depend on where the call starts, as those of heads that read the target's hidden states."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from proofs_check.agreement.start_agreement import library
from proofs_check.agreement.start_cases import by_position, by_start, head_calls, random_heads
from proofs_check.evidence.entries import Entry
from proofs_check.evidence.makers import agreement, exact
from proofs_check.statement.claims import Case, Claim
from proofs_check.statement.findings import Effort

HEADS = "over random targets and heads, whose pmfs at every start and run of drafts are unrelated, zeros included"


def decoded(effort: Effort) -> Iterator[Case]:
    """Texts of 3 tokens out of 2 and of 2 out of 3."""
    yield from random_heads(effort, ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 2)), 2)


def traced(effort: Effort) -> Iterator[Case]:
    """Texts with room for two levels of a tree."""
    yield from random_heads(effort, ((2, 3, 2), (2, 4, 3), (3, 2, 3)), 1)


ENTRIES = (
    Entry(
        id="§10",
        title="Drafts that depend on where the call starts",
        kind="identity",
        plain="let q_(n,i) be the pmf of draft i of a call that starts at n, given that the drafts before it equal the "
        "text. Given the whole text, the calls are independent with the laws of §7 with q_(n,i) in place of q_(n+i): "
        "prod_(j<=i) min(1, rho_(n,j)) for token verification, min(1, min_(j<=i) prod_(l<=j) rho_(n,l)) for block "
        "verification, prod_j 1[x_(n+j) = argmax q_(n,j)] for argmax drafts, products and sums over nodes of the rank "
        "laws at (n, j) for races, lists and trees",
        latex=r"P(\tau \ge i \mid x) = \prod_{j\le i} \min(1, \rho_{n,j}),\quad "
        r"\min\Big(1, \min_{j\le i} \prod_{l\le j} \rho_{n,l}\Big)\ \text{(block)},\qquad "
        r"\rho_{n,i} = q_{n,i}(x_{n+i}) / p_{n+i}(x_{n+i})",
        assumptions=(
            "the text is the target's sample",
            "a call's drafts come from pmfs that depend on the text before the call and on its drafts before, never "
            "on the text to come or on what earlier calls drafted",
        ),
        evidence=(
            exact(
                Claim(
                    "the text is the target's, and given all of it the calls are independent with the survivals by "
                    "start (token, block, argmax, race, match and recursive chains; a tree of three rules)",
                    partial(head_calls, by_start),
                ),
                decoded,
                over=HEADS,
                wrong=Claim(
                    "each draft has the pmf of a first draft at its position", partial(head_calls, by_position)
                ),
            ),
            agreement(
                Claim(
                    "the library's survivals, calls and tokens per call from columns by start and depth, chains and "
                    "trees, the best tree found among them, and the terms of the one-call bound",
                    partial(library, by_start),
                ),
                traced,
                over=f"all texts, {HEADS}",
                wrong=Claim("they are those of columns by position", partial(library, by_position)),
            ),
        ),
        calculators=(
            *(
                f"spectheory.verification.by_start.{name}"
                for name in ("AtDepth", "along_calls", "by_depth", "log_ratio")
            ),
            "spectheory.prediction.paths.one_call_terms",
            "spectheory.predict",
        ),
        without={
            "symbolic": "the steps are those of §7; its proof never uses that a draft's pmf is the same at every start",
            "search": "the cases are enumerated in fractions",
            "simulation": "decoders for heads are held to it in the tests",
        },
    ),
)
