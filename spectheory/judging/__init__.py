"""An engine's output and counts against what the path theorem expects of them (§13); two runs against each other."""

from spectheory.judging.acceptance_gate import Gate, gate
from spectheory.judging.chance import Chance, RunNoise, noise
from spectheory.judging.compared import compare
from spectheory.judging.difference import Change, Difference
from spectheory.judging.judgement import Judgement, judge
from spectheory.judging.output import OutputTest
from spectheory.judging.slow.why import Why, why
from spectheory.judging.standing import FALSE_ALARMS, Standing
from spectheory.judging.watching import Watch, Watched

__all__ = [
    "FALSE_ALARMS",
    "Chance",
    "Change",
    "Difference",
    "Gate",
    "Judgement",
    "OutputTest",
    "RunNoise",
    "Standing",
    "Watch",
    "Watched",
    "Why",
    "compare",
    "gate",
    "judge",
    "noise",
    "why",
]
