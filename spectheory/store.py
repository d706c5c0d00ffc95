"""One append-only file of finished work: a row is on the disk, whole, or it is not there.

The first line says what the file holds and which run it belongs to. Every further line is a row: a JSON object with a
hash of the line, perhaps followed by a payload in base64. A row counts once its newline is written. The next run cuts
off what a kill tore, a damaged row is left out, and any other file is refused untouched.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from spectheory.errors import FOREIGN, OutputError, SpectheoryError
from spectheory.files import lock

_LONGEST = 1 << 20
"""Bytes of the longest first line."""
_SEAL = b',"hash":"'


@dataclass(frozen=True)
class Contents:
    """What a kind of store holds, and in which words other files are refused.

    `mark` and `schema` stand in the first line, and `identity` takes from it what must agree for a run to continue. A
    file of another run holds `other`, for which `limit` says what must be the same. Rows of a public format are not
    `sealed` by a hash.
    """

    mark: str
    schema: int
    what: str
    error: type[SpectheoryError]
    remedy: str
    other: str = ""
    limit: str = ""
    identity: Callable[[Mapping[str, Any]], object] = itemgetter("fingerprint")
    sealed: bool = True

    def head(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """The first line of a file."""
        return {"spectheory": self.mark, "schema": self.schema, **more}


class Row(NamedTuple):
    """A row: its line in the file from 1, what it says, and where its bytes are."""

    line: int
    content: dict[str, Any]
    start: int
    size: int


@dataclass
class Rows:
    """What a file holds: its first line, the rows that are whole, the lines that are damaged or torn."""

    head: dict[str, Any] | None = None
    rows: list[Row] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    torn: bool = False
    lines: int = 1
    end: int = 0
    """Bytes of the lines that are whole."""

    def __iter__(self) -> Iterator[Row]:
        """The rows."""
        return iter(self.rows)


def read_rows(path: Path, contents: Contents) -> Rows:
    """What a file holds, also while a run appends to it; one that does not exist holds nothing."""
    try:
        with os.fdopen(_open_regular(path, os.O_RDONLY), "rb") as file:
            return _rows(file, path, contents)
    except FileNotFoundError:
        return Rows()
    except OSError as error:
        raise contents.error(
            f"{path} cannot be read ({error.strerror})", limit="needs a regular file", remedy=contents.remedy
        ) from error


def payload_of(path: Path, row: Row) -> bytes:
    """The payload of a row; an ``OSError`` if the row is no longer whole."""
    with path.open("rb") as file:
        file.seek(row.start)
        line = file.read(row.size)
    if _content(line, sealed=True) is None:
        raise OSError(errno.EIO, f"row {row.line} is damaged", str(path))
    return base64.b64decode(line.partition(b"\t")[2])


class Store:
    """A file that one run reads and appends to; use it in a ``with`` statement. `earlier` is what earlier runs left.

    A ``SpectheoryError`` says that another run appends to it, that it is of another run or no such store, an
    ``OutputError`` that it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from spectheory.errors import TextError
    >>> counts = Contents("counts", 1, "counts", TextError, "choose another file", "other counts", "the same die")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         with Store(Path(folder) / "counts.jsonl", counts, {"fingerprint": "a die"}) as store:
    ...             print([row.content for row in store.earlier], store.add({"sixes": 3}).line)
    [] 2
    [{'sixes': 3}] 3
    """

    def __init__(self, path: Path, contents: Contents, more: Mapping[str, Any]) -> None:
        self.path, self.contents, self.head = path, contents, contents.head(more)
        self.earlier = Rows()
        self._file = -1

    def __enter__(self) -> Self:
        """Open and lock the file, read it, and cut off a torn last row."""
        try:
            with contextlib.suppress(FileExistsError):  # opening says what is wrong with the folder
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _open_regular(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        except OSError as error:
            raise OutputError(
                f"{self.path} cannot be written ({error.strerror or error})",
                limit="needs a regular file on a writable disk",
                remedy=self.contents.remedy,
            ) from error
        try:
            self._refuse_outputs()
            if not lock(self._file):
                raise self.contents.error(
                    f"{self.path} is in use", limit="one run at a time appends", remedy="wait or choose another file"
                )
            self.earlier = self.check()
            os.ftruncate(self._file, self.earlier.end)
            if self.earlier.head is None:
                self._append(_json(self.head) + b"\n")
        except BaseException:
            os.close(self._file)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file and let go of it."""
        os.close(self._file)

    def check(self) -> Rows:
        """What the file holds, whether open or not; that of another run is refused."""
        rows, contents = read_rows(self.path, self.contents), self.contents
        if rows.head is not None and contents.identity(rows.head) != contents.identity(self.head):
            raise contents.error(f"{self.path} holds {contents.other}", limit=contents.limit, remedy=contents.remedy)
        return rows

    def add(self, content: Mapping[str, Any], payload: bytes | None = None) -> Row:
        """Append a row; when this returns it is on the disk."""
        line = _json(content) + b"\n"
        if self.contents.sealed:
            body, tail = line[:-1], b"" if payload is None else b"\t" + base64.b64encode(payload)
            line = b"".join([body[:-1], _SEAL, _hash(body, tail), b'"}', tail, b"\n"])
        start = self.earlier.end
        self._append(line)
        self.earlier.lines += 1
        return Row(self.earlier.lines, dict(content), start, len(line))

    def _append(self, line: bytes) -> None:
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
            os.fsync(self._file)
        except BaseException as error:
            if not isinstance(error, OSError) and os.fstat(self._file).st_size == self.earlier.end + len(line):
                self.earlier.end += len(line)  # interrupted when all was written: the row counts
                self.earlier.lines += 1
                raise
            with contextlib.suppress(OSError):  # a torn row left here is dropped by the next run
                os.ftruncate(self._file, self.earlier.end)
            if isinstance(error, OSError):
                raise OutputError(
                    f"{self.path} cannot be written ({error.strerror or error})",
                    limit="needs a disk with room; finished rows stay",
                    remedy="make room and run again, it continues",
                ) from error
            raise
        self.earlier.end += len(line)

    def _refuse_outputs(self) -> None:
        """Refuse /dev/stdout and the like, and a file that the shell sends answers or remarks to."""
        for stream in {1, 2} - {self._file}:
            with contextlib.suppress(OSError):  # the stream is closed
                if os.path.samestat(os.fstat(stream), os.fstat(self._file)):
                    raise self.contents.error(
                        f"{self.path} is where output goes", limit="rows need their own", remedy="choose another file"
                    )


