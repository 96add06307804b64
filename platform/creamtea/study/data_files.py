"""The user's files of a study under --data: digests and places, and every mistake in them."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from creamtea.document.mistakes import KeyPath, Mistake, shown
from creamtea.errors import InputError
from creamtea.files import HEAD, OLD_MAC, open_regular, other_than_text, unpacked
from creamtea.marian import MarianFolder, UnusableModel
from creamtea.marian_files import read_marian
from creamtea.methods.architectures import Layered, TransformerArchitecture
from creamtea.methods.planning import CheckedFile, File
from creamtea.scorers import ScorerPins, UnknownScorer, content_digest
from creamtea.shipped import MAP, ShippedFolder, read_shipped
from creamtea.study.spec import ImportedModel, ShippedModel, System
from creamtea.study.survey import lines_of
from creamtea.wording import counted, option

BLOCK = 1 << 20  # bytes


class UnreadableFile(Exception):
    """The file is unreadable; the message says what was found instead."""


@dataclass(frozen=True)
class TextFacts:
    digest: str  # sha256 of the unpacked content, which a worker compares (`corpora.text.UserFile`)
    lines: int  # lines of the unpacked text, split on \n only; a last line without \n counts
    blank: bool  # True for nothing but white space
    invalid_line: int | None  # the first line (from 1) that is not UTF-8
    nul_line: int | None = None  # the first line with a NUL character


def scan(path: Path) -> TextFacts:
    """Read a plain or gzip file in constant memory. Raise UnreadableFile if that fails."""
    newlines, returns, blank, last = 0, 0, True, b"\n"
    invalid: int | None = None
    nul: int | None = None
    digest = hashlib.sha256()
    decoder = codecs.getincrementaldecoder("utf-8")()  # a character may end in the next block
    try:
        with open_regular(path) as file:
            text = unpacked(file)
            start = text.read(HEAD)
            if what := other_than_text(start)[0]:
                raise UnreadableFile(what)
            for block in chain([start], iter(lambda: text.read(BLOCK), b"")):
                digest.update(block)
                try:
                    decoder.decode(block)
                except UnicodeDecodeError as error:
                    if invalid is None:
                        invalid = newlines + error.object.count(b"\n", 0, error.start) + 1
                if block is start:
                    block = block.removeprefix(codecs.BOM_UTF8)  # the mark is not text
                if nul is None and (place := block.find(b"\0")) >= 0:
                    nul = newlines + block.count(b"\n", 0, place) + 1
                newlines += block.count(b"\n")
                returns += block.count(b"\r")
                blank = blank and not block.strip()
                last = block[-1:] or last
    except FileNotFoundError:
        raise UnreadableFile("no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableFile(f"a damaged gzip file ({error})") from None
    except OSError as error:
        raise UnreadableFile(f"a file that cannot be read ({error.strerror})") from None
    lines = newlines + (last != b"\n")
    if invalid is None and decoder.getstate()[0]:  # the text ends inside a character
        invalid = lines
    if lines == 1 and returns > 1:
        raise UnreadableFile(OLD_MAC)
    return TextFacts(digest.hexdigest(), lines, blank, invalid, nul)


def digest_if_readable(path: Path) -> str | None:
    """Return the digest of a text file; None if it cannot be read, which the plan reports."""
    try:
        return scan(path).digest
    except UnreadableFile:
        return None


# ---------------------------------------------------------------- the files of a study

STORED = ("test_sets", "systems")  # parts of a study whose texts are stored in the database
MAX_LINES = 5  # wrong lines of a file to report one by one


@dataclass
class DataFiles:
    """The files of a study below `root`.

    With `root` None no file is read, so there are no mistakes and no digests. `names`: names of files in
    messages, instead of their paths.
    """

    root: Path | None
    confined: bool = False  # paths that lead out of `root` are mistakes, and are never opened
    names: Mapping[str, str] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    _facts: dict[str, TextFacts | None] = field(default_factory=dict)
    _models: dict[str, MarianFolder | ShippedFolder | None] = field(default_factory=dict)
    _outside: set[str] = field(default_factory=set)
    _read: set[File] = field(default_factory=set)

    def aligned(
        self, files: Sequence[tuple[KeyPath, str]], outputs: Sequence[tuple[KeyPath, str]] = ()
    ) -> None:
        """Check files whose lines belong together, as (place in the study, path); compare with the first.

        A file of `outputs` may consist of empty lines, if the system never answered.
        """
        if self.root is not None and not self.root.is_dir():
            raise InputError(
                f"{option('data')} {self.root}: no such folder; give the folder that holds the study's files"
            )
        facts = [self._scan(key, path) for key, path in files]
        facts += [self._scan(key, path, empty_lines=True) for key, path in outputs]
        for (key, path), of_file in zip([*files, *outputs], facts, strict=True):
            if of_file is not None and of_file.nul_line is not None and key[0] in STORED:
                found = f"{shown(self._name(path))}: line {of_file.nul_line:,} has a NUL character (U+0000)"
                self.mistakes.append(Mistake(key, found, "text that a database can hold; take it out"))
        first = facts[0]
        for (key, path), other in zip([*files, *outputs][1:], facts[1:], strict=True):
            if first is not None and other is not None and first.lines != other.lines:
                leading, name = self._name(files[0][1]), self._name(path)
                message = f"{counted(first.lines, 'line')} in {leading} and {other.lines:,} in {name}"
                allowed = "equal counts: line n of one file belongs to line n of the other; align them again"
                self.mistakes.append(Mistake(key, message, allowed))

    def readable(self, checked: CheckedFile) -> None:
        """Check each line of a file. Add mistakes for the first few wrong lines, and one for all others.

        A file is read once for each place in the study.
        """
        key, path = checked.file
        if self.root is None or checked.file in self._read or self._scan(key, path) is None:
            return
        self._read.add(checked.file)
        wrong = 0
        lines = islice(lines_of(self.root / path), checked.lines)
        for number, line in enumerate(lines, start=1):
            try:
                checked.read(line)
            except ValueError as error:
                wrong += 1
                if wrong <= MAX_LINES:
                    found = f"{shown(self._name(path))}, line {number:,}: {error}"
                    self.mistakes.append(Mistake(key, found, checked.allowed))
        if wrong > MAX_LINES:
            found = f"{shown(self._name(path))}: {wrong - MAX_LINES:,} more such lines"
            self.mistakes.append(Mistake(key, found, checked.allowed))

    def digests(self, paths: Sequence[str]) -> dict[str, str]:
        known = {path: self._facts.get(path) for path in paths}
        return {path: facts.digest for path, facts in known.items() if facts is not None}

    def checkpoint(self, path: str | None) -> dict[str, str]:
        """Return {path: sha256} of a metric's checkpoint, a file or folder; {} if there is none."""
        if path is None or self.root is None or self._refused((), path):
            return {}
        if not (place := self.root / path).exists():
            return {}
        return {path: content_digest(place)}

    def model_digest(self, key: KeyPath, spec: ImportedModel | ShippedModel) -> str:
        """Return the digest of an imported model's folder.

        An unusable folder is one mistake, however often this is called.
        """
        path, read = spec.path, read_marian if isinstance(spec, ImportedModel) else read_shipped
        if self.root is None or self._refused(key, path):
            return ""
        if path not in self._models:
            self._models[path] = None
            try:
                self._models[path] = read(self.root / path)
            except UnusableModel as error:
                self.mistakes.append(Mistake(key, f"{shown(path)}: {error.found}", error.allowed))
            except OSError as error:
                found = f"{shown(path)}: a folder that cannot be read ({error.strerror})"
                self.mistakes.append(Mistake(key, found, "a folder with a model"))
        model = self._models[path]
        return "" if model is None else model.digest

    def check_shipped(self, key: KeyPath, system: System, model: ShippedModel) -> None:
        """Check that a CTranslate2 folder has the precision and the map that its system names."""
        folder = self._models.get(model.path)
        if not isinstance(folder, ShippedFolder):
            return
        if folder.weights.startswith("int") and system.precision != "int8":
            found = f"{system.precision}, and the weights in {model.path} are {folder.weights}"
            self.mistakes.append(Mistake((*key, "precision"), found, "int8, as they are"))
        if system.selection.selects and MAP not in folder.files:
            found = f"vmap, and {model.path} has no {MAP}"
            self.mistakes.append(
                Mistake((*key, "selection", "kind"), found, "full, or a folder with its map")
            )

    def architecture(self, path: str) -> Layered:
        """Return the architecture of an imported model; the default if its folder is unusable."""
        model = self._models.get(path)
        return model.architecture if isinstance(model, MarianFolder) else TransformerArchitecture()

    def scorer(self, key: KeyPath, pins: Callable[[], ScorerPins | None]) -> ScorerPins | None:
        """Return the pins of a metric's scorer; add a mistake and return None if this machine lacks it."""
        if self.root is None:
            return None
        try:
            return pins()
        except UnknownScorer as error:
            self.mistakes.append(Mistake(key, error.found, error.allowed))
            return None

    def locations(self, paths: Sequence[str]) -> dict[str, str]:
        if self.root is None:
            return {}
        try:
            str(self.root.absolute()).encode()
        except UnicodeEncodeError:  # a lone surrogate, by which Python represents a byte that is not UTF-8
            raise InputError(
                f"{option('data')} {str(self.root.absolute())!r}: the path is not UTF-8, so that no database "
                "can store where the study's files are; rename the folder, or give another"
            ) from None
        inside = [path for path in paths if not self._refused((), path)]
        return {path: str((self.root / path).absolute()) for path in inside}

    def _refused(self, key: KeyPath, path: str) -> bool:
        """Return True if the path leads out of a folder that is confined; add the mistake once."""
        if self._escapes(path) and path not in self._outside:
            self._outside.add(path)
            inside = "a path inside the folder of data, symbolic links followed"
            self.mistakes.append(Mistake(key, f"{shown(path)}: outside the folder of data", inside))
        return path in self._outside

    def _escapes(self, path: str) -> bool:
        """Return True if the path leads out. Does not reveal whether something exists there."""
        if not self.confined or self.root is None:
            return False
        try:
            return not (self.root / path).resolve().is_relative_to(self.root.resolve())
        except (OSError, RuntimeError, ValueError):  # a loop of links, a name that no file system takes
            return True

    def _name(self, path: str) -> str:
        return self.names.get(path, path)

    def _scan(self, key: KeyPath, path: str, empty_lines: bool = False) -> TextFacts | None:
        """Return the facts of a good file; add one mistake, and return None, for a bad one."""
        if self.root is None:
            return None
        if path not in self._facts:
            self._facts[path] = self._check(key, path, self.root / path)
        facts = self._facts[path]
        if facts is not None and facts.blank and not (empty_lines and facts.lines):
            found = f"{shown(self._name(path))}: a file without text"
            self.mistakes.append(Mistake(key, found, "at least one sentence"))
            self._facts[path] = None
        return self._facts[path]

    def _check(self, key: KeyPath, path: str, place: Path) -> TextFacts | None:
        """Read a text file; add a mistake and return None if it is not readable text."""
        if self._refused(key, path):
            return None
        allowed = f"a text file, plain or gzip; paths are taken relative to the study or to {option('data')}"
        try:
            facts = scan(place)
        except UnreadableFile as error:
            # a file that a person named needs no location
            at = "" if path in self.names else f" at {place}"
            self.mistakes.append(Mistake(key, f"{shown(self._name(path))}: {error}{at}", allowed))
            return None
        if facts.invalid_line is not None:
            found = f"{shown(self._name(path))}: line {facts.invalid_line:,} is not UTF-8"
            self.mistakes.append(Mistake(key, found, "UTF-8 text; convert the file (iconv -t UTF-8)"))
            return None
        return facts
