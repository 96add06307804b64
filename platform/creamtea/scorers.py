"""Scorers: the programs that compute metrics of kind `command`, in environments of their own.

A study is data: it only names a scorer. The file of CREAMTEA_SCORERS, which belongs to the machine, defines
the program. Every worker needs the same scorers as the machine that plans the study.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from creamtea.document.document import read_checked
from creamtea.document.mistakes import one_of, shown
from creamtea.document.values import Above0, Name, Strict, digest
from creamtea.errors import InputError
from creamtea.files import open_regular
from creamtea.settings import Settings

MODEL = "{model}"  # in a command, stands for the path of the study's model on this machine
Word = Annotated[str, Field(min_length=1)]
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|node|Rscript|julia|bash|dash|sh|zsh)[\d.]*")
_NO_SCRIPT = re.compile(r"-\w*[cem]")  # options followed by code or a module's name
_WITH_VALUES = ("-W", "-X")  # options of Python
_FILE = re.compile(r"\S*/\S*|\S+\.\w+")


class Scorer(Strict):
    """A program that scores segments.

    `command`: the program's absolute path and its arguments, which no shell reads. `version` covers
    dependencies that `files` do not: packages, weights inside the program. `files`: further files and folders
    that the scores depend on. `environment`: variables for the program, also secrets.
    """

    command: Annotated[list[Word], Field(min_length=1)]  # program and arguments; no shell reads them
    version: Word  # version of the program; another version makes scores anew
    # [minutes] without a line of output, after which the program is stopped
    timeout_minutes: Above0 = 60.0
    files: list[Word] = Field(default=[])  # paths that the program reads, pinned by their content
    environment: dict[str, str] = Field(default={}, repr=False)  # variables of the program
    reference_free: bool = False  # it scores without references; if there are none, it gets empty ones
    better: Literal["higher", "lower"] = "higher"  # which scores are good, for `creamtea compare`

    @property
    def takes_model(self) -> bool:
        return any(MODEL in word for word in self.command)

    def mistake(self) -> tuple[str, str]:
        """Return a mistake on this machine, and what is allowed instead; ("", "") if there is none."""
        program = Path(self.command[0])
        if not (program.is_absolute() and program.is_file() and os.access(program, os.X_OK)):
            return f"{shown(str(program))} as its program", "the absolute path of a program"
        script = _script(self.command)
        if script and not Path(script).is_absolute():
            here = Path(script).absolute()
            allowed = "its absolute path" + f", {here}" * here.exists() + "; it runs in an empty folder"
            return f"{shown(script)} as the script of its command", allowed
        if script and not Path(script).exists():
            return f"{shown(script)} as the script of its command", "the absolute path of a script"
        for file in map(Path, self.files):
            if not (file.is_absolute() and file.exists()):
                return f"{shown(str(file))} in its files", "absolute paths of files and folders"
        return "", ""

    def pins(self) -> ScorerPins:
        """Return the scorer's identity, which does not depend on the paths of its files."""
        arguments = [_content(word) or word for word in self.command[1:]]
        # an interpreter or compiled program of the same version differs between machines, a script should not
        with Path(self.command[0]).open("rb") as file:
            is_script = file.read(2) == b"#!"
        program = _content(self.command[0]) if is_script else ""
        files = [content_digest(Path(file)) for file in self.files]
        return ScorerPins(version=self.version, digest=digest([program, arguments, files]))


class ScorerPins(Strict):
    """The identity of a scorer in a step's key.

    `digest` covers the arguments and the content of the files.
    """

    version: str
    digest: str


class _File(Strict):
    scorers: dict[Name, Scorer]


class UnknownScorer(Exception):
    """This machine lacks a scorer; the message says what was found and what is allowed."""

    def __init__(self, found: str, allowed: str) -> None:
        super().__init__(f"{found}; allowed: {allowed}")
        self.found, self.allowed = found, allowed


def find_scorer(name: str, with_model: bool) -> Scorer:
    """Return a scorer that is ready on this machine, for a metric with or without a model.

    Raises UnknownScorer, or InputError for a broken file of scorers.
    """
    path = Settings.load().scorers
    if path is None:
        raise UnknownScorer(
            shown(name),
            "a scorer of this machine, and it has none: set CREAMTEA_SCORERS to a file that lists them "
            "(docs/scorers.md)",
        )
    scorers = read_scorers(path)
    if name not in scorers:
        raise UnknownScorer(shown(name), one_of(scorers, name, f"a scorer of {path}"))
    found, allowed = scorers[name].mistake()
    if found:
        raise UnknownScorer(f"{shown(name)}, which has {found} in {path}", allowed)
    if scorers[name].takes_model != with_model:
        found = f"{shown(name)} {'with' if with_model else 'without'} a model"
        how = "without" if with_model else "with"
        raise UnknownScorer(found, f"this scorer {how} a `model`, as {path} has its command {how} {MODEL}")
    return scorers[name]


def read_scorers(path: Path) -> dict[str, Scorer]:
    """Read a file of scorers. Raise InputError with every mistake, also if anybody may change the file."""
    if not path.is_absolute():
        raise InputError(f"CREAMTEA_SCORERS must be an absolute path, not {str(path)!r}")
    if not path.exists():
        raise InputError(f"CREAMTEA_SCORERS: no such file {path}; give the path of a list of scorers")
    if path.is_file() and path.stat().st_mode & stat.S_IWOTH:
        raise InputError(
            f"{path} names programs that creamtea runs, and every user of this machine may change it: "
            "remove that right (chmod o-w)"
        )
    return read_checked(path, _File, "scorers", "a list of scorers (YAML or JSON)").scorers


def content_digest(path: Path) -> str:
    """Return the sha256 of a file, or of a folder's files and names. Raise InputError if unreadable."""
    if not path.is_dir():
        try:
            with open_regular(path) as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror})") from None
    parts: dict[str, str] = {}
    read: dict[str, str] = {}  # folders by real path, so that loops of links end and nothing is read twice
    for place, folders, names in os.walk(path, onerror=_refuse, followlinks=True):
        inside = os.path.relpath(place, path)
        if (first := read.setdefault(os.path.realpath(place), inside)) != inside:
            parts[inside] = f"the folder {first}"
            folders.clear()
            continue
        folders.sort()
        files = [Path(place) / name for name in sorted(names)]
        parts |= {str(file.relative_to(path)): content_digest(file) for file in files}
    return digest(parts)


def _refuse(error: OSError) -> None:
    raise InputError(f"{error.filename} cannot be read ({error.strerror})") from None


def _content(word: str) -> str:
    """Return the digest of the file if an argument is an absolute path of one, else ""."""
    path = Path(word)
    return f"sha256:{content_digest(path)}" if path.is_absolute() and path.is_file() else ""


def _script(command: list[str]) -> str:
    """Return the script that an interpreter of this machine runs, or "" if that is not certain.

    Arguments of other programs may be paths in a container or on another machine.
    """
    if not _INTERPRETER.fullmatch(Path(command[0]).name):
        return ""
    words = iter(command[1:])
    for word in words:
        if _NO_SCRIPT.fullmatch(word):
            return ""
        if word in _WITH_VALUES:
            next(words, "")
        elif not word.startswith("-"):
            return word if _FILE.fullmatch(word) and MODEL not in word else ""
    return ""
