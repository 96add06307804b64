"""The texts of a campaign from files: sources, outputs of systems, references and documents of one direction.

Two layouts are read:
- text files with one line per segment, as mt-metrics-eval names them: `sources/PAIR.txt`,
  `system-outputs/PAIR/SYSTEM.txt`, `references/PAIR.NAME.txt`, `documents/PAIR.docs`;
- WMT's JSON Lines with one document per line, of all directions: a test set (`doc_id`, `src_text`, `refs`)
  with the outputs beside the sources (`tgt_text`: 2024, 2025) or in a file per system (`doc_id`,
  `hypothesis`: 2025, 2026). Documents are cut into paragraphs, as WMT's own scripts cut them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from creamtea.document.document import read_lines
from creamtea.document.mistakes import one_of, shown
from creamtea.errors import InputError, about, wrong
from creamtea.files import lines_of, read_storable
from creamtea.human.making.outputs import Documents, Texts, read_documents
from creamtea.human.making.settings import TextsBlock
from creamtea.wording import counted, file_name
from creamtea.words import look_alikes

MAX_BYTES = 200_000_000  # of a text file
JSON_ENDINGS = (".jsonl", ".json")
# between paragraphs: a blank line, or the line end between two of WMT 2026's <p>
PARAGRAPHS = re.compile(r"\n\n|(?<=</p>)\n(?=<p>)")
REFERENCE = re.compile(r"ref[A-Z]\w*")  # among WMT's outputs


def read_texts(asked: TextsBlock, folder: Path, systems: Sequence[str], documents: Documents | None) -> Texts:
    """Read the files that a campaign's `texts` names; only the outputs of `systems` if any are given.

    `documents` are those that the campaign names itself. InputError names the file and the remedy if a file
    is missing, line or document counts differ, or a system has no outputs.
    """
    pair = asked.languages or ""
    source, _, target = pair.partition("-")
    if not source or not target or "-" in target:
        raise wrong(
            "texts.languages",
            f"{shown(pair)}: give the codes of source and target with a hyphen between them, as en-de; "
            "within a code use _ (en-pt_BR)",
        )
    base = None if asked.folder is None else folder / asked.folder
    read = Texts((source.replace("_", "-"), target.replace("_", "-")))

    def path(name: str | None, key: str, *usual: str) -> Path:
        if name is not None:
            return folder / name
        if base is None:
            raise wrong(f"texts.{key}", "name it, or a folder in mt-metrics-eval's layout")
        return base.joinpath(*usual)

    if base is not None and not base.is_dir():
        raise wrong(
            "texts.folder", f"{file_name(base)}: no such folder: give one in mt-metrics-eval's layout"
        )
    sources = path(asked.sources, "sources", "sources", f"{pair}.txt")
    if base is not None and asked.sources is None and not sources.is_file():
        pairs = sorted(each.stem for each in sources.parent.glob("*.txt"))
        if not pairs:
            layout = "give a folder in mt-metrics-eval's layout"
            raise wrong("texts.folder", f"{file_name(base)}: it has no sources/PAIR.txt: {layout}")
        listed = one_of(pairs, pair, "there are")
        raise wrong("texts.languages", f"{file_name(sources)}: no such file; {listed}")
    if sources.suffix in JSON_ENDINGS:
        if asked.reference_files:
            raise wrong("texts.references", f"those of {file_name(sources)} are in it: leave this out")
        outputs = None if asked.outputs is None else folder / asked.outputs
        _read_json(read, sources, outputs, pair, systems)
    else:
        outputs = path(asked.outputs, "outputs", "system-outputs", pair)
        references = [folder / name for name in asked.reference_files or ()]
        if asked.reference_files is None and base is not None:
            there = base / "references"
            references = _files(there, f"{pair}.", (".txt",)) if there.is_dir() else []
        docs = base / "documents" / f"{pair}.docs" if base is not None else None
        _read_text_files(read, sources, outputs, references, systems)
        if documents is None and docs is not None and docs.is_file():
            with about("documents"):
                documents = read_documents(read_storable(docs, file_name(docs), MAX_BYTES), file_name(docs))
                _check_as_long([(docs, documents.names)], read.sources, sources)
    if asked.reference_files == []:
        read.references = {}
    chosen = list(systems) or list(read.outputs)
    known = {**read.references, **read.outputs}
    for system in chosen:
        if system not in known:
            allowed = one_of(dict.fromkeys([*read.systems, *known]), system, "there are")
            raise wrong("systems", f"{shown(system)}: no outputs of it in {pair}; {allowed}")
    read.outputs = {system: known[system] for system in chosen}
    read.documents = documents or read.documents
    named = {
        "systems": read.systems,
        "documents": dict.fromkeys(read.documents.names if read.documents else ()),
    }
    read.notices += [
        f"{what} {' and '.join(map(ascii, names))} look alike or differ in case, and count as different"
        for what, all_names in named.items()
        for names in look_alikes(all_names)
    ]
    read.notices += _odd_texts(read)
    return read


def _odd_texts(read: Texts) -> Iterator[str]:
    """Yield what is unusual in texts, and rated nevertheless."""
    if blank := [number for number, source in enumerate(read.sources, start=1) if not source.strip()]:
        which = ", ".join(map(str, blank[:3])) + (", …" if len(blank) > 3 else "")
        yield f"{counted(len(blank), 'segment')} without a source text ({which})"
    alike: dict[tuple[str, ...], list[str]] = {}
    for system, texts in read.outputs.items():
        alike.setdefault(tuple(texts), []).append(system)
    for same in alike.values():
        if len(same) > 1:
            yield f"systems {' and '.join(same)} have the same outputs: one rating counts for all of them"


def _output_files(folder: Path, endings: Sequence[str], read: Texts) -> list[Path]:
    """Return the files of a folder of outputs; name the others in a notice."""
    found = _files(folder, "", endings)
    left = sorted(
        path.name for path in folder.iterdir() if path not in found and not path.name.startswith(".")
    )
    if left:
        read.notices.append(
            f"{file_name(folder)}: {', '.join(left[:3])}{', …' if len(left) > 3 else ''} ({len(left):,}) "
            f"left out: outputs are SYSTEM{' or SYSTEM'.join(endings)}"
        )
    return found


def _files(folder: Path, start: str, endings: Sequence[str]) -> list[Path]:
    """Return the folder's files with this start and one of these endings, sorted."""
    try:
        found = [
            path
            for path in folder.iterdir()
            if path.suffix in endings and path.name.startswith(start) and not path.name.startswith(".")
        ]
    except OSError as error:
        raise InputError(f"{file_name(folder)}: {error.strerror or error}: give a folder") from None
    return sorted(found)


