"""What the columns of tables mean: one sentence for each heading, unless a column has a meaning of its own."""

from __future__ import annotations

from spectheory.limits.claims import LimitClaim
from spectheory.reports.table import Column, Table

TERMS = {
    # what is set
    "k": "drafted tokens per call; of a tree, its nodes",
    "P": "draft nodes per call: the drafts of a chain, or the nodes of a tree",
    "T": "sampling temperature; 0 is greedy decoding",
    "rule": "verification rule: how the target's pass accepts drafts",
    "shape": "draft shape: a chain of k drafts, or a tree of so many nodes",
    "draft": "what drafts: the name of the measured draft; none where no draft model is read",
    "kind": "kind of draft: a model of its own, a head of the target, or copies of earlier text",
    "passes": "passes of the draft model in a call",
    "engine": "engine, under the rule that this version of it runs",
    "batch": "sequences decoded together",
    "concurrency": "requests that the server decodes together",
    "context": "cached tokens of a sequence",
    "tree": "the draft tree",
    # what it gives
    "tokens per call": "output tokens of one target pass: accepted drafts and one more, averaged over calls",
    "speed-up": "tokens per second over those of plain decoding, from the costs given",
    "acceptance": "probability that one of the k candidates is accepted",
    "side": "what the number is: exact, an upper bound, a lower bound or an estimate",
    "gap to R4": "largest acceptance with k i.i.d. candidates, less this one; † where that is no limit",
    "H(R)": "entropy of the rank of the accepted candidate, nats",
    # counts of decoding
    "counted": "tokens per call that were counted",
    "expected": "what the rule gives on the very same texts, by the path theorem",
    "from trace": "tokens per call that a trace of other texts predicts; range over prompts",
    "z, calls": "difference of counted and expected calls, in standard deviations",
    "z, control": "the same against a wrong reading: that a head's drafts do not depend on where the call starts",
    "z, always k": "the same against a wrong reading: that every call drafts k tokens",
    "largest |z|": "largest difference of counted and expected calls over the shapes, in standard deviations",
    "measured": "speed-up that was timed",
    "predicted": "speed-up that the trace and the latencies predict",
    "miss %": "100 log(measured / predicted speed-up)",
    "passes %": "the same for the models' passes alone",
    "largest part": "the part of the error budget that explains most of the miss",
    "drafted": "drafted tokens per call",
    "estimated": "drafted tokens per call that the trace predicts",
    "z": "difference of counted and expected, in standard deviations",
    "sd": "standard deviation of the calls that the rule expects",
    "p": "probability of a result at least as far off, if the output is right",
    "p, all counts": "probability of counts at least as far off, if the engine runs the rule",
    "verdict": "fits or passes; REFUTED where p is below the false-alarm rate",
    "cannot be told apart": "rules that these texts cannot tell from it",
    "cause": "a known fault that explains the counts",
    "evidence": "what in the counts says so",
    "test of the output": "what of the output is tested",
    "statistic": "the value of the test",
    "drafts": "what drafts: none, the engine's default, or what it is told to use",
    "counts": "whether calls and accepted tokens fit the rule",
    "output": "whether the tokens are samples of the target; at temperature 0, its first choices",
    # an engine's counts
    "accepted at k": "share of the calls that accept at least k drafts",
    "share of calls": "share of the calls that accept at least so many drafts",
    "of those before": "that share over the share of the position before",
    "first choices": "tokens per call, certain where the draft proposes its first choices and reads the text alone",
    "read from": "the counts of this k, or an estimate from those of a longer or shorter one",
    "position": "number of the draft in its call",
    "accepted": "calls that accept it",
    "by start": "tokens per call, each draft at its own start",
    "by position": "the same as if a draft did not depend on where its call starts",
    "i.i.d. (C1)": "the same with the first draft's acceptance at every depth",
    "off": "by position over by start, less 1",
    # where calls are lost
    "i": "number of the draft in its call",
    "over all positions": "acceptance averaged over all positions of the text, not at the starts of calls",
    "class": "class of the token at which the call ends",
    "token": "the token at which the call ends",
    "tokens before": "length of the text before the call, prompt included",
    "calls start": "calls that begin there",
    "calls lost": "calls that end with a rejection there",
    "tokens per call there": "tokens per call of the calls that begin there",
    "lost per token": "calls lost over tokens of that kind",
    "text": "the token in brackets, with the text around it",
    # trees
    "depth": "drafts from the root",
    "nodes": "nodes of that depth",
    "largest rank": "largest rank of a candidate at that depth",
    "draft pass tokens": "tokens that the draft model reads in the pass for that depth",
    "P(tau >= depth)": "probability that a call accepts at least so many drafts",
    # plans
    "what": "what the number is of",
    "value": "the number",
    "now": "the value in this plan",
    "needed": "the value at which the speed-up is 1",
    "limit": "an upper bound, or an idealised value",
    "reached": "tokens per call of the best setting over the limit",
    "speed-up there": "speed-up with as many tokens per call as the limit",
    "best fixed k": "drafts per call, the same in every call",
    "best stopping rule": "where the draft stops, by what it knows of its own tokens",
    "drafted per call": "drafted tokens per call with the stopping rule",
    "time of": "part of a step of all sequences together",
    "microseconds": "its fitted time",
    "± (95%)": "half of its 95% interval",
    "run": "result file of the benchmark",
    "decoding": "mean number of requests that were decoding",
    "step, ms": "measured time of a step",
    "fitted, ms": "the same by the fit",
    "without it": "error of the fit of all other runs for this one",
    "planned with": "tokens per call in this plan",
    "runs": "tokens per call that the runs counted",
    # bias and checks
    "upper estimate": "tokens per call if drafts that the target cannot output are all accepted",
    "bias per token": "total variation of a verified token from the target, with the best recovery (Y6, Y7)",
    "nats per token": "KL of the output from the target per verified token; of relaxed what it gives up (Y7)",
    "UNO's bias": "the same with recovery from the target",
    "tokens": "tokens of this kind in the text",
    "calls counted": "target calls that were counted",
    "diff / s.e.": "counted less predicted calls, in standard errors",
    "loop without overhead": "speed-up predicted from the passes alone",
    "acceptance needed": "acceptance rate that the speed-up needs, if acceptances are i.i.d. (C1)",
    "KL that suffices": "mean KL divergence of the draft at which token verification surely accepts as much",
}


def meanings(table: Table) -> list[str]:
    """A line for each meaning, with the headings that have it."""
    alike: dict[str, list[str]] = {}
    for column in table.columns:
        alike.setdefault(meaning(column), []).append(_one(column.heading) or "(sign)")
    return [f"  {', '.join(headings)}: {words}" for words, headings in alike.items()]


def meaning(column: Column) -> str:
    """What a column means: its own words, or those of its heading."""
    return column.meaning or TERMS.get(_one(column.heading), "")


def claimed(claim: LimitClaim) -> str:
    """What a limit is about, and what it claims."""
    return f"{claim.what}. {claim.scope.says}"


def _one(heading: str) -> str:
    """A heading in one line."""
    return " ".join(heading.split())
