"""Hold published acceptance lengths and speeds beside predictions: docs/published.md, README.md and a figure.

The numbers stand in `published.json`, each source with its repository, file, commit and licence. SpecDecode-Bench has
no licence, so its lists are not kept: `published.py --specdecode-bench FOLDER` computes their tokens per call from a
copy of github.com/SpecDecode-Bench/simulator and writes these means alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any

import _blocks
from _blocks import grid

from spectheory.cost import iid_tokens_per_call, required_acceptance
from spectheory.plots.style import BLUE, GREY, ORANGE, Figure, plain_axes, save_figure, titled
from spectheory.prediction.step_hazards import tokens_from_means

ROOT = Path(__file__).parents[1]
FACTS, FIGURE = ROOT / "benchmarks" / "published.json", ROOT / "docs" / "figures" / "published"
PAGES = (ROOT / "docs" / "published.md", ROOT / "docs" / "index.md", ROOT / "README.md")
SIZE = (9.0, 4.0)
SPECDECODE_BENCH = "specdecode_bench"
SHORT = {
    "inferencex": "InferenceX",
    "inferencex_later": "InferenceX, later",
    "specbundle": "SpecBundle",
    "vllm": "vLLM's test",
    SPECDECODE_BENCH: "SpecDecode-Bench",
}
Means = Mapping[int, float]
Facts = dict[str, Any]


@cache
def facts() -> Facts:
    """What was published, by source."""
    loaded: Facts = json.loads(FACTS.read_text())
    return loaded


@dataclass(frozen=True)
class Curve:
    """Published tokens per call by k."""

    name: str
    means: Means


def curves(of: Facts, source: str) -> list[Curve]:
    """The published means of a source."""
    given = of[source]
    if source == "specbundle":
        ks = [int(name.removeprefix("k = ")) for name in given["columns"][3:]]
        return [Curve(" / ".join(row[:3]), dict(zip(ks, row[3:], strict=True))) for row in given["rows"]]
    if source == "vllm":
        return [Curve(row[0], {k: 1 + sum(row[3][:k]) for k in (1, 2, 3)}) for row in given["rows"]]
    return [Curve(each["name"], {int(k): v for k, v in each["tokens_per_call"].items()}) for each in given["curves"]]


def independent(means: Means, k: int) -> float:
    """What web calculators say: acceptances are independent, of the chance that gives the mean at the longest k."""
    longest = max(means)
    return iid_tokens_per_call(required_acceptance(min(means[longest], longest + 1.0), longest, 0.0), k)


@dataclass(frozen=True)
class Held:
    """Means at some k of a source, read at others: relative misses of the reading and of independent acceptances."""

    source: str
    given: tuple[int, ...]
    asked: tuple[int, ...]
    values: int
    misses: tuple[float, ...]
    of_last: tuple[float, ...]
    of_first: tuple[float, ...]
    inside: int


ASKED: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = (
    *(
        (source, given, asked)
        for source in ("inferencex", "inferencex_later", SPECDECODE_BENCH)
        for given, asked in (
            ((1, 2, 3), (8,)),
            ((1, 2, 3), (4, 5, 6, 7, 8)),
            ((1, 4), (2, 3, 5, 6, 7, 8)),
            ((1, 8), (2, 3, 4, 5, 6, 7)),
        )
    ),
    ("specbundle", (3, 5), (7,)),
    ("specbundle", (3, 7), (5,)),
    ("vllm", (1, 2), (3,)),
)


def held(of: Facts, source: str, given: tuple[int, ...], asked: tuple[int, ...]) -> Held:
    """Means of a source, or of several joined by +, at the k given, read at those asked."""
    pairs = [(curve.means, k) for each in source.split("+") for curve in curves(of, each) for k in asked]
    some = [{at: means[at] for at in given} for means, _ in pairs]
    read = [tokens_from_means(known, k) for known, (_, k) in zip(some, pairs, strict=True)]
    true = [means[k] for means, k in pairs]

    def missed(values: Iterable[float]) -> tuple[float, ...]:
        return tuple(value / right - 1 for value, right in zip(values, true, strict=True))

    return Held(
        source,
        given,
        asked,
        len(pairs),
        missed(each.best for each in read),
        missed(independent(known, k) for known, (_, k) in zip(some, pairs, strict=True)),
        missed(independent({given[0]: known[given[0]]}, k) for known, (_, k) in zip(some, pairs, strict=True)),
        sum(each.low - _ROUNDED <= right <= each.high + _ROUNDED for each, right in zip(read, true, strict=True)),
    )


_ROUNDED = 0.005
"""Half a unit of the last digit that InferenceX publishes."""


def falling(of: Facts) -> Iterator[tuple[str, Curve, int, int, float]]:
    """Source, curve, both k and difference of each mean that is lower than that of the k before."""
    for source in ("inferencex", "inferencex_later", SPECDECODE_BENCH, "specbundle"):
        for curve in curves(of, source):
            for (k, tokens), (longer, then) in pairwise(sorted(curve.means.items())):
                if then < tokens:
                    yield source, curve, k, longer, then - tokens


def roughness(of: Facts) -> float:
    """Standard deviation of a published mean around a smooth curve: that of third differences, over the root of 20.

    An upper estimate of a run's noise, as a smooth curve has third differences too.
    """
    squares = []
    for curve in curves(of, "inferencex"):
        values = [curve.means[k] for k in sorted(curve.means)]
        for _ in range(3):
            values = [b - a for a, b in pairwise(values)]
        squares += [value**2 for value in values]
    return sqrt(sum(squares) / len(squares) / 20)


# Speeds


@dataclass(frozen=True)
class Sweep:
    """Published speeds of a card by n drafts: step times from those of the shortest and longest n on a line."""

    card: str
    ns: tuple[int, ...]
    speeds: tuple[float, ...]
    tokens: tuple[float, ...]
    predicted: tuple[float, ...]
    from_ends: tuple[float, ...]

    @property
    def inner(self) -> tuple[float, ...]:
        """Relative misses of the speeds between both ends."""
        return tuple(p / s - 1 for p, s in list(zip(self.predicted, self.speeds, strict=True))[1:-1])

    def choice(self, speeds: Sequence[float]) -> tuple[int, float]:
        """The n that predicted speeds would choose, and the share of the best published speed that it loses."""
        picked = max(range(len(speeds)), key=lambda i: speeds[i])
        return self.ns[picked], 1 - self.speeds[picked] / max(self.speeds)

    @property
    def best(self) -> int:
        """The n with the largest published speed."""
        return self.ns[max(range(len(self.ns)), key=lambda i: self.speeds[i])]


def sweeps(of: Facts) -> list[Sweep]:
    """Speeds by n: tokens per call over a step time, of published lengths, and of lengths read from both ends too."""
    made = []
    for given in of["qwen38_mtp"]["sweeps"]:
        ns, speeds = given["n"], given["tokens_per_second"]
        tokens = [1 + n * share for n, share in zip(ns, given["accepted"], strict=True)]
        steps = [length / speed for length, speed in zip(tokens, speeds, strict=True)]
        slope = (steps[-1] - steps[0]) / (ns[-1] - ns[0])
        ends = {ns[0]: tokens[0], ns[-1]: tokens[-1]}
        read = [tokens_from_means(ends, n).best for n in ns]
        rates = (
            tuple(length / (steps[0] + slope * (n - ns[0])) for n, length in zip(ns, lengths, strict=True))
            for lengths in (tokens, read)
        )
        made.append(Sweep(given["card"], tuple(ns), tuple(speeds), tuple(tokens), *rates))
    return made


# The page


def percent(share: float) -> str:
    """A miss or loss in percent."""
    return f"{100 * share:.1f}%" if share >= 0.01 else f"{100 * share:.2f}%"


def _miss(misses: Sequence[float]) -> str:
    """Median and largest."""
    sizes = [abs(each) for each in misses]
    return f"{percent(median(sizes))}, {percent(max(sizes))}"


def headline(of: Facts) -> str:
    """What to say in a sentence."""
    row = held(of, "inferencex+inferencex_later", (1, 2, 3), (8,))
    sizes, rivals = ([abs(each) for each in misses] for misses in (row.misses, row.of_first))
    return (
        f"From k = 1, 2 and 3 of {row.values} published curves, tokens per call at k = 8 are predicted within "
        f"{percent(median(sizes))} in the median and {percent(max(sizes))} at worst; the i.i.d. formula of web "
        f"calculators, from k = 1, misses by {percent(median(rivals))} and {percent(max(rivals))}."
    )


def _lengths(of: Facts) -> str:
    rows = (
        [
            SHORT[row.source],
            row.values,
            ", ".join(map(str, row.given)),
            str(row.asked[0]) if len(row.asked) == 1 else f"{', '.join(map(str, row.asked))}",
            _miss(row.misses),
            _miss(row.of_last),
            _miss(row.of_first),
            f"{row.inside} of {row.values}",
        ]
        for row in (held(of, *each) for each in ASKED)
    )
    head = "| source | values | from k | to k | step hazards | i.i.d., longest k | i.i.d., shortest k | in sure range |"
    return grid(head, "|---|--:|---|---|--:|--:|--:|--:|", rows)


def _by_curve(of: Facts) -> str:
    rows = []
    for source in ("inferencex", "inferencex_later", SPECDECODE_BENCH):
        for curve in curves(of, source):
            known = {k: curve.means[k] for k in (1, 2, 3)}
            read, first, true = tokens_from_means(known, 8).best, independent({1: known[1]}, 8), curve.means[8]
            fall = [f"{k} to {longer}" for k, longer, *_ in _falls_of(curve)]
            rows.append(
                [
                    SHORT[source],
                    curve.name,
                    f"{true:.2f}",
                    f"{read:.2f} ({100 * (read / true - 1):+.1f}%)",
                    f"{first:.2f} ({100 * (first / true - 1):+.1f}%)",
                    ", ".join(fall) or "nowhere",
                ]
            )
    head = "| source | curve | k = 8, published | from k = 1, 2, 3 | i.i.d. from k = 1 | falls from k |"
    return grid(head, "|---|---|--:|--:|--:|---|", rows)


def _falls_of(curve: Curve) -> list[tuple[int, int]]:
    pairs = pairwise(sorted(curve.means.items()))
    return [(k, longer) for (k, tokens), (longer, then) in pairs if then < tokens]


def _falls(of: Facts) -> str:
    noise, found = roughness(of), list(falling(of))
    all_of = len(curves(of, "inferencex"))
    some = len({curve.name for source, curve, *_ in found if source == "inferencex"})
    beyond = [each for each in found if each[0] != "specbundle" and -each[-1] > 3 * sqrt(2) * noise]
    named = "; ".join(f"{curve.name}, k = {k} to {longer}: {by:+.2f}" for _, curve, k, longer, by in beyond)
    bundle = len({curve.name for source, curve, *_ in found if source == "specbundle"})
    return (
        f"{some} of {all_of} curves of InferenceX fall somewhere, and {bundle} of "
        f"{len(curves(of, 'specbundle'))} of SpecBundle. Each value is one run. Around a smooth curve InferenceX's "
        f"values scatter by {noise:.3f} (an upper estimate of a run's noise, from third differences). Falls of more "
        f"than three deviations of a difference, {3 * sqrt(2) * noise:.2f}: {named}."
    )


def _speeds(of: Facts) -> str:
    rows = []
    for sweep in sweeps(of):
        (picked, lost), (ends, lost_ends) = sweep.choice(sweep.predicted), sweep.choice(sweep.from_ends)
        rows.append(
            [
                sweep.card,
                f"{sweep.ns[0]} and {sweep.ns[-1]}",
                ", ".join(f"{100 * miss:+.1f}%" for miss in sweep.inner),
                sweep.best,
                f"{picked} ({percent(lost)})",
                f"{ends} ({percent(lost_ends)})",
            ]
        )
    head = (
        "| card | step times from n | misses of tokens/s between | best n, published | best n, predicted (loss) "
        "| best n, both ends alone (loss) |"
    )
    return grid(head, "|---|---|---|--:|--:|--:|", rows)


def _speeds_said(of: Facts) -> str:
    longer = [sweep for sweep in sweeps(of) if len(sweep.ns) > 3]
    misses = [miss for sweep in longer for miss in sweep.inner]
    right = sum(sweep.choice(sweep.predicted)[0] == sweep.best for sweep in longer)
    right_ends = sum(sweep.choice(sweep.from_ends)[0] == sweep.best for sweep in longer)
    lost = max(sweep.choice(sweep.predicted)[1] for sweep in longer)
    lost_ends = max(sweep.choice(sweep.from_ends)[1] for sweep in longer)
    return (
        f"On the RTX 5090, whose sweeps have every n from 1 to 6, speeds between are within "
        f"{percent(max(map(abs, misses)))}. The best n is right in {right} of {len(longer)} sweeps, with a loss of at "
        f"most {percent(lost)}; with lengths read from both ends too, in {right_ends}, at most {percent(lost_ends)}."
    )


def _sources(of: Facts) -> str:
    rows = [
        [
            f"[{each['title']}]({each['repository']})",
            f"`{each['path']}`",
            f"{each['commit'][:12]}, {each['date']}",
            each["licence"],
            each["unknown"],
        ]
        for each in of.values()
    ]
    return grid("| source | file | commit | licence | each value, and what is unknown |", "|---|---|---|---|---|", rows)


def _one_k(of: Facts) -> str:
    block, tests = of["deepspec"], of["tensorrt_llm"]["rows"]
    lengths = [length for row in block["rows"] for length in row[2:]]
    return (
        f"Nothing is predicted from the {len(lengths)} lengths of DeepSpec's Table 1 ({min(lengths):.2f} to "
        f"{max(lengths):.2f}), which are all at k = {block['k']}, and from TensorRT-LLM's {len(tests)} reference "
        f"lengths ({min(row[1] for row in tests):.2f} to {max(row[1] for row in tests):.2f}), whose k is not in the "
        "file. They are in the file of facts for later comparison."
    )


BLOCKS: dict[str, Callable[[Facts], str]] = {
    "headline": headline,
    "lengths": _lengths,
    "curves": _by_curve,
    "falls": _falls,
    "speeds-said": _speeds_said,
    "speeds": _speeds,
    "one-k": _one_k,
    "sources": _sources,
}


def renewed(page: str, of: Facts) -> str:
    """The page with its numbers written again."""
    return _blocks.renewed(page, "published", {name: partial(block, of) for name, block in BLOCKS.items()})


# The figure


def draw(figure: Figure, of: Facts) -> None:
    """Tokens per call at k = 8 against published ones, and speeds by n of two power limits."""
    left, right = figure.subplots(1, 2)
    _draw_lengths(left, of)
    _draw_speeds(right, of)


def _draw_lengths(ax: Any, of: Facts) -> None:
    found = [each for source in ("inferencex", "inferencex_later", SPECDECODE_BENCH) for each in curves(of, source)]
    true = [curve.means[8] for curve in found]
    read = [tokens_from_means({k: curve.means[k] for k in (1, 2, 3)}, 8).best for curve in found]
    first = [independent({1: curve.means[1]}, 8) for curve in found]
    ends = min(true + read + first) - 0.2, max(true + read + first) + 0.2
    ax.plot(ends, ends, color=GREY, linestyle=":", linewidth=1)
    ax.plot(true, first, "^", color=ORANGE, fillstyle="none")
    ax.plot(true, read, "o", color=BLUE)
    ax.text(1.5, 5.6, "i.i.d. formula\nfrom k = 1", color=ORANGE)
    ax.text(4.3, 2.5, "step hazards\nfrom k = 1, 2, 3", color=BLUE)
    ax.text(ends[1] - 0.1, ends[1] - 0.9, "equal", color=GREY, ha="left")
    ax.set_xlabel("published tokens per call at k = 8")
    ax.set_ylabel("predicted tokens per call at k = 8")
    titled(ax, f"{len(found)} curves of InferenceX and SpecDecode-Bench")
    plain_axes(ax)


def _draw_speeds(ax: Any, of: Facts) -> None:
    by_card = {sweep.card: sweep for sweep in sweeps(of)}
    for watts, colour, marker in ((600, BLUE, "o"), (400, ORANGE, "^")):
        sweep = by_card[f"RTX 5090, {watts} W"]
        ax.plot(sweep.ns, sweep.predicted, color=colour)
        ax.plot(sweep.ns, sweep.speeds, marker, color=colour)
        ax.annotate(f"{watts} W", (6, sweep.predicted[-1]), xytext=(8, -3), textcoords="offset points", color=colour)
    ax.set_xlim(0.7, 6.9)
    ax.set_ylim(bottom=80)
    ax.set_xlabel("n, drafts of a call")
    ax.set_ylabel("tokens per second")
    titled(ax, "RTX 5090: markers published, lines from n = 1 and 6")
    plain_axes(ax)


# What is computed from a copy


def of_lists(folder: Path) -> list[dict[str, Any]]:
    """Tokens per call of chains of 1 to 8 drafts, decoded along lengths that are recorded at every start.

    An entry of the lists is the accepted drafts of a call that starts there, and the recovered token.
    """
    found = []
    for path in sorted((folder / "data" / "llama3.1-8B").glob("combined_*.jsonl")):
        requests = [json.loads(line) for line in path.read_text().splitlines()]
        for draft, column in (("n-gram", "acc_ngram"), ("EAGLE", "acc_eagle")):
            lists = [request[column]["acc_len"] for request in requests]
            means = {str(k): round(_decoded(lists, k), 4) for k in range(1, 9)}
            name = f"Llama-3.1-8B, {draft}, {path.stem.removeprefix('combined_')}"
            found.append({"name": name, "requests": len(lists), "tokens_per_call": means})
    return found


def _decoded(lists: Iterable[Sequence[int]], k: int) -> float:
    """Tokens over calls."""
    tokens = calls = 0
    for reached in lists:
        position = 0
        while position < len(reached):
            position += min(reached[position], k + 1)
            calls += 1
        tokens += len(reached)
    return tokens / calls


def _main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--specdecode-bench"]:
        known = facts()
        known[SPECDECODE_BENCH]["curves"] = of_lists(Path(arguments[1]))
        FACTS.write_text(json.dumps(known, indent=1) + "\n")
    for path in PAGES:
        path.write_text(renewed(path.read_text(), facts()))
    save_figure(lambda figure: draw(figure, facts()), SIZE, FIGURE)


if __name__ == "__main__":
    _main(sys.argv[1:])
