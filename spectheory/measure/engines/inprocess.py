"""Engines that are Python packages: run in an interpreter of their own, by a script that needs nothing of this one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from spectheory.errors import EngineError, SettingError, page
from spectheory.files import sole_writer
from spectheory.measure.engines import Engine, Job, Models
from spectheory.measure.engines.processes import find_program, running, version_of
from spectheory.measure.model_files import fingerprint_of
from spectheory.trace.calls import Request

_DRIVER = Path(__file__).with_name("driver.py")
"""The script that runs in the engine's interpreter."""
_VERSION = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"


class InProcess(Engine):
    """An engine that is a Python package; `program` is the Python it is installed for, else the running one.

    - `package`: its distribution, whose version is recorded; `remedy`: how to get it.
    - `writes`: script that writes a saved model in the engine's form; `runs`: what the driver runs, with the engine's
      settings.
    """

    package: ClassVar[str]
    remedy: ClassVar[str]
    writes: ClassVar[Path]
    runs: ClassVar[Path]

    def version(self) -> str:
        """Version of its package."""
        return version_of(self.name, [self._python(), "-c", _VERSION, self.package], self.remedy)

    def requests(self, job: Job, models: Models) -> Iterator[Request]:
        """Write the models in the engine's form if they are not there, and run the prompts in one process."""
        if job.drafts == "argmax" and job.sampling.temperature > 0:
            raise SettingError(
                f"{self.name} drafts no first choices at temperature {job.sampling.temperature:g}",
                limit="it samples its drafts",
                remedy="leave --drafts out",
            )
        end = _end_of_text(models.target)
        asked = {
            **self.settings(job),
            "target": str(self._written(models.target, models.work)),
            "draft": str(self._written(models.draft, models.work)) if job.k else None,
            "prompts": [(name, prompt, job.seed_of(name)) for name, prompt in job.prompts],
            "tokens": job.tokens,
            "k": job.k,
            "end": end,
        }
        prompts = dict(job.prompts)
        for line in self._answers(asked, models.work / f"{self.name}.log"):
            output, accepted = tuple(line["output"]), line.get("accepted")
            yield Request(
                line["id"],
                prompts[line["id"]],
                output,
                ended=bool(output) and output[-1] in end,
                accepted=tuple(accepted or ()),
                drafted=tuple(line.get("drafted", ())),
                calls=None if accepted is None else len(accepted),
                seconds=line["seconds"],
            )

    def _python(self) -> str:
        return find_program(self.name, self.program, sys.executable, self.remedy)

    def _written(self, saved: Path, work: Path) -> Path:
        """A model in the engine's form; it is written once, and appears when whole."""
        folder = work / f"{self.name}-{self.version()}" / f"{saved.name}-{fingerprint_of(saved, None)}"
        with sole_writer(folder):
            if not folder.is_dir():
                partial = folder.with_name(f".{folder.name}.partial")
                shutil.rmtree(partial, ignore_errors=True)
                command = [self._python(), str(self.writes), str(saved), str(partial)]
                silent: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.DEVNULL)
                with running(command, stderr=subprocess.PIPE, text=True, errors="replace", **silent) as process:
                    _, said = process.communicate()
                if process.returncode or not partial.is_dir():
                    shutil.rmtree(partial, ignore_errors=True)
                    raise self._failed(f"cannot write {saved.name} in its form", said, f"see {page('engines')}")
                partial.rename(folder)
        return folder

    def _answers(self, job: Mapping[str, Any], log: Path) -> Iterator[dict[str, Any]]:
        """Lines of the driver, as they come."""
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [self._python(), str(_DRIVER), str(self.runs)]
        pipe = subprocess.PIPE
        with (
            log.open("w+", encoding="utf-8", errors="replace") as said,
            running(command, stdin=pipe, stdout=pipe, stderr=said, text=True) as process,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError), process.stdin:  # a driver that is gone says why in its log
                process.stdin.write(json.dumps(job))
            for line in process.stdout:
                if line.endswith("\n"):  # a crash may tear the last one
                    yield json.loads(line)
            if process.wait():
                said.seek(0)
                reason = said.read() or f"exit status {process.returncode}"
                raise self._failed("stopped", reason, "finished requests are kept")

    def _failed(self, what: str, said: str, remedy: str) -> EngineError:
        reason = (said.strip() or "it said nothing").splitlines()[-1][:300]
        return EngineError(f"{self.name} {what}", limit=reason, remedy=remedy)


def _end_of_text(saved: Path) -> list[int]:
    """Token ids that end a text, as a saved model's generation settings, else its configuration, say."""
    for name in ("generation_config.json", "config.json"):
        if (saved / name).is_file():
            ids = json.loads((saved / name).read_text(encoding="utf-8")).get("eos_token_id")
            if ids is not None:
                return list(ids) if isinstance(ids, list) else [ids]
    return []
