"""Rules of two candidates on few tokens: strategies and the space that the optimiser walks."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from proofs_check.evidence.search import Space, rational
from proofs_check.library.strategies import exact_pmfs
from proofs_check.statement.claims import Case


def rules(tokens: int) -> st.SearchStrategy[Case]:
    """A draft, and any rule for two candidates: a law of the output for every list."""
    return st.fixed_dictionaries({"q": exact_pmfs(tokens), "rule": st.tuples(*[exact_pmfs(tokens)] * tokens**2)})


def rules_of_two() -> Space:
    """The same on two tokens, for the optimiser: logits of the first token."""

    def weights(x: Any) -> dict[str, Any]:
        rows = [(float(share), float(1 - share)) for share in 1 / (1 + np.exp(-np.clip(x, -700, 700)))]
        return {"q": rows[0], "rule": tuple(rows[1:])}

    def fractions(x: Any) -> Case:
        found = weights(x)
        return {"q": rational(found["q"]), "rule": tuple(rational(row) for row in found["rule"])}

    return Space(5, weights, fractions)
