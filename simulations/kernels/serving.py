"""A server that decodes requests together, step by step (§15): one call of every running request in each step.

A call that starts at position n of its text verifies ``drafts[n]`` drafts and accepts i or more with probability
``survival[n, i - 1]``, all with one uniform. Requests are texts, drawn uniformly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulations.draws import Counts, Floats, Words, exponential, uniform
from spectheory.kernels.compiling import compiled


class Texts(NamedTuple):
    """What calls do along texts: `survival` ``[N, K]`` and `drafts` ``[N]`` by their start, and the texts' tokens.

    A text's first token is that of its prompt's pass. Where fewer tokens are left than a call outputs, the rest is cut.
    """

    survival: Floats
    drafts: Counts
    lengths: Counts


class Service(NamedTuple):
    """A server: seconds of a step by the tokens that it verifies, and what limits it.

    - ``seconds``: ``[m + 1]``, of a step that verifies 0, 1, ..., m tokens, drafting included.
    - ``prefill``: seconds that a prompt's token adds to the step that reads it.
    - ``seats``: most requests at a time; ``cache``: most tokens of all their prompts and texts together.
    """

    seconds: Floats
    prefill: float
    seats: int
    cache: int


class Served(NamedTuple):
    """Seconds since the start at which each request ``[n]`` arrived, had its first token, and ended; and totals.

    `steps` is the number of steps, `busy` their seconds, `verified` the tokens that they verified, `read` those of
    texts that they gave.
    """

    arrived: Floats
    first: Floats
    ended: Floats
    steps: int
    busy: float
    verified: int
    read: int


def serve(texts: Texts, prompts: Counts, service: Service, *, rate: float, requests: int, state: Words) -> Served:
    """Requests of one rate per second, Poisson, decoded by continuous batching, until all have ended.

    `prompts` ``[texts]`` are tokens of prompts. A request starts as soon as a seat is free and the cache has room for
    its prompt and text, first come first served. Its prompt is read in one step, whose others decode, and which gives
    its first token. A rate of ``inf`` lets all arrive at once.
    """
    times, totals = np.zeros((3, requests)), np.zeros(4)
    survival, drafts, lengths = texts
    seconds, prefill, seats, cache = service
    _serve(survival, drafts, lengths, prompts, seconds, prefill, seats, cache, rate, times, totals, state)
    arrived, first, ended = times
    return Served(arrived, first, ended, int(totals[0]), float(totals[1]), int(totals[2]), int(totals[3]))


def sampled_steps(texts: Texts, batch: int, trials: int, state: Words) -> tuple[Counts, Counts]:
    """Tokens and drafts of independent steps of `batch` requests in the long run, ``[trials]`` each.

    The call that a step finds of a request is every call alike: a text is drawn, and taken with a probability in
    proportion to its calls, then one of them is drawn.
    """
    tokens, drafts = np.zeros(trials, np.int64), np.zeros(trials, np.int64)
    _sampled_steps(*texts, batch, tokens, drafts, state)
    return tokens, drafts


@compiled
def _call(survival: Floats, drafts: Counts, n: int, left: int, state: Words) -> int:
    """Tokens that a call outputs."""
    u, accepted = uniform(state), 0
    while accepted < drafts[n] and accepted + 1 < left and survival[n, accepted] > u:
        accepted += 1
    return accepted + 1


@compiled
def _sampled_steps(
    survival: Floats, drafts: Counts, lengths: Counts, batch: int, tokens: Counts, verified: Counts, state: Words
) -> None:
    ends, longest = np.cumsum(lengths), lengths.max()
    starts, gives = np.zeros(longest, np.int64), np.zeros(longest, np.int64)
    for trial in range(tokens.size):
        found = 0
        while found < batch:
            text = int(uniform(state) * lengths.size)
            n, calls = ends[text] - lengths[text] + 1, 0
            while n < ends[text]:
                starts[calls], gives[calls] = n, _call(survival, drafts, n, ends[text] - n, state)
                n += gives[calls]
                calls += 1
            if uniform(state) * longest < calls:
                one = int(uniform(state) * calls)
                tokens[trial] += gives[one]
                verified[trial] += drafts[starts[one]]
                found += 1


@compiled
def _serve(
    survival: Floats,
    drafts: Counts,
    lengths: Counts,
    prompts: Counts,
    seconds: Floats,
    prefill: float,
    seats: int,
    cache: int,
    rate: float,
    times: Floats,
    totals: Floats,
    state: Words,
) -> None:
    requests, ends = times.shape[1], np.cumsum(lengths)
    text = np.zeros(requests, np.int64)
    clock = 0.0
    for request in range(requests):
        clock += exponential(state) / rate
        times[0, request] = clock
        text[request] = int(uniform(state) * lengths.size)
    seats = min(seats, requests)
    running, place = np.zeros(seats, np.int64), np.zeros(seats, np.int64)
    active, waiting, held, done, clock = 0, 0, 0, 0, 0.0
    while done < requests:
        if active == 0 and times[0, waiting] > clock:
            clock = times[0, waiting]
        prompt, old = 0, active
        while waiting < requests and active < seats and times[0, waiting] <= clock:
            needs = prompts[text[waiting]] + lengths[text[waiting]]
            if held + needs > cache and active > 0:
                break
            running[active], place[active] = waiting, ends[text[waiting]] - lengths[text[waiting]]
            held += needs
            prompt += prompts[text[waiting]]
            active += 1
            waiting += 1
        verified = old
        for seat in range(active):
            end = ends[text[running[seat]]]
            if seat < old:
                verified += drafts[place[seat]]
                given = _call(survival, drafts, place[seat], end - place[seat], state)
                totals[3] += given
                place[seat] += given
            else:
                place[seat] += 1
        clock += seconds[verified] + prefill * prompt
        totals[0] += 1
        totals[1] += seconds[verified] + prefill * prompt
        totals[2] += verified
        for seat in range(old, active):
            times[1, running[seat]] = clock
        kept = 0
        for seat in range(active):
            request = running[seat]
            if place[seat] >= ends[text[request]]:
                times[2, request] = clock
                held -= prompts[text[request]] + lengths[text[request]]
                done += 1
            else:
                running[kept], place[kept] = request, place[seat]
                kept += 1
        active = kept
