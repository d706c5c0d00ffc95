"""Drafts that engines copy by n-grams of token ids: a class each, with the engine's settings, replayed on texts.

A new one is a file, or a class in its engine's, and a line of :data:`NGRAMS`.
"""

from collections.abc import Iterable, Mapping

from spectheory.checks import several
from spectheory.errors import SettingError
from spectheory.ngrams.base import NgramDraft, Request, replay
from spectheory.ngrams.llamacpp import NgramCache, NgramMapK, NgramMapK4V, NgramMod, NgramSimple
from spectheory.ngrams.sglang import SglangFrequentNgram, SglangNgram
from spectheory.ngrams.suffix import Suffix
from spectheory.ngrams.transformers import TransformersLookup
from spectheory.ngrams.vllm import VllmGpuNgram, VllmNgram

__all__ = ["NGRAMS", "NgramDraft", "Request", "read_ngrams", "replay"]

_LISTED = (
    *(NgramSimple, NgramMapK, NgramMapK4V, NgramMod, NgramCache),
    *(VllmNgram, VllmGpuNgram, Suffix),
    *(SglangNgram, SglangFrequentNgram),
    TransformersLookup,
)
NGRAMS: Mapping[str, type[NgramDraft]] = {each.name: each for each in _LISTED}
"""By the names that users write."""
_MOST = 16


def read_ngrams(written: Iterable[NgramDraft | str]) -> tuple[NgramDraft, ...]:
    """N-gram drafts as they are written, ``NAME:setting=number,...``; several numbers make a grid: ``max=2|3``.

    Raises :class:`~spectheory.errors.SettingError` for unknown names and settings, and for more than 16 drafts.

    Examples
    --------
    >>> [str(draft) for draft in read_ngrams(["ngram-vllm:min=1,max=2|3", "ngram-cache"])]
    ['ngram-vllm:min=1,max=2', 'ngram-vllm:min=1,max=3', 'ngram-cache']
    """
    drafts: list[NgramDraft] = []
    for each in several("ngrams", written, remedy="['ngram-mod'] is a list of one"):
        if isinstance(each, NgramDraft):
            drafts.append(each)
            continue
        name, _, settings = str(each).casefold().partition(":")
        if name not in NGRAMS:
            raise SettingError(
                f"the n-gram draft {name!r} is unknown", limit=f"there are {', '.join(NGRAMS)}", remedy="name one"
            )
        drafts += NGRAMS[name].read(settings)
    drafts = list(dict.fromkeys(drafts))
    if len(drafts) > _MOST:
        raise SettingError(
            f"{len(drafts)} n-gram drafts are asked for", limit=f"a trace records {_MOST}", remedy="ask for fewer"
        )
    return tuple(drafts)
