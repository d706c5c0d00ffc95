"""``spectheory predict --drafting``: drafts that are made far away, during verification or without a pause."""

from __future__ import annotations

from spectheory.cli.answer import show
from spectheory.cli.inputs import refuse_idle
from spectheory.cli.options import PredictOptions
from spectheory.cli.progress import working
from spectheory.cost import CostModel
from spectheory.errors import SettingError
from spectheory.prediction.elsewhere import LONGEST, elsewhere
from spectheory.prediction.placement import placement
from spectheory.reports.elsewhere import elsewhere_report
from spectheory.trace import Trace

_TAKEN = {"trace", "logprobs", "draft_log", "drafting", "remote_latency", "rule", "k_max", "c", "latency"}
_TAKEN |= {"passes_alone", "prefill_token", "json", "out", "all", "explain", "report"}


def _check_drafting(question: PredictOptions, *, recorded: bool) -> None:
    """Refuse what its answer does not take, and placements that are unknown."""
    if not question.drafting:
        raise SettingError(
            "--remote-latency is given alone", limit="it is of drafts made elsewhere", remedy="add --drafting remote"
        )
    if not recorded:
        raise SettingError(
            "--drafting is given without a trace", limit="it asks of what was recorded", remedy="name a trace"
        )
    for words in question.drafting:
        placement(words, question.remote_latency)
    refuse_idle(question, _TAKEN, "--drafting", "ask for it alone", "its answer stands alone")
    if question.rule and len(question.rule) > 1:
        raise SettingError(f"{len(question.rule)} rules are given", limit="--drafting takes one", remedy="keep one")
    if question.k_max > LONGEST:
        raise SettingError(f"--k-max is {question.k_max}", limit=f"at most {LONGEST} here", remedy="lower it")


def _show_elsewhere(question: PredictOptions, rules: list[str] | None, trace: Trace, passes: CostModel | None) -> None:
    """What each placement gives along the texts of a trace."""
    if passes is None:
        raise SettingError(
            "--drafting is given without costs",
            limit="it compares times of draft and target",
            remedy="give --c or --latency",
        )
    with working("predicting"):
        answer = elsewhere(
            trace,
            question.drafting or (),
            passes,
            rule=rules[0] if rules else "token",
            link=question.remote_latency,
            k_max=question.k_max,
            prefill_emits_token=question.prefill_token,
        )
    show(elsewhere_report(answer), question, "elsewhere", title="Drafting elsewhere")