def _open_regular(path: Path, flags: int) -> int:
    """Open a regular file; a pipe or a device is refused without waiting for it."""
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        folder = stat.S_ISDIR(os.fstat(file).st_mode)
        os.close(file)
        raise OSError(errno.EINVAL, "a folder, not a regular file" if folder else "not a regular file")
    return file


def _rows(file: IO[bytes], path: Path, contents: Contents) -> Rows:
    first = file.readline(_LONGEST)
    head = _head(first, contents)
    if head is None:
        raise contents.error(
            f"{path} begins with {first[:30].decode(errors='replace')!r}",
            limit=f"holds no {contents.what}",
            remedy=contents.remedy,
        )
    if not first.endswith(b"\n"):
        return Rows(torn=bool(first))
    rows = Rows(head, end=len(first))
    for number, line in enumerate(file, start=2):
        if not line.endswith(b"\n"):
            rows.torn = True
            break
        content = _content(line, contents.sealed)
        if content is None:
            rows.damaged.append(number)
        else:
            rows.rows.append(Row(number, content, rows.end, len(line)))
        rows.end += len(line)
        rows.lines = number
    return rows


def _head(first: bytes, contents: Contents) -> dict[str, Any] | None:
    """What a first line says, nothing if it is torn; None if it is that of another kind of file."""
    identity = contents.head({})
    if not first.endswith(b"\n"):
        start = _json(identity)[:-1]
        return {} if first.startswith(start) or start.startswith(first) else None
    try:
        head: dict[str, Any] = json.loads(first)
        contents.identity(head)
        return head if {name: head[name] for name in identity} == identity else None
    except FOREIGN:
        return None


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _content(line: bytes, sealed: bool) -> dict[str, Any] | None:
    """What a row says; None if it is damaged."""
    text, tab, payload = line.removesuffix(b"\n").partition(b"\t")
    if sealed:
        start, _, seal = text.rpartition(_SEAL)
        text = start + b"}"
        if seal != _hash(text, tab + payload) + b'"}':
            return None
    try:
        content = json.loads(text)
    except FOREIGN:
        return None
    return content if isinstance(content, dict) else None


def _hash(body: bytes, tail: bytes) -> bytes:
    return hashlib.sha256(body + tail).hexdigest()[:16].encode()
