"""R4: the most that any rule can accept from k i.i.d. candidates: no rule does better, one does as well, one sort."""

from __future__ import annotations

from proofs_check.forms.divergences import overlap
from proofs_check.prelude import *
from proofs_check.theorems.candidates.rank_rules import ALL_INSIDE, BELOW_EVERY_CUT, CONVEX, rules, rules_of_two
from proofs_check.twins.list_transport import (
    by_one_sort,
    flow_on_three,
    largest_flow,
    least_cut_on_three,
    lists,
    optimum,
    prefix_minimum,
    sets,
)
from spectheory.verification import optimal_acceptance, optimal_acceptances, optimal_rejections


def on_three(*numbers: Real) -> tuple[AnyPmf, dict[str, Real]]:
    """Three capacities, then the weights of the lists by their set of tokens."""
    return numbers[:3], dict(zip(("1", "2", "3", "12", "13", "23", "123"), numbers[3:], strict=True))


def feasible(p: AnyPmf, w: Mapping[str, Real]) -> Iterator[Compared]:
    """Nothing negative, no list above its weight, no token above its capacity."""
    flow = flow_on_three(p, w)
    for amount in flow.values():
        yield at_least(amount, 0)
    for name, weight in w.items():
        yield at_most(sum(amount for edge, amount in flow.items() if edge.split(">")[0] == name), weight)
    for token, capacity in zip("123", p, strict=True):
        yield at_most(sum(amount for edge, amount in flow.items() if edge.endswith(f">{token}")), capacity)
    yield at_most(sum(flow.values()), 1)


def masses(*numbers: Real) -> list[Real]:
    """Conditions: a pmf on three tokens, and one on the sets of tokens that a list can hold."""
    return [*(number >= 0 for number in numbers), sum(numbers[:3]) == 1, sum(numbers[3:]) == 1]


ONE_RULE_DOES_AS_WELL: tuple[Step, ...] = (
    in_words(
        "f(list, x) <= P(list) summed over x, <= p_x summed over lists, of lists holding x alone, is a rule: accept x "
        "with f/P(list), else draw the output from (p - f)/(1 - F), F the whole of f. The output law is p",
        lambda p, f, F: (f + (1 - F) * (p - f) / (1 - F), p),
    ),
    valid(
        "on three tokens (one may be absent), for every law of the set of tokens a list holds, there is such an f: it "
        "is given in closed form",
        lambda p1, p2, p3, w1, w2, w3, w12, w13, w23, w123: feasible(
            *on_three(p1, p2, p3, w1, w2, w3, w12, w13, w23, w123)
        ),
        lambda p1, p2, p3, w1, w2, w3, w12, w13, w23, w123: masses(p1, p2, p3, w1, w2, w3, w12, w13, w23, w123),
    ),
    valid(
        "and it accepts 1 + min over H of [p(H) - P(lists inside H)], with P(lists inside H) = q(H)^k for every k",
        lambda p1, p2, p3, w1, w2, w3, w12, w13, w23, w123: equal(
            sum(flow_on_three(*on_three(p1, p2, p3, w1, w2, w3, w12, w13, w23, w123)).values()),
            least_cut_on_three(*on_three(p1, p2, p3, w1, w2, w3, w12, w13, w23, w123)),
        ),
        lambda p1, p2, p3, w1, w2, w3, w12, w13, w23, w123: masses(p1, p2, p3, w1, w2, w3, w12, w13, w23, w123),
    ),
    cited(
        "on any number of tokens the largest flow is the least cut: the tokens H are cut off at p(H), and then every "
        "list that holds another one at 1 - q(H)^k",
        "Ford and Fulkerson 1956",
    ),
)
"""The bound is attained."""


EXCHANGE = valid(
    "let y miss in H and x be in it, p_y/q_y <= p_x/q_x. With y put in, q(H)^k grows by at least s q_y, where "
    "s = k q(H)^(k-1); with x taken out it falls by at most s q_x: one of the two does not raise p(H) - q(H)^k. Do it "
    "with the first token that misses and the last one in H while the former comes first: fewer pairs are out of order "
    "each time, and the end is a prefix. The order is that of p/q whatever k is",
    lambda px, py, qx, qy, s, grows, falls: at_most(smaller(py - grows, falls - px), 0),
    lambda px, py, qx, qy, s, grows, falls: [
        *(v >= 0 for v in (px, py, qx, qy, s, grows, falls)),
        grows - s * qy >= 0,
        s * qx - falls >= 0,
        px * qy - py * qx >= 0,
    ],
)
"""From any set to a prefix."""


def programme(p: AnyPmf, q: AnyPmf, k: int, *, asked: int) -> Iterator[Compared]:
    """A rule, and prices that no rule can exceed; both are worth what R4 says of `asked` candidates."""
    weights = lists(q, k)
    flow = largest_flow(p, weights)
    yield at_least(min(flow.values()), 0)
    for candidates, weight in weights.items():
        yield at_most(sum(flow[candidates, x] for x in set(candidates)), weight)
    for token, share in enumerate(p):
        yield at_most(sum(amount for (_, x), amount in flow.items() if x == token), share)
    best = min(sets(len(p)), key=lambda chosen: sum(p[x] for x in chosen) - sum(q[x] for x in chosen) ** k)
    price = {candidates: int(not set(candidates) <= set(best)) for candidates in weights}
    for candidates, x in flow:
        yield at_least(price[candidates] + int(x in best), 1)
    dual = sum(weights[candidates] * cost for candidates, cost in price.items()) + sum(p[x] for x in best)
    yield equal((sum(flow.values()), dual), (optimum(p, q, asked),) * 2)


