"""B7: block verification needs the fewest expected calls of any lossless rule, over a whole decoding."""

from __future__ import annotations

from proofs_check.agreement.block_cases import LONG, SMALL, ending, whole
from proofs_check.agreement.block_limits import decoded, library, optimal
from proofs_check.agreement.block_steps import (
    FRESH,
    attained,
    decomposed,
    every_step,
    falling,
    no_more,
    renewed,
    shifted,
)
from proofs_check.prelude import *
from proofs_check.proofs.block_proofs import REGRET, THEOREM
from proofs_check.twins.block_values import block_masses, token_masses
from simulations.counts.quantities import Mean
from simulations.verdicts.predictions import Predicted
from spectheory.verification import BlockVerification, TokenVerification

ONE = Fraction(1)
MODELS = (
    "random models of any order without stationarity, zeros included; texts of 2 to 5 tokens, or up to an end token"
)

# Simulation: the library's other lossless rules on yin2024's chains, against block verification's calls by recursion

CHAINS = {"chains": "yin2024", "length": 20, "k": 3}

TREES = {"chains": "yin2024", "length": 6, "paths": [[1], [1, 1]]}
"""Chains of two drafts, for simulators of any rule."""


def no_fewer(more: int, _: str, given: Parameters) -> Iterator[Predicted]:
    """Calls are no fewer than block verification's with so many drafts more."""
    from simulations.predicted.decoding import calls_of  # needs numba

    k = given.get("k") or len(given["paths"])
    least = calls_of("block", {"chains": "yin2024", "length": given["length"], "k": k + more}).expected
    yield Predicted("calls per text", "B7", Mean("calls", 1, given["length"]), least, "lower bound")


FEWER = ("no fewer than with one draft less", partial(no_fewer, -1))

ASSUMPTIONS = (
    "every call is lossless and fresh: given all that was before it, and whatever it did, the text from its start on "
    "is the target's",
    "a call draws one chain of at most k drafts from the draft's pmfs, which depend on the text alone, not on where "
    "the call starts; what the call does with them may depend on all earlier calls and on coins",
    "the text ends at a length, or at the first token of some kind, or both: texts that have ended stay so",
)


def decodings(sizes: Any = SMALL, rounds: int = 3) -> Any:
    """Edges and random models."""
    return ending(sizes, rounds)


