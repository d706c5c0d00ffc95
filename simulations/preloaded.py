"""What workers of simulations are forked with: every simulator, and the compiler in a state to load kernels."""

import gc

import numpy as np

import simulations.simulators  # noqa: F401  registers all kinds
from simulations.draws import alias

alias(np.ones(1))

gc.freeze()  # workers share it all, and nobody looks through it at the end
