"""The algorithms as compiled loops, a file each; every kernel has a readable twin in :mod:`simulations.reference`.

A kernel draws from a stream (:mod:`simulations.draws.streams`) in a documented order, so that its twin, fed the same
stream, is equal token for token. None calls a closed form of :mod:`spectheory`.
"""
