"""Named statements of three papers by our ids: what could be confirmed of each, and from where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Named(NamedTuple):
    """A statement as a paper names it, the ids that state it here, and what of the paper's wording is confirmed."""

    paper: str
    name: str
    ids: tuple[str, ...]
    confirmed: str


NAMED = (
    Named(
        "kobus2025",
        "Lemma 3.1",
        ("A3", "D2"),
        "Acceptance of the race from a harmonic-mean distance. The normalisation is not confirmed; S/2 <= race is the "
        "likely form, and S/(2-S) <= race is false (A3/look-alike).",
    ),
    Named(
        "kobus2025",
        "Theorem 4.1",
        ("T1", "S3"),
        "E[tokens] <= (log A + log(k+1))/H(R), A the size of the alphabet: a public summary of the paper prints this "
        "inequality; its number is as recalled. Sharper here by log((k+1)(A-1)+1).",
    ),
    Named(
        "kobus2025",
        "Lemma 4.2",
        ("H", "S2"),
        "Not confirmed. The summary names two facts beside Theorem 4.1: H(R) lies between KL(P || Q) and a "
        "channel-simulation bound (H), and the best tree takes O(k log k) (S2). Which of them is the lemma is unknown.",
    ),
    Named(
        "kobus2025",
        "Lemma B.1",
        ("A2", "R2", "S2"),
        "Not confirmed. Facts that the paper's appendix must use are stated here: the law of the race (A2, R2) and the "
        "exchange of nodes (S2).",
    ),
    Named(
        "kobus2025",
        "Figure 1",
        ("S1", "R3"),
        "Confirmed from arXiv 2504.15475v1: five draft trees (plain; k = 1; a sequence of 4; a batch of 4; a tree of "
        "6) under the decisions of recursive rejection; the race follows another decision tree.",
    ),
    Named(
        "pankratov2026",
        "Main theorem",
        ("B1",),
        "Confirmed from the abstracts: E[X] <= (mu + mu2) log P/mu^2 + O(1). arXiv v1 calls mu2 the expected second "
        "log-moment, EACL the entropy's second moment; read as E[H^2] it is smaller, and its slope is still above "
        "1/mu, so the bound holds for large P in both readings. Number, constant and base are not confirmed.",
    ),
    Named(
        "pankratov2026",
        "Tightness",
        ("B1", "B3'"),
        "The abstract calls the bounds tight. The true slope is 1/mu (B1, from below); the paper's is 1 + mu2/mu "
        "times as large.",
    ),
    Named(
        "pankratov2026",
        "Determinism and speed-up",
        ("B4", "B5"),
        "The abstract bounds deterministic algorithms, and run time; the forms are ours.",
    ),
    Named(
        "pankratov2026",
        "Further directions",
        ("B8", "B9", "B6"),
        "Imperfect knowledge and text that is not i.i.d.: the statements are ours; the wording is not confirmed.",
    ),
    Named(
        "yin2024",
        "Expected rejections, Theorem 1",
        ("Y1",),
        "The statement is that of the abstract's total variations; the number is as recalled.",
    ),
    Named("yin2024", "Optimality, Theorem 2", ("Y2",), "The class of algorithms and the number are as recalled."),
    Named(
        "yin2024",
        "Theorem 3 and Algorithm 4",
        ("Y3", "Y3/printed", "Y4"),
        "Batches; the algorithm as printed does not have the rejections of the theorem.",
    ),
    Named(
        "yin2024",
        "Bias and the Pareto front, Theorems 4 and 5",
        ("Y5", "Y6"),
        "Least bias for an over-acceptance, and the straight front; the numbers are as recalled.",
    ),
    Named(
        "yin2024",
        "Table 1",
        ("Y5", "Y6"),
        "Confirmed from a public summary: win rate of Decoding-OPT against Decoding-UNO over an over-acceptance "
        "threshold; pythia-70m drafts for pythia-2.8b, 200 prompts of Alpaca-Farm-Eval, 500 comparisons a prompt, one "
        "A100. Its rates, the judges and the formula of the threshold are not confirmed. The same comparison on the "
        "built-in pair: [opt_uno](figures/opt_uno.md).",
    ),
)


def named_statements(links: dict[str, str]) -> Iterator[str]:
    """The table of the page; `links` has the page and anchor of every id."""
    yield "## Named statements of the papers"
    yield ""
    yield "Papers whose bodies were not at hand are read from their abstracts, first pages and public summaries."
    yield "*As recalled*: from notes made with the paper at hand, not confirmed again."
    yield ""
    yield "| paper | named there | here | what is confirmed |"
    yield "|---|---|---|---|"
    for one in NAMED:
        ids = ", ".join(f"[{each}]({links[each]})" for each in one.ids)
        confirmed = one.confirmed.replace("|", r"\|").replace("<", r"\<")
        yield f"| `{one.paper}` | {one.name} | {ids} | {confirmed} |"
