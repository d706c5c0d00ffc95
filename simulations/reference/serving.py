"""Continuous batching as engines describe it, readable and slow: a queue, running requests, step after step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simulations.draws import Stream


@dataclass
class Request:
    """A request: when it came, its prompt's tokens, the start of its text and its end among all texts, what it has."""

    arrival: float
    prompt: int
    begin: int
    end: int
    place: int = 0
    first: float = 0.0
    ended: float = 0.0

    @property
    def cached(self) -> int:
        """Tokens that are kept free for it."""
        return self.prompt + self.end - self.begin


@dataclass(frozen=True)
class Server:
    """The most requests at a time, the most cached tokens, and the seconds of a step by verified and prompt tokens."""

    seats: int
    cache: int
    seconds: Callable[[int, int], float]


def arrivals(
    prompts: Sequence[int], lengths: Sequence[int], rate: float, requests: int, stream: Stream
) -> list[Request]:
    """Requests of a Poisson process, each of a text drawn uniformly."""
    begins = [sum(lengths[:text]) for text in range(len(lengths))]
    clock, all_of_them = 0.0, []
    for _ in range(requests):
        clock += stream.exponential() / rate
        text = int(stream.uniform() * len(lengths))
        all_of_them.append(Request(clock, prompts[text], begins[text], begins[text] + lengths[text], begins[text]))
    return all_of_them


def played(
    requests: Sequence[Request],
    server: Server,
    accepts: Callable[[int, float], int],
    drafts: Sequence[int],
    stream: Stream,
) -> int:
    """Serve the requests, whose times are filled in; the number of steps.

    `accepts` says how many drafts a call from a position accepts, from one uniform.
    """
    queue, running, clock, steps = deque(requests), list[Request](), 0.0, 0
    while queue or running:
        if not running:
            clock = max(clock, queue[0].arrival)
        new = list[Request]()
        while queue and queue[0].arrival <= clock and len(running) + len(new) < server.seats:
            held = sum(each.cached for each in [*running, *new])
            if (running or new) and held + queue[0].cached > server.cache:
                break
            new.append(queue.popleft())
        verified = sum(1 + drafts[each.place] for each in running)
        for each in running:
            each.place = min(each.place + accepts(each.place, stream.uniform()) + 1, each.end)
        clock += server.seconds(verified, sum(each.prompt for each in new))
        for each in new:
            each.place, each.first = each.place + 1, clock
        running += new
        for each in running:
            each.ended = clock if each.place >= each.end else 0.0
        running = [each for each in running if each.place < each.end]
        steps += 1
    return steps