# ---------------------------------------------------------------- a line per segment


def _read_text_files(
    read: Texts, sources: Path, outputs: Path, references: Sequence[Path], systems: Sequence[str]
) -> None:
    with about("texts.sources"):
        read.sources = _segments(sources)
    with about("texts.references"):
        for path in references:
            name = path.stem.rpartition(".")[2]
            if name in read.references:
                raise wrong("texts.references", f"{shown(name)}: two files are of this name: rename one")
            read.references[name] = _segments(path)
        _check_as_long(zip(references, read.references.values(), strict=True), read.sources, sources)
    with about("texts.outputs"):
        files = {path.stem: path for path in _output_files(outputs, (".txt",), read)}
        if not files:
            none = "no outputs: give a folder with a file SYSTEM.txt per system"
            raise InputError(f"{file_name(outputs)}: {none}")
        read.systems = list(files)
        for system in [name for name in systems if name in files] if systems else files:
            read.outputs[system] = _segments(files[system])
        each = ((files[system], lines) for system, lines in read.outputs.items())
        _check_as_long(each, read.sources, sources)


def _segments(path: Path) -> list[str]:
    return lines_of(read_storable(path, file_name(path), MAX_BYTES))


def _check_as_long(files: Iterable[tuple[Path, Sequence[str]]], sources: Sequence[str], beside: Path) -> None:
    """Raise InputError with all files that have not one line per segment of the file `beside`."""
    misfits = [
        f"{file_name(path)}: {counted(len(lines), 'line')}"
        for path, lines in files
        if len(lines) != len(sources)
    ]
    if misfits:
        raise InputError(
            f"{'; '.join(misfits)}, and {file_name(beside)} has {len(sources):,}: one line per segment"
        )


# ---------------------------------------------------------------- WMT's JSON Lines

Pieces = str | list[str]
NonEmpty = Annotated[str, Field(min_length=1)]


