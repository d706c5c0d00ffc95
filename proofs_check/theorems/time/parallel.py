"""C5: speculation parallelism, where targets verify while the draft goes on; every pass played out."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.theorems.time.closed_forms import speedup
from spectheory.cost import parallel_replicas, parallel_speedup, parallel_time


def expected(tokens: int, alpha: Real, t_target: Real, t_draft: Real) -> Real:
    """Expected seconds for so many tokens."""
    return t_target + (tokens - 1) * (alpha * t_draft + (1 - alpha) * t_target)


def needed(t_target: Real, t_draft: Real) -> int:
    """The least whole number of targets with targets * t_draft >= t_target."""
    return int(-(-t_target // t_draft))


def last_known(right: Sequence[bool], t_target: Real, t_draft: Real, replicas: int) -> Real:
    """When the last of len(right) + 1 tokens is known; right[i]: whether the draft of token i is.

    Every prefix, once it is drafted, asks for a target pass, first come first served. A right draft gives the next
    prefix t_draft after the last; a wrong one is found out at the end of its prefix's pass, when the token is known
    and every pass on the wrong branch stops.
    """
    free_at, prefix_at, known = [0 * t_target] * replicas, 0 * t_target, 0 * t_target
    for good in (*right, False):
        free_at.sort()
        known = max(prefix_at, free_at[0]) + t_target
        free_at[0] = known
        prefix_at = prefix_at + t_draft if good else known
        if not good:
            free_at = [min(at, known) for at in free_at]
    return known


def played_out(tokens: int, alpha: Fraction, t_target: Fraction, t_draft: Fraction, replicas: int) -> Fraction:
    """The mean over all patterns of right and wrong drafts."""
    patterns = product((True, False), repeat=tokens - 1)
    chances = ((each, math.prod([alpha if good else 1 - alpha for good in each])) for each in patterns)
    return total(chance * last_known(right, t_target, t_draft, replicas) for right, chance in chances)


def with_replicas(fewer: int, tokens: int, alpha: Fraction, t_target: Fraction, t_draft: Fraction) -> Compared:
    """Played out with the targets needed but for some."""
    replicas = max(1, needed(t_target, t_draft) - fewer)
    return equal(played_out(tokens, alpha, t_target, t_draft, replicas), expected(tokens, alpha, t_target, t_draft))


def library_time(tokens: int, alpha: Fraction, t_target: Fraction, t_draft: Fraction) -> Iterator[Compared]:
    """The library's time, speed-up and number of targets."""
    arguments = tokens, float(alpha), float(t_target), float(t_draft)
    mean = expected(tokens, alpha, t_target, t_draft)
    yield computed(parallel_time(*arguments), mean)
    yield computed(parallel_speedup(*arguments), tokens * t_target / mean)
    yield equal(parallel_replicas(float(t_target), float(t_draft)), needed(t_target, t_draft))


def inequalities(tokens: int, alpha: Real, t_target: Real, t_draft: Real) -> Iterator[Compared]:
    """Never slower than plain decoding, nor per token than a chain of up to 6 drafts."""
    mean = expected(tokens, alpha, t_target, t_draft)
    yield at_most(mean, tokens * t_target)
    for k in range(1, 7):
        yield at_most((mean - t_target) * speedup(alpha, k, t_draft / t_target), (tokens - 1) * t_target)


def settings(effort: Effort) -> Iterator[Case]:
    """Up to 7 tokens, alpha in quarters, five pairs of times."""
    times = ((1, 1), (4, 2), (10, 3), (7, 1), (5, 4))
    for tokens, i, (t_target, t_draft) in product(range(1, effort.pick(7, 11) + 1), range(5), times):
        yield {"tokens": tokens, "alpha": Fraction(i, 4), "t_target": Fraction(t_target), "t_draft": Fraction(t_draft)}


def any_setting() -> Any:
    """Any rate and times, up to 50 tokens."""
    size = st.integers(1, 1000)
    share = size.flatmap(lambda n: st.integers(0, n).map(lambda i: Fraction(i, n)))
    time = st.tuples(size, size).map(lambda size_pair: Fraction(*size_pair))
    return st.fixed_dictionaries({"tokens": st.integers(1, 50), "alpha": share, "t_target": time, "t_draft": time})


