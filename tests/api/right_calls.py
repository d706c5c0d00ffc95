"""Calls of public functions as their docstrings show them, and the same calls with one argument damaged."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spectheory.errors import SpectheoryError


@dataclass(frozen=True)
class Call:
    """A call by the name of what is called."""

    name: str
    function: Callable[..., Any]
    given: tuple[Any, ...]
    named: dict[str, Any]

    def damaged(self, wrong: Callable[[], Any]) -> Iterator[tuple[str, Call]]:
        """The call with each argument in turn replaced, those too that the example leaves out."""
        for at in range(len(self.given)):
            given = (*self.given[:at], wrong(), *self.given[at + 1 :])
            yield f"{self.name}, argument {at + 1}", Call(self.name, self.function, given, self.named)
        parameters = inspect.signature(self.function)
        passed = parameters.bind(*self.given, **self.named).arguments
        optional = [name for name, each in parameters.parameters.items() if each.default is not each.empty]
        for name in dict.fromkeys([*self.named, *(name for name in optional if name not in passed)]):
            yield f"{self.name}, {name}", Call(self.name, self.function, self.given, {**self.named, name: wrong()})

    def outcome(self) -> str:
        """What comes of it: accepted, refused, or what is wrong with how it is refused or accepted."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                result = self.function(*self.given, **self.named)
                if inspect.isgenerator(result):
                    list(result)
            except SpectheoryError as error:
                wrong = "\n" in str(error) or re.search(r"(?<![\w-])--[a-z]", str(error))
                return f"several lines, or an option: {error}" if wrong else "refused"
            except Exception as error:
                return f"{type(error).__name__}: {error}"
        return "accepted"


def shown_calls(kind: Any) -> list[Call]:
    """The calls of a function, of a class and of its methods in their own docstrings."""
    members = [kind]
    if inspect.isclass(kind):
        members += [getattr(kind, name) for name, each in vars(kind).items() if not name.startswith("_") and callable(
            getattr(each, "__func__", each))]  # fmt: skip
    return [call for each in members for call in _calls(kind, inspect.getdoc(each) or "")]


def _calls(kind: Any, text: str) -> Iterator[Call]:
    names = dict(vars(importlib.import_module(kind.__module__)))
    for example in doctest.DocTestParser().get_examples(text):
        tree = ast.parse(example.source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                # what a loop or a lambda of the example names is unknown here
                with contextlib.suppress(Exception):
                    function = _value(node.func, names)
                    owner = getattr(function, "__self__", None)
                    if function is kind or (inspect.isclass(kind) and (owner is kind or isinstance(owner, kind))):
                        named = {str(each.arg): _value(each.value, names) for each in node.keywords}
                        given = tuple(_value(each, names) for each in node.args)
                        name = kind.__name__ if function is kind else f"{kind.__name__}.{function.__name__}"
                        yield Call(name, function, given, named)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
            exec(compile(tree, "example", "exec"), names)


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "example", "eval"), names)


class Speechless:
    """What cannot be shown."""

    def __repr__(self) -> str:
        """Fail."""
        raise ZeroDivisionError


WRONG: dict[str, Callable[[], Any]] = {
    "an object": object,
    "an object that cannot be shown": Speechless,
    "a text": lambda: "nonsense",
    "bytes": lambda: b"ab",
    "a mapping": lambda: {0: 0.5, 1: 0.5},
    "texts": lambda: ["a", "b"],
    "None": lambda: None,
    "NaN": lambda: math.nan,
    "infinity": lambda: math.inf,
    "a huge number": lambda: 10**400,
    "a huge float": lambda: -1e308,
    "a number beyond 64 bits as numpy has it": lambda: np.uint64(2**63),
    "a complex number": lambda: np.complex128(1j),
    "rows of different lengths": lambda: [[0.5], [0.5, 0.5]],
    "an empty array": lambda: np.empty(0),
    "an array of objects": lambda: np.array([None, 0.5], dtype=object),
    "a masked array": lambda: np.ma.masked_array([0.5, 0.5, 7.0], mask=[0, 0, 1]),
    "a list with a masked entry": lambda: [0.5, np.ma.masked],
    "a complex array": lambda: np.array([1j, 0]),
    "a meta tensor": lambda: torch.empty(2, device="meta"),
    "a sparse tensor": lambda: torch.tensor([0.5, 0.5]).to_sparse(),
    "a tensor of 16 bits": lambda: torch.tensor([0.5, 0.5], dtype=torch.bfloat16),
    "a tensor with a gradient": lambda: torch.tensor([0.5, 0.5], requires_grad=True),
    "a generator": lambda: (each for each in [0.5, 0.5]),
    "a path": lambda: Path("nowhere"),
}