def optimal_library(p: AnyPmf, q: AnyPmf, k: int, *, more: int) -> Iterator[Compared]:
    """The library's three functions against R4 of 1 to k candidates and `more`."""
    pair = floats(p), floats(q)
    yield computed(optimal_acceptance(*pair, k), optimum(p, q, k + more))
    values = zip(optimal_acceptances(*pair, k), optimal_rejections(*pair, k), strict=True)
    for count, (accepted, rejected) in enumerate(values, 1 + more):
        yield computed(accepted, optimum(p, q, count))
        yield computed(rejected, 1 - optimum(p, q, count))


def accepted_by(q: AnyPmf, rule: Sequence[AnyPmf], *, asked: int) -> Compared:
    """A rule for two candidates, a law of the output for every list of them, against R4 of its own output law."""
    weights = lists(q, 2)
    p = [sum(w * given[x] for w, given in zip(weights.values(), rule, strict=True)) for x in range(len(q))]
    hit = sum(w * sum(given[x] for x in set(two)) for (two, w), given in zip(weights.items(), rule, strict=True))
    return at_most(hit, optimum(p, q, asked))


PREFIXES = Claim(
    "the prefixes in ascending p/q have the minimum over all sets, k = 2, 3",
    lambda p, q: (at_most(by_one_sort(p, q, k), optimum(p, q, k)) for k in (2, 3)),
)

BY_ANOTHER_KEY = Claim(
    "the prefixes in ascending q have it",
    lambda p, q: (
        at_most(prefix_minimum(p, q, k, sorted(range(len(q)), key=lambda x: q[x])), optimum(p, q, k)) for k in (2, 3)
    ),
)

R4 = Entry(
    id="R4",
    title="The most that k i.i.d. candidates can give",
    kind="optimality",
    plain="the largest acceptance of any rule that draws k candidates i.i.d. from q and outputs exactly p is "
    "1 + min over sets H of [p(H) - q(H)^k]; the minimum is on a prefix in ascending order of p/q, q = 0 last",
    latex=r"\alpha^*_k = 1 + \min_H\,[\,p(H) - q(H)^k\,],\quad H \text{ a prefix in ascending } p/q",
    source=("khisti2025", "hu2025"),
    assumptions=("candidates are i.i.d. from the draft", "the output has exactly the target's law"),
    calculators=public("verification", "optimal_acceptance optimal_acceptances optimal_rejections"),
    evidence=(
        proof("no rule accepts more, whatever it does, for any k and number of tokens", (BELOW_EVERY_CUT, ALL_INSIDE)),
        proof(
            "one rule accepts as much, for any k: in closed form on up to three tokens, by a cited theorem on more",
            ONE_RULE_DOES_AS_WELL,
        ),
        proof("one sort serves every k: an exchange argument", (CONVEX, EXCHANGE)),
        solved(
            Claim("one candidate gives 1 - TV", lambda p, q: equal(optimum(p, q, 1), overlap(p, q))),
            (2, 3),
            wrong=Claim("two candidates give 1 - TV", lambda p, q: equal(optimum(p, q, 2), overlap(p, q))),
        ),
        exact(
            Claim(
                "a rule and dual prices solve the transport programme at R4's value",
                lambda p, q, k: programme(p, q, k, asked=k),
            ),
            lambda effort: with_each(cases.all_pairs(3, effort.pick(4, 6)), k=(2, 3)),
            over="k = 2, 3, every pair on 2 and 3 tokens of denominator up to 4",
            wrong=Claim("at that of one candidate more", lambda p, q, k: programme(p, q, k, asked=k + 1)),
        ),
        exact(
            PREFIXES,
            lambda effort: cases.random_pairs(effort.seed, effort.pick(150, 3000), 6),
            over="random pairs on up to 6 tokens",
            wrong=BY_ANOTHER_KEY,
        ),
        agreement(
            Claim(
                "the library's values for each number of candidates", lambda p, q, k: optimal_library(p, q, k, more=0)
            ),
            lambda effort: with_each(cases.random_pairs(effort.seed, effort.pick(60, 600), 5, 30), k=(1, 2, 5)),
            over="random pairs on up to 5 tokens, k = 1 to 5",
            wrong=Claim("are those of one more", lambda p, q, k: optimal_library(p, q, k, more=1)),
        ),
        searched(
            Claim("no rule for two candidates accepts more", lambda q, rule: accepted_by(q, rule, asked=2)),
            lambda: st.one_of(rules(2), rules(3)),
            over="any law of the output for every list, on 2 and 3 tokens",
            spaces=(rules_of_two(),),
            wrong=Claim("than the best with one", lambda q, rule: accepted_by(q, rule, asked=1)),
        ),
        searched(PREFIXES, lambda: exact_pairs(6), over="2 to 6 tokens", spaces=(pair_space(3),), wrong=BY_ANOTHER_KEY),
    ),
)