def setting_space() -> Space:
    """Nine tokens, every rate and any two times of which the draft's is the shorter."""

    def floats(x: NDArray[np.float64]) -> dict[str, Any]:
        alpha, ratio = (float(value) for value in 1 / (1 + np.exp(-np.clip(x[:2], -30, 30))))
        return {"tokens": 9, "alpha": alpha, "t_target": 1.0, "t_draft": ratio}

    return Space(2, floats)


FASTER_DRAFT = Assumption(
    "the draft is no slower than the target", lambda tokens, alpha, t_target, t_draft: t_draft <= t_target
)

STEPS: tuple[Step, ...] = (
    same(
        "the last token is the target's and takes t; each before it adds d if its draft is right, else t, in the mean "
        "x = alpha d + (1 - alpha) t: t + (n-1)x and x more are t + nx",
        lambda t, n, x: (t + (n - 1) * x + x, t + n * x),
    ),
    valid(
        "passes on one branch start d apart, so the one r places earlier began r d before and is done if r d >= t: "
        "with r targets, r a whole number >= t/d, none waits",
        lambda start, r, t, d: at_most(start + t, start + r * d),
        lambda start, r, t, d: [d > 0, r >= t / d],
    ),
    valid(
        "with d <= t it is never slower than n plain steps",
        lambda t, d, alpha, n: at_most(t + (n - 1) * (alpha * d + (1 - alpha) * t), n * t),
        lambda t, d, alpha, n: [*shares(alpha), d > 0, d <= t, n >= 1],
    ),
    valid(
        "u = alpha + ... + alpha^k <= k, by induction: the next power is at most 1",
        lambda u, a, k: at_most(u + a, k + 1),
        lambda u, a, k: [*shares(a), u <= k],
    ),
    in_words(
        "with b = alpha^(k+1): alpha tau(k) = u + b of tau(k) = 1 + u, and (1 - alpha) tau(k) = 1 - b; so per token "
        "tau(k)(alpha c + 1 - alpha) = c(u + b) + 1 - b, c = d/t",
        lambda u, b, alpha, c: (c * (u + b) + (1 + u - (u + b)), c * (u + b) + 1 - b),
    ),
    valid(
        "which is at most kc + 1 if c <= 1: no chain (C1) is faster per token",
        lambda u, b, c, k: at_most(c * (u + b) + 1 - b, k * c + 1),
        lambda u, b, c, k: [*shares(b, c), u >= 0, u <= k],
    ),
)
"""Expected time, the targets it needs, and that it is never slower."""

NEVER_SLOWER = Claim(
    "never slower than plain decoding, nor per token than a chain of up to 6 drafts", inequalities, (FASTER_DRAFT,)
)

C5 = Entry(
    id="C5",
    title="Speculation parallelism is never slower",
    kind="identity",
    plain="with lookahead 1, t_draft <= t_target, at least t_target/t_draft targets and free communication, the "
    "expected seconds for N tokens are t_target + (N-1)(alpha t_draft + (1-alpha) t_target), at most N t_target",
    latex=r"\mathbb E[T_N]=t_{target}+(N-1)\big(\alpha\,t_{draft}+(1-\alpha)\,t_{target}\big)\le N\,t_{target}",
    source=("timor2025",),
    assumptions=(
        "acceptances are independent, each of probability alpha",
        "passes take constant times, t_draft <= t_target",
        "at least t_target/t_draft targets, a whole number of them; communication is free",
    ),
    calculators=public("cost", "parallel_replicas parallel_speedup parallel_time"),
    evidence=(
        proof("expected time by recursion, and its comparison with plain decoding and chains", STEPS),
        exact(
            Claim(
                "the mean over all patterns of right and wrong drafts, every pass played out",
                lambda **case: with_replicas(0, **case),
            ),
            settings,
            wrong=Claim("one target fewer takes no longer", lambda **case: with_replicas(1, **case)),
        ),
        agreement(
            Claim("the library's time, speed-up and number of targets", library_time),
            settings,
            wrong=Claim(
                "every token is led on by the draft or the target, the last one too",
                lambda tokens, alpha, t_target, t_draft: computed(
                    parallel_time(tokens, float(alpha), float(t_target), float(t_draft)),
                    tokens * (alpha * t_draft + (1 - alpha) * t_target),
                ),
            ),
        ),
        searched(
            NEVER_SLOWER,
            any_setting,
            spaces=(setting_space(),),
            wrong=Claim("never slower, however slow the draft", inequalities),
        ),
    ),
)
