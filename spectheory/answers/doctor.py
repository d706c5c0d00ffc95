"""What ``spectheory doctor`` writes."""

from typing import Annotated, Literal

from msgspec import UNSET

from spectheory.answers.base import Count, Maybe, Part, says


class DoctorJson(Part, kw_only=True):
    """`spectheory doctor --json`."""

    schema, has_headline = 1, True

    class Machine(Part):
        """Python, the system and the cores of this process."""

        python: str
        system: str
        cores: Count
        omp_num_threads: str | None

    class Package(Part):
        """A package that the install or an extra asks for."""

        extra: str
        name: str
        needs: str
        version: str | None
        state: Literal["ok", "missing", "too old", "broken"]

    class Extra(Part):
        """An extra."""

        name: str
        ready: bool
        lacks: list[str]
        install: str

    class Torch(Part):
        """Its version, threads and devices, or why it cannot be imported."""

        version: Maybe[str] = UNSET
        threads: Maybe[Count] = UNSET
        devices: Maybe[list[str]] = UNSET
        error: Maybe[str] = UNSET

    class KernelCache(Part):
        """Where compiled kernels are kept."""

        folder: Maybe[str | None] = UNSET
        error: Maybe[str] = UNSET

    class Extension(Part):
        """A rule or format that an installed package registers."""

        group: str
        name: str
        error: str | None

    class Models(Part):
        """Whether a pair's tokens agree; of a draft with another tokenizer, what is common, before any pass."""

        target: str
        draft: str
        agree: bool
        tokens: Maybe[Count] = UNSET
        common: Maybe[Annotated[Count, says("tokens that both have, the only ones that are drafted")]] = UNSET
        share: Maybe[
            Annotated[float, says("of the built-in prompts' tokens: an estimate of the target's mass on them")]
        ] = UNSET
        most_tokens_per_call: Maybe[
            Annotated[float | None, says("1 / (1 - share), whatever the draft and k: an estimate; null: no limit")]
        ] = UNSET
        head: Maybe[bool] = UNSET
        error: Maybe[str] = UNSET

    version: Annotated[str, says("of spectheory")]
    machine: Annotated[Machine, says("Python, the system and the cores of this process")]
    packages: Annotated[list[Package], says("what the plain install (`extra` is empty) and the extras ask for")]
    extras: Annotated[list[Extra], says("every extra, and how to install it")]
    torch: Annotated[Torch, says("its version, threads and devices, or why it cannot be imported")]
    kernel_cache: Annotated[KernelCache, says("where compiled kernels are kept")]
    extensions: Annotated[
        list[Extension], says("rules and formats that installed packages register, and why one is left out")
    ]
    models: Maybe[Annotated[Models, says("whether a pair's tokens agree")]] = UNSET
    problems: Annotated[list[str], says("what is wrong, with its remedy")]
