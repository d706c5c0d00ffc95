"""``spectheory bounds``: limits on tokens per call from moments, pmfs, ranks or a trace; early answers without one."""

from __future__ import annotations

from spectheory.cli.answer import View, show
from spectheory.cli.early_bounds import check_idle, of_entropies, of_target_scores
from spectheory.cli.iid_bounds import of_moments, of_pmfs, of_ranks
from spectheory.cli.inputs import check_seed, in_range, one_source, read_pmfs, read_rank_law
from spectheory.cli.theory_options import DEFAULT_NODES, BoundsOptions
from spectheory.cli.trace_bounds import of_trace
from spectheory.errors import SettingError
from spectheory.reports import BoundsAnswer, bounds_report
from spectheory.reports.bounds import EarlyAnswer, early_report
from spectheory.trace import read_any

MOST_NODES, MOST_CHAINS = 1_000_000, 1_000


def run_bounds(question: BoundsOptions) -> None:
    """Answer the question and show the answer."""
    check_seed(question.seed)
    nodes = sorted(set(question.nodes or DEFAULT_NODES))
    in_range("--nodes", nodes, MOST_NODES)
    check_idle(question)
    answer = _answer(question, nodes)
    report = early_report(answer) if isinstance(answer, EarlyAnswer) else bounds_report(answer)
    show(report, as_json=question.json, view=View.of(question))


def _answer(question: BoundsOptions, nodes: list[int]) -> BoundsAnswer | EarlyAnswer:
    given = {
        "a trace": question.trace is not None,
        "--mu with --mu2": question.mu is not None or question.mu2 is not None,
        "--target-pmf": question.target_pmf is not None,
        "--rank-pmf": question.rank_pmf is not None,
        "--target-logprobs": question.target_logprobs is not None,
        "--target-nats or --need": question.target_nats is not None or question.need is not None,
    }
    if one_source(given) != "--target-pmf" and question.trees is not None:
        raise SettingError(
            "--trees is given without --target-pmf", limit="random trees need pmfs", remedy="leave it out"
        )
    chains = sorted(set(question.chains or ()))
    in_range("--chains", chains, MOST_CHAINS)
    if question.trace is not None:
        return of_trace(read_any(question.trace), nodes, [number for number in chains if number > 1])
    if chains:
        raise SettingError(
            "--chains is given without a trace",
            limit="the bound needs both models' log-probabilities along texts",
            remedy="give a trace, or use spectheory.limits.several_chains_bound with pmfs",
        )
    if question.target_pmf is not None:
        return of_pmfs(read_pmfs(question.target_pmf, "--target-pmf"), nodes, question.trees, question.seed)
    if question.rank_pmf is not None:
        return of_ranks(read_rank_law(question.rank_pmf, "--rank-pmf"), nodes)
    if question.target_logprobs is not None:
        return of_target_scores(question.target_logprobs, nodes)
    if question.target_nats is not None or question.need is not None:
        return of_entropies(question)
    return of_moments(question.mu, question.mu2, nodes)
