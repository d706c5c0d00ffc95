"""The algorithms as their papers write them, slow and readable; none knows a kernel or a formula.

Pmfs are arrays ``[V]`` that nothing here validates. An algorithm draws from a stream, or from
:func:`~simulations.reference.drawing.exact_law`, which gives every outcome its probability.
"""
