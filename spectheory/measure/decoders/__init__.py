"""Reference decoders for real pairs: plain, by rule, trees, prompt lookup, draft heads; every call is recorded.

Importing this needs the extra ``models``. :mod:`spectheory.measure` states what holds for all functions.
"""

from spectheory.measure.decoders.decode import Call, Decoded, decode
from spectheory.measure.decoders.methods import HeaviestTree, Method

__all__ = ["Call", "Decoded", "HeaviestTree", "Method", "decode"]
