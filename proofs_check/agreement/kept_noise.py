"""Decoding with one piece of noise for each position of the text, kept from call to call, run through in fractions.

Noise u at a position is one of D equal parts of [0, 1]; a model's token there is the one whose share of the cumulative
pmf holds u, for draft and target alike. A token drafted after a wrong prefix has used the noise of its position, and
the position uses it again in a later call: this is the case in which calls might depend on each other.
"""

from __future__ import annotations

from proofs_check.algorithms.enumeration import TextLaw, output_law
from proofs_check.library.cases import grid
from proofs_check.prelude import *
from proofs_check.twins.path_theorem import all_calls_law, product_survival


def token_at(pmf: Pmf, part: int, parts: int) -> int:
    """The token whose share of the cumulative pmf, of multiples of 1/parts, holds the part."""
    total = Fraction(0)
    for token, share in enumerate(pmf):
        total += share
        if total * parts > part:
            return token
    raise ValueError(f"part {part} of {parts} is beyond the pmf")


def kept_agreement(p: Pmf, q: Pmf, token: int, parts: int) -> Fraction:
    """P(the draft is the output | output = token) at one position."""
    own = [part for part in range(parts) if token_at(p, part, parts) == token]
    return Fraction(sum(token_at(q, part, parts) == token for part in own), len(own))


def decoded(target: Model, draft: Model, k: int, length: int, noise: Prefix, parts: int) -> tuple[Prefix, Prefix]:
    """The text and the accepted drafts of every call, all decided by the noise of the positions."""
    text: Prefix = ()
    accepted: Prefix = ()
    while len(text) < length:
        ahead = noise[len(text) :]
        drafts: Prefix = ()
        for part in ahead[:k]:
            drafts = (*drafts, token_at(draft(text + drafts), part, parts))
        count = 0
        while count < k and drafts[count] == token_at(target(text + drafts[:count]), ahead[count], parts):
            count += 1
        text += (*drafts[:count], token_at(target(text + drafts[:count]), ahead[count], parts))
        accepted = (*accepted, count)
    return text[:length], accepted


def law(target: Model, draft: Model, k: int, length: int, parts: int, *, shared: bool = False) -> TextLaw:
    """The law of text and accepted drafts over all noise; `shared`: one piece of noise for all positions."""
    places = 1 if shared else length + k
    found: TextLaw = {}
    for noise in product(range(parts), repeat=places):
        key = decoded(target, draft, k, length, noise * (length + k) if shared else noise, parts)
        found[key] = found.get(key, Fraction(0)) + Fraction(1, parts**places)
    return found


def kept(shared: bool, target: Table, draft: Table, k: int, length: int, parts: int) -> Iterator[Compared]:
    """The text is the target's; given all of it, calls are independent with the product of the agreements."""
    p, q = target.__getitem__, draft.__getitem__
    found = law(p, q, k, length, parts, shared=shared)
    texts = text_law(p, length)
    yield equal(output_law(found), texts)
    for text in texts:
        survival = product_survival(lambda a, b, token: kept_agreement(a, b, token, parts), p, q, text)
        yield equal(given_text(found, text), all_calls_law(survival, k, length))


def noisy_cases(effort: Effort) -> Iterator[Case]:
    """Random models whose shares are multiples of one part in 4 or 3."""
    rng = random.Random(f"noise {effort.seed}")
    for tokens, parts, k, length in ((2, 4, 1, 3), (2, 4, 2, 3), (3, 4, 2, 3), (2, 3, 3, 3)) * effort.pick(1, 6):
        pmfs = list(grid(tokens, parts))
        prefixes = [prefix for n in range(length + k) for prefix in product(range(tokens), repeat=n)]
        target, draft = ({prefix: rng.choice(pmfs) for prefix in prefixes} for _ in range(2))
        yield {"target": target, "draft": draft, "k": k, "length": length, "parts": parts}
