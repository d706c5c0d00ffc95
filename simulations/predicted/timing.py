"""The dense race of numpy has the law of the other races (A2, R2); of times nothing is predicted."""

from __future__ import annotations

from simulations.predicted.races import race
from simulations.verdicts.predictions import predicts

predicts("race-numpy")(race)