ENTRIES = (
    Entry(
        id="B7",
        title="Block verification is optimal over a whole decoding",
        kind="optimality",
        plain="block verification minimises the expected number of calls of the whole decoding over all lossless fresh "
        "policies on chains drawn from the draft. With V(w) its expected calls left after the text w, D(w) = V(w) - "
        "E_z~p V(wz), s_i(x) = P(tau >= i, the drafts begin with x) of any such call and mu_i(x) = min over j of "
        "Q(x_1..x_j) P(x_(j+1)..x_i): (i) s_i <= mu_i, with equality for block verification; (ii) one call with s and "
        "block verification afterwards cost 1 + E V(wX_1) - sum_(i>=1) s_i(x) D(wx), so sum_(i>=0) mu_i(x) D(wx) = 1 "
        "where the text goes on; (iii) mu_i^w(zx) <= q(z|w) mu_(i-1)^(wz)(x); (iv) 0 <= D <= 1. So larger masses never "
        "cost",
        latex=r"\mu_i(x) = \min_{0\le j\le i} Q(x_{1..j})\,P(x_{j+1..i}),\qquad "
        r"\sum_{i=0}^{k}\sum_{|x|=i}\mu_i(x)\,D(wx) = 1,\qquad 0 \le D \le 1,\qquad "
        r"\min_{\text{policies}} E[\text{calls}] = V(\varnothing)",
        assumptions=ASSUMPTIONS,
        evidence=(
            proof("masses, the cost of a call, the renewal identity, the induction, every policy", THEOREM),
            exact(
                Claim(
                    "(i) calls of token, block, race, poisson, recursive and match rules, run through, stop with "
                    "p s_i - s_(i+1) and have s_i <= mu_i",
                    partial(no_more, block_masses, FRESH),
                ),
                decodings(rounds=1),
                over=MODELS,
                wrong=Claim("s_i is at most token verification's", partial(no_more, token_masses, FRESH)),
            ),
            exact(
                Claim(
                    "(i) block verification, run through, has s = mu, by the recursion and by the minimum over j",
                    partial(attained, block_masses),
                ),
                decodings(),
                over=MODELS,
                wrong=Claim("it has token verification's masses", partial(attained, token_masses)),
            ),
            exact(
                Claim(
                    "(ii) one call of each rule and block verification afterwards cost 1 + E V - sum s D, and V + "
                    "sum (mu - s) D",
                    partial(decomposed, 0, FRESH),
                ),
                decodings(rounds=1),
                over=MODELS,
                wrong=Claim("without the first draft's masses", partial(decomposed, 1, FRESH)),
            ),
            exact(
                Claim(
                    "(ii) the sum of mu D is 1 where the text goes on and D = 0 where it has ended",
                    partial(renewed, block_masses),
                ),
                decodings(LONG),
                over=MODELS,
                wrong=Claim("so is that of token verification's masses", partial(renewed, token_masses)),
            ),
            exact(
                Claim("(iii) mu_i^w(zx) <= q(z|w) mu_(i-1)^(wz)(x) at every text and run", partial(shifted, True)),
                decodings(),
                over=MODELS,
                wrong=Claim("with p(z|w) in place of q(z|w)", partial(shifted, False)),
            ),
            exact(
                Claim("(iv) 0 <= D <= 1 at every text", partial(falling, block_masses, ONE)),
                decodings(LONG),
                over=MODELS,
                wrong=Claim("D <= 3/4", partial(falling, block_masses, Fraction(3, 4))),
            ),
            exact(
                Claim(
                    "the optimum of a linear programme over all policies (joint probabilities of starts, drafts, "
                    "accepted drafts and outputs, in one programme for the whole decoding; up to three tokens "
                    "also with a memory of all earlier calls) is V to 1e-8",
                    partial(optimal, block_masses),
                ),
                decodings(LONG, 4),
                over=MODELS,
                wrong=Claim("it is token verification's", partial(optimal, token_masses)),
            ),
            searched(
                Claim("renewal, (iii) and (iv) at every text", partial(every_step, block_masses)),
                lambda: exact_pairs(2),
                over="models that turn a pair of pmfs on two tokens, weights from 0 to 1e30; texts of three tokens, "
                "two drafts",
                wrong=Claim("the sum of mu D is 1 with the D of token verification", partial(every_step, token_masses)),
            ),
            agreement(
                Claim(
                    "the library's expected calls of block verification, in the mean over the target's texts, are V",
                    partial(library, BlockVerification()),
                ),
                whole,
                over="traces of all texts of random models",
                wrong=Claim("token verification's are", partial(library, TokenVerification())),
            ),
            simulated(
                "no fewer calls than block verification's by recursion: block and token verification, three drafts",
                [("block", CHAINS), ("token", CHAINS)],
                partial(no_fewer, 0),
                wrong=FEWER,
            ),
            simulated(
                "nor do races and recursive rejection with two drafts",
                [("decode", {**TREES, "rule": rule}) for rule in ("race", "recursive")],
                partial(no_fewer, 0),
                wrong=FEWER,
                trials=(4_000, 40_000),
            ),
        ),
        calculators=("spectheory.verification.BlockVerification", "spectheory.prediction.paths.calls_of_texts"),
    ),
    Entry(
        id="B7/regret",
        title="What another rule loses to block verification, exactly",
        kind="identity",
        plain="the expected calls of any lossless fresh policy are V + E sum over its calls of sum_i sum_x (mu_i - "
        "s_i)(x) D(wx), w the text before the call, s its masses there",
        latex=r"E[\text{calls}] = V(\varnothing) + E\sum_{\text{calls } w}\sum_{i=1}^{k}\sum_{|x|=i}"
        r"(\mu_i - s_i)(x)\,D(wx)",
        assumptions=ASSUMPTIONS,
        evidence=(
            proof("one call, then the losses of all calls", REGRET),
            exact(
                Claim(
                    "whole decodings of token, race, poisson, recursive and match rules: calls = V + the losses of all "
                    "calls, and at least V",
                    partial(decoded, FRESH, 1),
                ),
                whole,
                over="random models, texts of 2 and 3 tokens, calls counted on every run of drafts and coins",
                wrong=Claim("V minus the losses", partial(decoded, FRESH, -1)),
            ),
        ),
        without={
            "certified": "no logarithm enters",
            "search": "an identity: the cases are enumerated in fractions",
            "simulation": "the rules' calls are simulated under §7",
        },
    ),
)
"""The theorem and its regret."""
