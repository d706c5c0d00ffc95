"""Decoders of our own, for real pairs: plain, token, block, race, recursive, trees, prompt lookup; every call recorded.

Importing this needs the extra ``models``.
"""

from spectheory.measure.decoders.decode import decode
from spectheory.measure.decoders.events import Call, Decoded
from spectheory.measure.decoders.methods import HeaviestTree, Method

__all__ = ["Call", "Decoded", "HeaviestTree", "Method", "decode"]
