"""Monte Carlo of the algorithms as written; agreement with the closed forms is evidence.

The rooms, in the order in which they import: draws, counts, experiments, models, kernels, reference, verdicts,
simulators, sweeps. Only the last three know the theory, and no function that simulates reads it. Input that does not
fit raises a named error of :mod:`spectheory.errors`: the value, the limit, the way out.
"""
