"""What is installed: packages and extensions, torch's device and threads, and the kernels' cache."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement

from spectheory.errors import SettingError
from spectheory.extensions import installed
from spectheory.processes import processors

LOOKED_AT = 8
"""Files of a package that are looked for."""
TOOLS = ("docs", "test")
"""Extras for those who work on spectheory."""
State = Literal["ok", "missing", "too old", "broken"]


@dataclass(frozen=True)
class Package:
    """A package that spectheory asks for, and what is there; `extra` is empty for what every install needs."""

    extra: str
    name: str
    needs: str
    version: str | None
    state: State


def packages() -> list[Package]:
    """Every package of the plain install and of the extras; none where spectheory itself is not installed."""
    try:
        asked = metadata.requires("spectheory") or []
    except metadata.PackageNotFoundError:
        return []
    return [each for line in asked for each in _asked_for(Requirement(line))]


def _asked_for(asked: Requirement) -> Iterator[Package]:
    """The package of a line, once for each extra that asks for it."""
    marker = asked.marker
    extras = [""] if marker is None or marker.evaluate({"extra": ""}) else _extras()
    for extra in extras:
        if marker is None or marker.evaluate({"extra": extra}):
            yield Package(extra, asked.name, str(asked.specifier), *_found(asked))


def _extras() -> list[str]:
    known: list[str] = metadata.metadata("spectheory").get_all("Provides-Extra") or []
    return [each for each in known if each not in TOOLS]


def _found(asked: Requirement) -> tuple[str | None, State]:
    """The installed version, and whether it will do; nothing is imported."""
    try:
        version = metadata.version(asked.name)
    except metadata.PackageNotFoundError:
        return None, "missing"
    code = [file for file in metadata.files(asked.name) or [] if file.suffix == ".py"][:LOOKED_AT]
    there = not code or any(Path(file.locate()).is_file() for file in code)
    if not there:
        return version, "broken"
    return version, "ok" if asked.specifier.contains(version, prereleases=True) else "too old"


def machine() -> dict[str, Any]:
    """Python, the system and the cores of this process."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": processors(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
    }


def torch_facts() -> dict[str, Any]:
    """Torch's version, threads and devices; its import may fail in any way, which is the answer then."""
    try:
        torch = import_module("torch")
        devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        devices += ["mps"] if torch.backends.mps.is_available() else []
        return {"version": str(torch.__version__), "threads": torch.get_num_threads(), "devices": [*devices, "cpu"]}
    except (Exception, SystemExit) as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        return {"error": "not installed" if absent else _said(error)}


def kernel_cache() -> dict[str, Any]:
    """The folder where compiled kernels are kept; null where each process compiles them again."""
    try:
        kernel: Any = import_module("spectheory.kernels.logits")
        found = next(each for each in vars(kernel).values() if hasattr(each, "py_func"))
        return {"folder": getattr(found._cache, "cache_path", None)}
    except (Exception, SystemExit) as error:
        return {"error": _said(error)}


def extensions() -> list[dict[str, Any]]:
    """Rules and formats that installed packages register; `error` says why one is left out."""
    from spectheory.trace.importers import Format, formats
    from spectheory.trace.reading import GROUP as FORMATS_GROUP
    from spectheory.verification import Rule
    from spectheory.verification.registry import BUILT_IN
    from spectheory.verification.registry import GROUP as RULES_GROUP

    kinds = ((RULES_GROUP, Rule, {rule.name for rule in BUILT_IN}), (FORMATS_GROUP, Format, set(formats())))
    return [
        {"group": group, "name": name, "error": _left_out(found, taken)}
        for group, kind, taken in kinds
        for name, found in installed(group, kind).items()
    ]


def _left_out(found: Any, taken: set[str]) -> str | None:
    if isinstance(found, SettingError):
        return str(found)
    return f"{found.name!r} is built in" if found.name in taken else None


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
