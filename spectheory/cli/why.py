"""``spectheory why``: what a call costs and why a run is no faster."""

from __future__ import annotations

from spectheory.cli.answer import show
from spectheory.cli.inputs import checked_rules
from spectheory.cli.options import OF_ROOFLINES, WhyOptions
from spectheory.cli.plan import architecture_of, check_hardware, load_of, read_config, roofline_of
from spectheory.cost import ConstantRatio, CostModel, LatencyTable, ModelShape
from spectheory.errors import SettingError
from spectheory.judging.slow.why import why
from spectheory.reports.why import why_report
from spectheory.trace.timed import timed_runs


def run_why(question: WhyOptions) -> None:
    """Answer the question and show the answer."""
    _check(question)
    path = question.target_architecture
    target = None if path is None else ModelShape.from_config(read_config(path))
    runs = [run for path in question.bench or () for run in timed_runs(path)]
    lengths = (question.prompt_tokens, question.output_tokens)
    answer = why(
        question.counts,
        speedup=question.speedup,
        tokens_per_call=question.tokens_per_call,
        acceptance=question.acceptance,
        k=question.k,
        runs=runs,
        expect=question.expect,
        rule=question.rule,
        cost=_cost(question),
        target=target,
        plain_step=None if question.plain_tpot is None else question.plain_tpot / 1e3,
        requests=(lengths[0], lengths[1]) if lengths[0] is not None and lengths[1] is not None else None,
        batch=question.batch[0] if question.batch else None,
        context=question.context[0] if question.context else None,
    )
    show(why_report(answer), question, "why", title="Why it is no faster")


def _cost(question: WhyOptions) -> CostModel | None:
    """What explains the time of a call."""
    if question.hardware is not None:
        draft = question.draft_architecture
        return roofline_of(question, read_config(architecture_of(draft, "drafting")) if draft else None)
    if question.latency:
        return LatencyTable.read(question.latency)
    return None if question.c is None else ConstantRatio(question.c)


def _check(question: WhyOptions) -> None:
    """Refuse options that contradict each other."""
    sources = {
        "--c": question.c is not None,
        "--latency": bool(question.latency),
        "--hardware": question.hardware is not None,
    }
    if sum(sources.values()) > 1:
        given = " and ".join(name for name, here in sources.items() if here)
        raise SettingError(f"{given} are given", limit="one source of costs", remedy="leave one out")
    for name in ("batch", "context", "draft_architecture"):
        if len(getattr(question, name) or ()) > 1:
            raise SettingError(
                f"--{name.replace('_', '-')} is given several times", limit="one run is explained", remedy="keep one"
            )
    numbers = [question.counts, question.tokens_per_call, question.acceptance, question.speedup]
    if question.bench and any(each is not None for each in numbers):
        raise SettingError(
            "--bench is given with counts or numbers",
            limit="timed runs have tokens per call and speed-ups of their own",
            remedy="leave one out",
        )
    checked_rules([question.rule])
    if question.hardware is None:
        _check_idle(question)
    else:
        check_hardware(question)
    load_of(question)  # refuses lengths of requests that are given by halves


def _check_idle(question: WhyOptions) -> None:
    """Refuse options that a roofline alone reads."""
    used = {"target_architecture", "batch", "prompt_tokens", "output_tokens", *(["context"] if question.bench else [])}
    names = [each for each in (*OF_ROOFLINES, "plain_tpot") if each not in used]
    idle = [each for each in names if getattr(question, each, None) != getattr(WhyOptions(), each, None)]
    if idle:
        raise SettingError(
            f"{', '.join('--' + each.replace('_', '-') for each in idle)} given without --hardware",
            limit="they are about the roofline of an accelerator",
            remedy="name one, as --hardware H100-SXM, or leave them out",
        )