class _Line(BaseModel):
    """A line of WMT's JSON Lines; other keys (prompts, metadata, scores) are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)
    doc_id: NonEmpty

    def direction(self) -> tuple[str, str, str]:
        """Return the pair ("en-ja_JP"), domain and document in `doc_id`; "" for what it does not name.

        Forms: SET_###_DOMAIN_###_SRC_###_TGT_###_DOC, PAIR_#_DOMAIN_#_DOC and DOC. The id of a single segment
        ends in _#_NUMBER, which is no part of its document.
        """
        if "_###_" in self.doc_id:
            _, domain, source, target, *_ = [*self.doc_id.split("_###_"), *[""] * 4]
            pair = f"{source}-{target}" if source and target else ""
            return pair, domain, re.sub(r"_#_[0-9]+$", "", self.doc_id)
        parts = self.doc_id.split("_#_")
        if len(parts) in (2, 4) and parts[-1].isdecimal():
            parts = parts[:-1]
        pair, domain = (parts[0], parts[1]) if len(parts) == 3 else ("", "")
        return pair, domain, "_#_".join(parts)

    def number(self) -> int:
        """Return that of a single segment in its document; -1 for what has none."""
        return int(self.doc_id.removeprefix(self.direction()[2]).rpartition("_")[2] or -1)


class _Reference(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)
    ref: Pieces


class _Source(_Line):
    src_text: Pieces
    src_lang: str | None = None
    tgt_lang: str | None = None
    domain: str | None = None
    refs: dict[NonEmpty, Pieces | _Reference] = Field(default_factory=dict)
    tgt_text: dict[NonEmpty, Pieces] = Field(default_factory=dict)

    def pair(self) -> str:
        named = self.src_lang and self.tgt_lang
        return f"{self.src_lang}-{self.tgt_lang}" if named else self.direction()[0]


class _Hypothesis(_Line):
    hypothesis: Pieces


L = TypeVar("L", bound=_Line)


def _read_json(result: Texts, sources: Path, outputs: Path | None, pair: str, systems: Sequence[str]) -> None:
    """Read one direction of WMT's JSON Lines; a file without directions has one."""
    with about("texts.sources"):
        lines = [line for _, line in read_lines(sources, _Source, "texts.sources")]
    pairs = {line.pair() for line in lines}
    if pairs != {""}:
        lines = [line for line in lines if line.pair() == pair]
    if not lines:
        raise wrong(
            "texts.languages",
            f"{shown(pair)}: no document of {file_name(sources)} is of it; "
            + one_of(sorted(pairs - {""}), pair, "allowed"),
        )
    with about("texts.sources"):
        by_id = _by_document(sources, lines)
    texts: dict[str, dict[str, Pieces]] = {}  # system → doc_id → text
    references: dict[str, dict[str, Pieces]] = {}
    for line in lines:
        for name, reference in line.refs.items():
            text = reference.ref if isinstance(reference, _Reference) else reference
            references.setdefault(name, {})[line.doc_id] = text
        for name, text in line.tgt_text.items():
            (references if REFERENCE.fullmatch(name) else texts).setdefault(name, {})[line.doc_id] = text
    absent: list[str] = []
    with about("texts.outputs"):
        for path in _output_files(outputs, JSON_ENDINGS, result) if outputs is not None else ():
            given = _by_document(path, [line for _, line in read_lines(path, _Hypothesis, "texts.outputs")])
            found = {name: line.hypothesis for name, line in given.items() if name in by_id}
            if found and path.stem in texts:
                raise wrong("texts.outputs", f"{shown(path.stem)}: two files have outputs of it: give one")
            if found:
                texts[path.stem] = found
            else:
                absent.append(path.stem)
    if absent:
        result.notices.append(f"without an output of {pair}, and left out: {', '.join(absent)}")
    result.systems = list(texts)
    if systems:
        texts = {name: found for name, found in texts.items() if name in systems}
    for system, found in texts.items():
        if missing := [name for name in by_id if name not in found]:
            raise InputError(
                f"system {system!r} has no output of {len(missing)} of {counted(len(by_id), 'document')} of "
                f"{pair} (the first: {missing[0]}): add them, or list the other systems as `systems`",
                about="systems",
            )
    for name in [name for name, found in references.items() if len(found) < len(by_id)]:
        result.notices.append(
            f"reference {name} is missing for {len(by_id) - len(references[name])} of "
            f"{counted(len(by_id), 'document')}: shown and used where it is"
        )
    _cut(lines, texts, references, result)


def _by_document(path: Path, lines: Sequence[L]) -> dict[str, L]:
    found = {line.doc_id: line for line in lines}
    if len(found) < len(lines):
        twice = counted(len(lines) - len(found), "line")
        raise InputError(f"{file_name(path)}: {twice} with the doc_id of a line before: give each its own")
    return found


def _cut(
    lines: Iterable[_Source],
    texts: Mapping[str, Mapping[str, Pieces]],
    references: Mapping[str, Mapping[str, Pieces]],
    result: Texts,
) -> None:
    """Cut texts into paragraphs; keep one whole if an output or reference has more or fewer of them."""
    columns = [(result.outputs, name, found) for name, found in texts.items()]
    columns += [(result.references, name, found) for name, found in references.items()]
    names: list[str] = []
    domains: dict[str, str] = {}
    whole: dict[str, None] = {}  # documents that were not cut
    ordered: dict[str, list[_Source]] = {}  # the segments of a document are consecutive
    for line in lines:
        ordered.setdefault(line.direction()[2], []).append(line)
    for document, parts in ordered.items():
        parts.sort(key=_Line.number)
        for line in parts:
            source = _pieces(line.src_text)
            given = [found.get(line.doc_id) for *_, found in columns]
            cut = [_pieces(text) if text else [""] * len(source) for text in given]
            if any(len(pieces) != len(source) for pieces in cut):
                whole[document] = None
                source, cut = _joined(source), [_joined(pieces) for pieces in cut]
            result.sources += source
            names += [document] * len(source)
            for (held, name, _), pieces in zip(columns, cut, strict=True):
                held.setdefault(name, []).extend(pieces)
        if domain := parts[0].domain or parts[0].direction()[1]:
            domains[document] = domain
    if whole:
        result.notices.append(
            f"{counted(len(whole), 'document')} of {len(ordered):,} not cut into paragraphs, since outputs "
            f"have other numbers of them (the first: {next(iter(whole))})"
        )
    result.documents = Documents(tuple(names), domains if len(domains) == len(ordered) else {})


def _pieces(text: Pieces) -> list[str]:
    return PARAGRAPHS.split(text) if isinstance(text, str) else list(text)


def _joined(pieces: Sequence[str]) -> list[str]:
    return ["\n\n".join(pieces) if any(pieces) else ""]
