"""A type for each JSON object that commands print and write; from it the object is made, and its schema."""

import math
from collections.abc import Iterator, Mapping, Sized
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType

from spectheory.intervals import Interval

T = TypeVar("T")

Maybe: TypeAlias = T | UnsetType
"""A key that may be absent."""
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Paths = list[Annotated[list[Positive], Meta(min_length=1)]] | None
"""Ranks from the root of a draft tree to each node; null for a chain."""


def says(words: str, at: str = "") -> Meta:
    """What a key means; `at` is the place in the source of the object that it is read from, if not its own name.

    A dot alone is the source itself.
    """
    return Meta(description=words, extra={"at": at} if at else None)


class Part(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An object within an answer. Its fields are its keys, with their types and meanings.

    One that does not forbid unknown fields is open: it is a mapping with more keys than these.

    Examples
    --------
    >>> class Setting(Part):
    ...     rule: Annotated[str, says("verification rule", at="rule.name")]
    ...     k: Maybe[int] = UNSET
    >>> plain(Setting.view({"rule": {"name": "token"}}))
    {'rule': 'token'}
    """

    schema: ClassVar[int | None] = None
    """The number `schema` of what is printed or written whole."""
    has_headline: ClassVar[bool] = False
    """Whether the report adds a headline and notes."""

    @classmethod
    def view(cls, /, *sources: Any, **further: Any) -> Self:
        """Take every field from `further`, else from an attribute or entry of the first source that has it, in the type
        of the field.

        A field of words takes the words of any object. One that may be absent is, where the sources have nothing, None
        or an empty one.
        """
        values = {}
        for field in _fields(cls):
            given = further.pop(field.name, UNSET)
            known = (given, *(_read(source, field.place) for source in sources))
            value = next((one for one in known if one is not UNSET), UNSET)
            if value is not UNSET and not (field.absent and _empty(value)):
                values[field.name] = _shaped(field.kind, value)
        return cls(**values, **further)


def plain(value: Any) -> Any:
    """`value` in JSON's types: objects and intervals as dictionaries, arrays as lists, None for what is not finite.

    Examples
    --------
    >>> plain({"mean": Interval.exact(1.5), "largest": float("inf"), 3: np.arange(2)})
    {'mean': {'low': 1.5, 'best': 1.5, 'high': 1.5, 'kind': 'exact'}, 'largest': None, '3': [0, 1]}
    """
    if isinstance(value, Part):
        entries = ((each.key, getattr(value, each.name)) for each in _fields(type(value)))
        number = {} if value.schema is None else {"schema": value.schema}
        return number | {key: plain(entry) for key, entry in entries if entry is not UNSET}
    if isinstance(value, Interval):
        return plain(vars(value)) if math.isfinite(value.best) else None
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Field(NamedTuple):
    """A field, its key in JSON, its type, the place that a source has it at, and whether it may be absent."""

    name: str
    key: str
    kind: Any
    place: str
    absent: bool


@cache
def _fields(part: type[Part]) -> tuple[_Field, ...]:
    return tuple(
        _Field(
            each.name,
            each.encode_name,
            each.type,
            next(_places(each.type), each.encode_name),
            UnsetType in get_args(each.type) and NoneType not in _alternatives(each.type),
        )
        for each in msgspec.structs.fields(part)
    )


def _alternatives(kind: Any) -> Iterator[Any]:
    """The types that a field may have."""
    of, inner = get_origin(kind), get_args(kind)
    if of in (Union, UnionType, Annotated):
        for one in inner[:1] if of is Annotated else inner:
            yield from _alternatives(one)
    else:
        yield kind


def _places(kind: Any) -> Iterator[str]:
    for one in (kind, *get_args(kind)):
        yield from (meta.extra["at"] for meta in getattr(one, "__metadata__", ()) if meta.extra)


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, Sized) and not len(value))


def _read(source: Any, place: str) -> Any:
    """What a source has at a dotted place; UNSET if nothing."""
    for name in filter(None, place.split(".")):
        source = source.get(name, UNSET) if isinstance(source, Mapping) else getattr(source, name, UNSET)
    return source


def _shaped(kind: Any, value: Any) -> Any:
    """A value in the type of a field; one that may be of several types stays as it is."""
    if value is None:
        return None
    of, inner = get_origin(kind), get_args(kind)
    if of is Annotated:
        return _shaped(inner[0], value)
    if of in (Union, UnionType):
        known = [one for one in inner if one not in (UnsetType, NoneType)]
        return _shaped(known[0], value) if len(known) == 1 else value
    if of is list:
        return [_shaped(inner[0], entry) for entry in value]
    if of is dict:
        return {str(name): _shaped(inner[1], entry) for name, entry in value.items()}
    if isinstance(kind, type) and issubclass(kind, Part) and not isinstance(value, kind):
        return kind.view(value) if kind.__struct_config__.forbid_unknown_fields else value
    return str(value) if kind is str else value
