"""``spectheory doctor``: what is installed, what is missing, and whether a pair's tokenizers agree."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from msgspec import UNSET
from packaging.requirements import Requirement

import spectheory
from spectheory.answers.doctor import DoctorJson
from spectheory.cli.answer import show
from spectheory.cli.options import DoctorOptions
from spectheory.cli.progress import working
from spectheory.cli.statuses import Status
from spectheory.errors import SettingError, SpectheoryError, load_extra
from spectheory.extensions import installed
from spectheory.processes import processors
from spectheory.prompts import read_prompts
from spectheory.reports import Column, Report, Table

LOOKED_AT = 8
"""Files of a package that are looked for."""
TOOLS = ("docs", "test")
"""Extras for those who work on spectheory."""
BROKEN = ("too old", "broken")
"""States that no user chose; a missing extra is no fault."""
HOPELESS = 2.0
"""Tokens of a call of the best draft with another tokenizer below which no draft is worth a try."""
Package = DoctorJson.Package


def _packages() -> list[Package]:
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
            version, state = _installed(asked)
            yield Package(extra=extra, name=asked.name, needs=str(asked.specifier), version=version, state=state)


def _extras() -> list[str]:
    known: list[str] = metadata.metadata("spectheory").get_all("Provides-Extra") or []
    return [each for each in known if each not in TOOLS]


def _installed(asked: Requirement) -> tuple[str | None, Any]:
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


def _torch() -> DoctorJson.Torch:
    """Torch's version, threads and devices; its import may fail in any way, which is the answer then."""
    try:
        with working("loading torch"):
            torch = import_module("torch")
        devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        devices += ["mps"] if torch.backends.mps.is_available() else []
        return DoctorJson.Torch(
            version=str(torch.__version__), threads=torch.get_num_threads(), devices=[*devices, "cpu"]
        )
    except (Exception, SystemExit) as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        return DoctorJson.Torch(error="not installed" if absent else _said(error)[:200])


def _kernel_cache() -> DoctorJson.KernelCache:
    """The folder where compiled kernels are kept; null where each process compiles them again."""
    try:
        kernel: Any = import_module("spectheory.kernels.logits")
        loop = next(each for each in vars(kernel).values() if hasattr(each, "py_func"))
        return DoctorJson.KernelCache(folder=getattr(loop._cache, "cache_path", None))
    except (Exception, SystemExit) as error:
        return DoctorJson.KernelCache(error=_said(error)[:200])


def _extensions() -> list[DoctorJson.Extension]:
    """Rules and formats that installed packages register; `error` says why one is left out."""
    from spectheory.trace.importers import Format, formats
    from spectheory.trace.reading import GROUP as FORMATS_GROUP
    from spectheory.verification import Rule
    from spectheory.verification.registry import BUILT_IN
    from spectheory.verification.registry import GROUP as RULES_GROUP

    kinds = ((RULES_GROUP, Rule, {rule.name for rule in BUILT_IN}), (FORMATS_GROUP, Format, set(formats())))
    return [
        DoctorJson.Extension(group=group, name=name, error=_left_out(entry, taken))
        for group, kind, taken in kinds
        for name, entry in installed(group, kind).items()
    ]


def _left_out(entry: Any, taken: set[str]) -> str | None:
    if isinstance(entry, SettingError):
        return str(entry)
    return f"{entry.name!r} is built in" if entry.name in taken else None


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def run_doctor(question: DoctorOptions) -> int:
    """Look, and say what was found; what is wrong here is an answer, not an error. The status says if a pair fits."""
    if (question.target is None) != (question.draft is None):
        raise SettingError(
            f"--{'draft' if question.draft is None else 'target'} is missing",
            limit="tokenizers are compared",
            remedy="name both models, or none",
        )
    models = (
        _models(question.target, question.draft) if question.target is not None and question.draft is not None else None
    )
    packages, torch, cache, extensions = _packages(), _torch(), _kernel_cache(), _extensions()
    wrong = list(dict.fromkeys(_problems(packages, torch, cache, models)))
    wrong += [f"{each.name} of {each.group} is left out: {each.error}." for each in extensions if each.error]
    extras = []
    for name in dict.fromkeys(each.extra for each in packages if each.extra):
        lacks = [each.name for each in packages if each.extra == name and each.state != "ok"]
        install = f"pip install 'spectheory[{name}]'"
        extras.append(DoctorJson.Extra(name=name, ready=not lacks, lacks=lacks, install=install))
    content = DoctorJson(
        version=spectheory.__version__,
        machine=DoctorJson.Machine(
            python=platform.python_version(),
            system=platform.platform(),
            cores=processors(),
            omp_num_threads=os.environ.get("OMP_NUM_THREADS"),
        ),
        packages=packages,
        extras=extras,
        torch=torch,
        kernel_cache=cache,
        extensions=extensions,
        models=models or UNSET,
        problems=wrong,
    )
    ready = ", ".join(each.name for each in extras if each.ready) or "none"
    said = (
        f"{len(wrong)} problem{'s' * (len(wrong) != 1)}: {wrong[0].removesuffix('.')}" if wrong else "no problem found"
    )
    headline = f"spectheory {spectheory.__version__}: {said}; extras that are ready: {ready}"
    missing = [f"For {each.name}: {each.install} (lacks {', '.join(each.lacks)})." for each in extras if each.lacks]
    show(Report(content, [_facts(content), _table(packages)], headline, [*wrong, *missing]), question)
    return Status.DISAGREEMENT if models and (models.error or _hopeless(models)) else Status.DONE


