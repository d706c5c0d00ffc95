"""The algorithms as compiled loops; each has the law of the readable algorithm in :mod:`simulations.reference`.

None calls a closed form of :mod:`spectheory`. What all of them take and give:

- ``target``, ``draft``: pmfs ``[V]`` of one position; of a text transition pmfs ``[V, V]``, row x after token x, or
  ``[T, V, V]``, a matrix for each position, T the ``length`` of a text, with ``initial``, the pmf ``[V]`` of the token
  before the text, which is not counted;
- ``trials``, ``texts``, ``calls``: how many independent ones, at least 1;
- ``max_rank``: the highest rank that has its own count; ``by_output``: whether each output token has its own counts;
- ``state``: a stream ``[4]`` (:func:`simulations.draws.words`), advanced in place.

Counts are int64 arrays; counts of separate runs add up.
"""
