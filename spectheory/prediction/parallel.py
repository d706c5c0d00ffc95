"""C5 along a text: the draft never waits, and targets verify its drafts in blocks, as many at a time as there are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import amount, whole
from spectheory.distributions import Floats

MOST_LOOKAHEAD = 4096


def parallel_seconds(
    accepted: Floats,
    lengths: NDArray[np.int64],
    t_target: float,
    t_draft: float,
    *,
    lookahead: int = 1,
    link: float = 0.0,
) -> Floats:
    r"""Expected seconds of each text with speculation parallelism, ``[texts]`` (C5/text, ``timor2025``; exact).

    `accepted` ``[N]`` is the probability that the draft of each token of the text is right, given the text, independent
    from token to token. The draft goes on without a pause; each `lookahead` :math:`\ell` drafts a target begins a pass
    of `t_target` on them. After :math:`\tau` right drafts since the last wrong one, the wrong one is found, and the
    right token known,

    .. math:: \lceil \tau/\ell \rceil\, \ell\, t_\text{draft} + t_\text{target} + 2\,\text{link}\,[\tau > 0]

    after the last wrong one was. The last token of a text is a target's. No pass waits if there are
    :math:`t_\text{target}/(\ell\, t_\text{draft})` targets or more. With a lookahead of 1 and a free link the mean
    acceptance of the text alone matters, however acceptances cluster; with a longer one the runs do.

    Examples
    --------
    >>> from spectheory.cost import parallel_time
    >>> alike = parallel_seconds(np.full(11, 0.5), np.array([11]), 1.0, 0.2)
    >>> round(float(alike[0]), 6), parallel_time(11, 0.5, 1.0, 0.2)
    (7.0, 7.0)
    """
    times = [
        amount(name, value, positive=name != "link", remedy="give seconds")
        for name, value in (("t_target", t_target), ("t_draft", t_draft), ("link", link))
    ]
    whole("lookahead", lookahead, most=MOST_LOOKAHEAD, remedy="drafts of a target's pass")
    t_target, block, trip = times[0], lookahead * times[1], 2 * times[2]
    firsts = np.cumsum(lengths) - lengths
    seconds, run = np.where(lengths > 0, t_target, 0.0), np.zeros((len(lengths), lookahead + 1))
    run[:, 0] = 1.0  # by right drafts since the last wrong one: none, then 1..lookahead of the block under way
    for place in range(int(lengths.max(initial=1)) - 1):
        going = np.flatnonzero(lengths > place + 1)
        right, before = accepted[firsts[going] + place], run[going]
        begun = before[:, 0] + before[:, -1]
        seconds[going] += right * (begun * block + before[:, 0] * trip) + (1 - right) * t_target
        after = np.zeros_like(before)
        after[:, 2:] = right[:, None] * before[:, 1:-1]
        after[:, 1] += right * begun
        after[:, 0] = 1 - right
        run[going] = after
    return seconds
