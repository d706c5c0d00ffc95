"""The algorithms as written, slow and readable: the twin of every kernel, a file for each group.

Pmfs are arrays ``[V]`` that nothing here validates. Fed the same :class:`~simulations.draws.streams.Stream` as its
kernel, a twin gives the same outputs and leaves the stream in the same state. Nothing here calls :mod:`spectheory`.
"""
