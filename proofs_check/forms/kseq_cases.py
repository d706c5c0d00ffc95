"""k-SEQ (R5) where its scale rho is rational: pairs of pmfs made for a rho, so that everything is a fraction.

rho solves 1 - (1 - beta)^k = rho beta, beta = sum min(q, p/rho). Whatever the pair, min(q, p/rho) sums to beta and what
q and p/rho have beyond it is on different tokens. So every pair of pmfs that are not disjoint is made by
:func:`at_root` from its beta, and of a rational beta rho is rational.
"""

from __future__ import annotations

from proofs_check.library.strategies import exact_weights
from proofs_check.prelude import *

LARGEST_LOGIT = 300.0
"""Beyond it a softmax has entries that are 0."""


def one(p: AnyPmf, q: AnyPmf, rho: Real) -> Real:
    """The acceptance beta of one candidate, the sum of min(q, p/rho)."""
    return sum(smaller(b, a / rho) for a, b in zip(p, q, strict=True))


def any_of(beta: Real, k: int) -> Real:
    """1 - (1 - beta)^k."""
    return 1 - math.prod([1 - beta] * k)


def at_root(k: int, beta: Real, common: AnyPmf, more_p: AnyPmf, more_q: AnyPmf) -> Case:
    """A pair with its rho: beta times the common part is min(q, p/rho), the two others are on different tokens."""
    rho = sum((1 - beta) ** rank for rank in range(k))  # (1 - (1 - beta)^k)/beta, a sum that floats can take
    return {
        "p": tuple(rho * beta * c + (1 - rho * beta) * a for c, a in zip(common, more_p, strict=True)),
        "q": tuple(beta * c + (1 - beta) * b for c, b in zip(common, more_q, strict=True)),
        "k": k,
        "rho": rho,
    }


def roots(denominator: int) -> Iterator[Case]:
    """Pairs on two and three tokens with their rho: k = 1, 2, 3, beta a multiple of 1/denominator."""
    for tokens in (2, 3):
        apart = [pair for pair in cases.pairs(tokens, 2) if not any(map(min, pair["p"], pair["q"]))]
        for k, weight in product((1, 2, 3), range(1, denominator + 1)):
            for common, pair in product(cases.grid(tokens, 3), apart):
                yield at_root(k, Fraction(weight, denominator), common, pair["p"], pair["q"])


def drawn_roots() -> st.SearchStrategy[Case]:
    """Up to 4 tokens, k = 2, 3, 4."""
    four = st.tuples(*[exact_weights()] * 4)
    return st.builds(_drawn, st.integers(2, 4), st.integers(1, 12), st.integers(0, 12), st.integers(1, 3), four, four)


def _drawn(k: int, up: int, down: int, cut: int, common: Sequence[int], rest: Sequence[int]) -> Case:
    beta = Fraction(up, up + 10**down - 1)
    return at_root(k, beta, _on(range(4), common), _on(range(cut), rest), _on(range(cut, 4), rest))


def _on(tokens: range, weights: Sequence[int]) -> tuple[Fraction, ...]:
    """The weights of some tokens as a pmf; uniform over them if there is none."""
    kept = [weights[x] if x in tokens else 0 for x in range(4)]
    kept = kept if any(kept) else [int(x in tokens) for x in range(4)]
    return tuple(Fraction(weight, sum(kept)) for weight in kept)


def root_space(tokens: int, k: int) -> Space:
    """The same for the optimiser: what p has beyond the common part is on the first tokens, q's rest on the others."""
    cut = tokens // 2

    def parts(x: NDArray[np.float64]) -> tuple[float, Sequence[Sequence[float]]]:
        bounded = np.clip(x, -LARGEST_LOGIT, LARGEST_LOGIT)
        common, rest = pair_space(tokens).weights(bounded[:-1]).values()
        ends = (*rest[:cut], *[0.0] * (tokens - cut)), (*[0.0] * cut, *rest[cut:])
        return float(1 / (1 + np.exp(-bounded[-1] / 10))), (common, *ends)

    def floats(x: NDArray[np.float64]) -> Case:
        beta, pmfs = parts(x)
        return at_root(k, beta, *([w / sum(pmf) for w in pmf] for pmf in pmfs))

    def fractions(x: NDArray[np.float64]) -> Case:
        beta, pmfs = parts(x)
        return at_root(k, Fraction(beta), *(rational(pmf) for pmf in pmfs))

    return Space(2 * tokens + 1, floats, exactly=fractions)