def _models(target: str, draft: str) -> DoctorJson.Models:
    """Whether both models use the same token ids; no weights are read."""
    try:
        load_extra("transformers", extra="models")
        from spectheory.measure.load import tokenizers_of
        from spectheory.pairs import PROMPTS, resolve

        tokenizer, common, head = tokenizers_of((resolve(target), None), (resolve(draft), None))
        models = DoctorJson.Models(
            target=target, draft=draft, agree=common is None, tokens=len(tokenizer.get_vocab()), head=head
        )
        if common is not None:
            share = common.share([tokenizer(prompt.text)["input_ids"] for prompt in read_prompts(PROMPTS)])
            models.common, models.share = common.count, share
            models.most_tokens_per_call = None if share == 1 else 1 / (1 - share)
        return models
    except (Exception, SystemExit) as error:  # a broken install fails in any way
        said = str(error) if isinstance(error, SpectheoryError) else _said(error)
        return DoctorJson.Models(target=target, draft=draft, agree=False, error=said)


def _problems(
    packages: Sequence[Package],
    torch: DoctorJson.Torch,
    cache: DoctorJson.KernelCache,
    models: DoctorJson.Models | None,
) -> Iterator[str]:
    """What is wrong, a sentence each with its remedy."""
    if not packages:
        yield "spectheory is imported from its sources and is not installed: pip install -e . says what it needs."
    for each in packages:
        if each.state in BROKEN or (each.state == "missing" and not each.extra):
            words = {"too old": f"{each.version} is too old", "broken": "has lost its files"}.get(
                each.state, "is missing"
            )
            yield f"{each.name} {words}: pip install --force-reinstall '{each.name}{each.needs}'."
    if torch.error and any(each.name == "torch" and each.state == "ok" for each in packages):
        yield f"torch is installed and cannot be imported ({torch.error}): install it again."
    if cache.error:
        yield f"compiled kernels cannot be loaded ({cache.error}): install numba again."
    elif cache.folder is None:
        yield "no folder can be written for compiled kernels: set NUMBA_CACHE_DIR, or each process compiles them again."
    if models and models.error:
        yield f"{models.error}."
    if models and _hopeless(models):
        yield (
            f"the draft lacks most of what the target writes: about {models.share:.0%} of its tokens are common, so "
            f"that a call gives about {models.most_tokens_per_call:.2f} tokens at most: choose a draft of its family."
        )


def _hopeless(models: DoctorJson.Models) -> bool:
    """Whether two tokenizers have so little in common that no draft of them is worth a try."""
    return bool(models.most_tokens_per_call and models.most_tokens_per_call < HOPELESS)


def _facts(content: DoctorJson) -> Table:
    of, torch, cache, models = content.machine, content.torch, content.kernel_cache, content.models
    rows = [
        ["Python", of.python],
        ["system", of.system],
        ["cores", f"{of.cores}" + (f", OMP_NUM_THREADS={of.omp_num_threads}" if of.omp_num_threads else "")],
        ["torch", torch.error or f"{torch.version} on {', '.join(torch.devices or ())}, threads: {torch.threads}"],
        ["compiled kernels", cache.folder or cache.error or "not kept"],
    ]
    if models:
        same = f"{models.tokens} tokens, the same ids" if models.agree else "they do not fit"
        if models.common and models.share:
            same = (
                f"other tokenizers; {models.common} of the target's {models.tokens} tokens are common and are drafted, "
                f"about {models.share:.1%} of a text (estimated from the built-in prompts)"
            )
        rows.append(["models", f"{models.target}, {models.draft}: {same}"])
    return Table("This machine", [Column("what", kind="words"), Column("found", kind="words")], rows)


def _table(packages: Sequence[Package]) -> Table:
    columns = [Column(name, kind="names") for name in ("package", "needed by", "needs", "found", "state")]
    by: dict[tuple[str, ...], list[str]] = {}
    for each in packages:
        by.setdefault((each.name, each.needs, each.version or "-", each.state), []).append(each.extra or "all")
    rows = [[name, ", ".join(users), needs, version, state] for (name, needs, version, state), users in by.items()]
    return Table("Packages", columns, rows)
