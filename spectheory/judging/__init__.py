"""An engine's output and counts against what the path theorem expects of them (§13)."""

from spectheory.judging.judgement import Judgement, judge
from spectheory.judging.output import OutputTest
from spectheory.judging.readings import compare
from spectheory.judging.standing import FALSE_ALARMS, Standing

__all__ = ["FALSE_ALARMS", "Judgement", "OutputTest", "Standing", "compare", "judge"]
