"""Read the texts and documents of a campaign from a study or from files.

Of a study, only database rows and their labels are read, not the settings. If a system has outputs of several
training seeds, the first seed in the order of the plan is used.

Files hold the sources, outputs, references and documents of one direction. Two layouts are read:
- text files with one line per segment, as mt-metrics-eval names them: `sources/PAIR.txt`,
  `system-outputs/PAIR/SYSTEM.txt`, `references/PAIR.NAME.txt`, `documents/PAIR.docs`;
- WMT's JSON Lines with one document per line, for all directions: a test set (`doc_id`, `src_text`, `refs`)
  with the outputs beside the sources (`tgt_text`: 2024, 2025) or in a file per system (`doc_id`,
  `hypothesis`: 2025, 2026). Documents are cut into paragraphs, as in WMT's own scripts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.document.document import read_lines
from creamtea.document.mistakes import one_of, shown
from creamtea.errors import InputError, about, wrong
from creamtea.files import lines_of, read_storable
from creamtea.human.making.settings import TextsBlock
from creamtea.store.queries import OUTPUTS, Node, study_nodes
from creamtea.store.rows import check_text
from creamtea.store.tables import Campaign, Hypothesis, ItemKind, Segment, SegmentScore, StepInput, StudyRow
from creamtea.wording import counted, file_name, key_name
from creamtea.words import MISSPELT, look_alikes, misspelt

ABSENT = "-"  # the line of a segment that an imported campaign does not have
WITH_DOMAIN = "DOMAIN TAB DOCUMENT"
SHOWN = "protocol.show_reference"
MAX_BYTES = 200_000_000  # of a text file
JSON_ENDINGS = (".jsonl", ".json")
# between paragraphs: a blank line, or the line end between two <p> (WMT 2026)
PARAGRAPHS = re.compile(r"\n\n|(?<=</p>)\n(?=<p>)")
REFERENCE = re.compile(r"ref[A-Z]\w*")  # among WMT's outputs


@dataclass(frozen=True)
class Line:
    """A segment of the test set with the output of each system, in the campaign's order of systems."""

    index: int
    source: str
    reference: str
    outputs: tuple[str, ...]
    document: str = ""
    context: tuple[str, ...] = ()  # the sources before it, in its document
    # if drawn: rated or random, and the part of the population that it represents
    kind: ItemKind = ItemKind.RATED
    weight: float = 1.0
    identities: tuple[str, ...] = ()  # of outputs, if some have files (`media.distinct`)

    @property
    def distinct(self) -> tuple[str, ...]:
        """Return for each output a text that is equal for equal outputs."""
        return self.identities or self.outputs

    def differs(self, between: Sequence[int] = ()) -> bool:
        """Return True if the outputs of these systems (positions; by default all) are not all the same."""
        return len({self.distinct[system] for system in between or range(len(self.outputs))}) > 1


def check_names(session: Session, study: StudyRow, test_set: str, systems: Sequence[str]) -> None:
    """Raise InputError for a test set or a system that the study does not have."""
    nodes = study_nodes(session, study.id, *OUTPUTS)
    for label, wanted in (("test_set", [test_set]), ("system", systems)):
        # outputs that an analysis decodes may have no test set and no system
        known = sorted({str(node.labels[label]) for node in nodes if label in node.labels})
        for name in wanted:
            if name not in known:
                what = label.replace("_", " ")
                raise InputError(f"study {study.name!r} has no {what} {name!r}; it has {', '.join(known)}")


@dataclass
class Texts:
    """A test set with outputs, from a study or one direction of files; lists have one entry per segment."""

    languages: tuple[str, str]  # codes: source, target
    sources: list[str] = field(default_factory=list)
    outputs: dict[str, list[str]] = field(default_factory=dict)  # by system, which may be a reference
    references: dict[str, list[str]] = field(default_factory=dict)  # by name; the first is the test set's
    documents: Documents | None = None
    notices: list[str] = field(default_factory=list)  # for the organiser: texts that were omitted or not cut
    systems: list[str] = field(default_factory=list)  # all systems, even if their outputs were not read
    # for a study: its name, its systems that are references, and references by their numbers
    study: str = ""
    human: list[str] = field(default_factory=list)
    numbered: dict[int, str] = field(default_factory=dict)

    def lines(self, test_set: str, documents: Sequence[str] | None = None, context: int = 0) -> list[Line]:
        """Return every segment with its outputs and the first reference.

        `documents` names the document of each segment. A segment gets up to `context` sources before it from
        its own document. InputError unless there is one document per segment.
        """
        names = _documents(documents, len(self.sources), test_set)
        reference = next(iter(self.references.values()), [""] * len(self.sources))
        lines = []
        for index, source in enumerate(self.sources):
            outputs = tuple(texts[index] for texts in self.outputs.values())
            near = range(max(0, index - context), index)
            before = tuple(self.sources[place] for place in near if names[place] == names[index])
            lines.append(Line(index, source, reference[index], outputs, names[index], before))
        return lines

    def shown_references(self, numbers: Sequence[int], test_set: str) -> list[list[str]]:
        """Return the references with these numbers (from 1) for each segment, without empty ones.

        InputError for a reference that is missing, named twice or rated.
        """
        of_segments: list[list[str]] = [[] for _ in self.sources]
        numbered = self.numbered or dict(enumerate(self.references, start=1))
        for number in numbers:
            name, mistake = numbered.get(number), ""
            if name is None:
                mistake = f"there is no such reference; the texts have {', '.join(self.references) or 'none'}"
                if self.study:
                    give = f"give it one with `reference: {number}` and run it again"
                    mistake = f"no system of study {self.study!r} is that reference: {give}"
            elif name in self.outputs:
                part = f"that is system {name!r}, which takes part: raters would see the text they rate"
                mistake = f"{part}. Show another reference, or leave the system out"
            elif numbers.count(number) > 1:
                mistake = "it is named twice: name each reference once"
            elif not any(self.references[name]):
                mistake = f"test set {test_set!r} has no reference to show: leave it out"
            if name is None or mistake:
                raise wrong(SHOWN, f"{number}: {mistake}")
            for texts, text in zip(of_segments, self.references[name], strict=True):
                texts += [text] if text else []
        return of_segments


def study_texts(
    session: Session, study: StudyRow, test_set: str, systems: Sequence[str], shown: Sequence[int] = ()
) -> Texts:
    """Read the outputs of a study's systems, and its references.

    Reference 1 is the test set's `target` and always read. A further reference is a system of the study
    (`reference: 2`), read only if its number is in `shown`. InputError if outputs are missing.
    """
    nodes = study_nodes(session, study.id, *OUTPUTS)
    keys: list[str] = []

    def outputs(system: str) -> list[str]:
        what = f"outputs on {test_set!r}"
        keys.append(succeeded_node(nodes, study, what, system=system, test_set=test_set).key)
        texts = select(Hypothesis.text).where(Hypothesis.step_key == keys[-1])
        return list(session.scalars(texts.order_by(Hypothesis.index)))

    of_systems = {system: outputs(system) for system in systems}
    test_sets = select(StepInput.input_key).where(StepInput.step_key == keys[0], StepInput.role == "test_set")
    of_test_set = select(Segment.source, Segment.reference).where(Segment.step_key.in_(test_sets))
    segments = session.execute(of_test_set.order_by(Segment.index)).all()
    numbers = {name: spec.get("reference") for name, spec in study.spec["systems"].items()}
    human = {name: number for name, number in numbers.items() if number is not None}
    numbered = {1: "", **{number: name for name, number in human.items()}}
    references = {numbered[1]: [reference for _, reference in segments]}
    for number in {*shown} & numbered.keys() - {1}:
        if numbered[number] not in of_systems:
            references[numbered[number]] = outputs(numbered[number])
    return Texts(
        (study.spec["languages"]["source"], study.spec["languages"]["target"]),
        [source for source, _ in segments],
        of_systems,
        references,
        study=study.name,
        human=list(human),
        numbered=numbered,
    )


def _documents(documents: Sequence[str] | None, segments: int, test_set: str) -> list[str]:
    if documents is None:
        return [""] * segments
    if len(documents) != segments:
        lines, there = counted(len(documents), "line"), counted(segments, "segment")
        raise wrong("documents", f"{lines}, and {test_set!r} has {there}: one line per segment")
    if "" in documents:
        line = f"line {list(documents).index('') + 1}: found {ABSENT!r}, which is for ratings made elsewhere"
        raise wrong("documents", f"{line}: name the segment's document")
    return list(documents)


def metric_names(session: Session, study: StudyRow) -> list[str]:
    """Return the names of the metrics whose scores the study stores ("chrf++"), sorted."""
    return sorted({str(node.labels.get("metric")) for node in study_nodes(session, study.id, "score")})


def read_metric(
    session: Session, study: StudyRow, test_set: str, systems: Sequence[str], metric: str
) -> dict[int, tuple[float, ...]]:
    """Read a metric's values: segment → value of each system, higher is better.

    Values of an error metric get the opposite sign. InputError if the study has no such values.
    """
    known = metric_names(session, study)
    if metric not in known:
        raise InputError(
            f"study {study.name!r} has no metric {metric!r}; it has {', '.join(known) or 'none'}: "
            f"{key_name('sample.metrics')}",
            about="sample.metrics",
        )
    nodes = study_nodes(session, study.id, "score")
    columns = []
    for system in systems:
        what = f"values of {metric!r} on {test_set!r}"
        node = succeeded_node(nodes, study, what, system=system, test_set=test_set, metric=metric)
        values = segment_values(session, node.key)
        if not values:
            raise InputError(
                f"metric {metric!r} has no segment values of system {system!r} on {test_set!r}: choose "
                f"another with {key_name('sample.metrics')}, or another {key_name('sample.kind')}",
                about="sample.metrics",
            )
        sign = -1.0 if node.labels.get("better") == "lower" else 1.0
        columns.append({index: sign * value for index, value in values.items()})
    return {index: tuple(values[index] for values in columns) for index in columns[0]}


def segment_values(session: Session, key: str) -> dict[int, float]:
    """Read the segment scores of a step, by segment."""
    rows = select(SegmentScore.index, SegmentScore.value).where(SegmentScore.step_key == key)
    return dict(session.execute(rows).all())


def first_node(nodes: Sequence[Node], **labels: str) -> Node | None:
    """Return the first node in the plan's order with these labels: the system's first training seed."""
    return next((node for node in nodes if labels.items() <= node.labels.items()), None)


def succeeded_node(nodes: Sequence[Node], study: StudyRow, what: str, **labels: str) -> Node:
    """Return the first node with these labels; InputError unless its step succeeded. `what`: its outputs."""
    node = first_node(nodes, **labels)
    if node is None:
        raise InputError(f"study {study.name!r} never makes {what} with system {labels['system']!r}")
    if node.state != "succeeded":
        yet, remedy = (" yet", "run the study first, ") if node.state != "failed" else ("", "")
        raise InputError(
            f"system {labels['system']!r} has no {what}{yet} (its step {node.predicate}): "
            f"{remedy}see `creamtea status {study.name}`"
        )
    return node


# ---------------------------------------------------------------- documents


@dataclass(frozen=True)
class Documents:
    """The document of each segment of a test set, and the domains of the documents."""

    names: tuple[str, ...]  # each segment's document; "" if the line is `ABSENT`
    domains: Mapping[str, str] = field(default_factory=dict)  # document → domain; empty without domains

    @property
    def lines(self) -> dict[str, list[int]]:
        """Document → the numbers of its lines, from 0."""
        lines: dict[str, list[int]] = defaultdict(list)
        for number, name in enumerate(self.names):
            if name:
                lines[name].append(number)
        return dict(lines)


def read_documents(text: str, place: str, *, with_domains: bool = False) -> Documents:
    """Read the documents of a file's text; `place` is what messages call the file.

    The file has the format of WMT and mt-metrics-eval: each line is `DOMAIN TAB DOCUMENT`, or `DOCUMENT`
    alone. If every line has two words, blanks may replace the tab, as in mt-metrics-eval; otherwise blanks
    are part of the name.

    InputError with the line for a line without a document, for a document with two domains, and if only some
    lines have a domain. `with_domains`: all lines must have one, so that blanks may replace the tab of any
    line.
    """
    names: list[str] = []
    domains: dict[str, str] = {}
    alone = False  # whether a document has no domain
    lines = lines_of(text.removeprefix("\ufeff"), place) or [""]
    by_blanks = all(len(line.split()) == 2 or line.strip() == ABSENT for line in lines)
    for number, line in enumerate(lines, start=1):
        row = line.strip(" \r")
        words = [word.strip() for word in re.split(r"\t+", row)]
        if by_blanks or (with_domains and "\t" not in row):
            words = row.split()
        if words == [ABSENT]:
            names.append("")
            continue
        *before, document = _checked_words(words, line, f"{place}, line {number}", with_domains=with_domains)
        if before and domains.setdefault(document, before[0]) != before[0]:
            raise InputError(
                f"{place}, line {number}: document {document!r} is of domain {before[0]!r} here and of "
                f"{domains[document]!r} before: a document has one"
            )
        alone |= not before
        if alone and domains:
            raise InputError(
                f"{place}, line {number}: some lines have a domain and some have none: give all of them one "
                f"({WITH_DOMAIN}), or none"
            )
        names.append(document)
    return Documents(tuple(names), domains)


def domain_settings(domains: Mapping[str, str], test_set: str) -> dict[str, dict[str, str]]:
    """Return a campaign's setting of domains; empty if all domains are the test set's name."""
    return {"domains": dict(domains)} if set(domains.values()) - {test_set} else {}


def _checked_words(words: list[str], line: str, place: str, *, with_domains: bool) -> list[str]:
    fields = (2,) if with_domains else (1, 2)
    if len(words) not in fields or not all(words):
        allowed = f"{WITH_DOMAIN}, or two words" if with_domains else f"DOCUMENT, or {WITH_DOMAIN}"
        raise InputError(f"{place}: found {line[:60]!r}; allowed: {allowed}")
    try:
        return [check_text(word) for word in words]
    except ValueError as error:
        raise InputError(f"{place}: found a name {error}") from None


# ---------------------------------------------------------------- campaigns on a study's outputs
#
# A study may be submitted several times: another metric leaves its outputs as they are, another text in the
# same file does not. The steps that made the outputs decide whether a campaign is about a submission.


def campaigns_of(session: Session, study: StudyRow) -> tuple[list[Campaign], list[Campaign]]:
    """Return the launched campaigns on all submissions of a study's name, oldest first.

    The first list has the campaigns that rate outputs of this submission, the second the others.
    """
    launched = session.scalars(
        select(Campaign)
        .join(StudyRow, StudyRow.id == Campaign.study_id)
        .where(StudyRow.name == study.name, Campaign.state != "draft")
        .order_by(Campaign.id)
    ).all()
    nodes: dict[int, list[Node]] = {}
    own = [campaign for campaign in launched if is_about(session, campaign, study, nodes)]
    return own, [campaign for campaign in launched if campaign not in own]


def is_about(
    session: Session, campaign: Campaign, study: StudyRow, known: dict[int, list[Node]] | None = None
) -> bool:
    """Return True if steps of this submission made the outputs that raters see.

    `known`: the nodes of submissions, so that each submission is read once.
    """
    assert campaign.study_id is not None  # only imported campaigns have no study
    if campaign.study_id == study.id:
        return True
    read: dict[int, list[Node]] = {} if known is None else known
    for number in (campaign.study_id, study.id):
        if number not in read:
            read[number] = study_nodes(session, number, *OUTPUTS)
    return rated_steps(campaign, read[campaign.study_id]) == rated_steps(campaign, read[study.id])


def rated_steps(campaign: Campaign, nodes: Sequence[Node]) -> dict[str, str | None]:
    """Return, by system, the key of the step whose outputs the campaign would rate in this submission.

    The key depends on the test set and everything that the outputs depend on.
    """
    first = {
        system: first_node(nodes, system=system, test_set=campaign.test_set) for system in campaign.systems
    }
    return {system: None if node is None else node.key for system, node in first.items()}


# ---------------------------------------------------------------- texts from files


def read_texts(
    asked: TextsBlock,
    folder: Path,
    systems: Sequence[str],
    documents: Documents | None,
    filed: Collection[object] = (),
) -> Texts:
    """Read the files that a campaign's `texts` names, with the outputs of `systems` (empty: of all).

    A system in `filed` needs no texts: its outputs are media files.

    `documents`: from the campaign's own `documents` file. InputError names the file and the remedy if a file
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
            raise wrong("texts.references", f"{file_name(sources)} has its own: leave this out")
        outputs = None if asked.outputs is None else folder / asked.outputs
        _read_json(read, sources, outputs, pair, systems)
    else:
        outputs = None
        if asked.outputs or base or not systems or not {*systems} <= {*filed}:
            outputs = path(asked.outputs, "outputs", "system-outputs", pair)
        references = [folder / name for name in asked.reference_files or ()]
        if asked.reference_files is None and base is not None:
            reference_folder = base / "references"
            references = _files(reference_folder, f"{pair}.", (".txt",)) if reference_folder.is_dir() else []
        docs = base / "documents" / f"{pair}.docs" if base is not None else None
        _read_text_files(read, sources, outputs, references, systems)
        if documents is None and docs is not None and docs.is_file():
            with about("documents"):
                documents = read_documents(read_storable(docs, file_name(docs), MAX_BYTES), file_name(docs))
                _check_as_long([(docs, documents.names)], read.sources, sources)
    if asked.reference_files == []:
        read.references = {}
    chosen = list(systems) or list(read.outputs)
    known = {name: [""] * len(read.sources) for name in systems if name in filed}
    known |= {**read.references, **read.outputs}
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
    read.notices += [
        f"document {name!a} has one segment, {MISSPELT}"
        for name in misspelt(read.documents.names if read.documents else ())
    ]
    read.notices += _odd_texts(read)
    return read


def _odd_texts(read: Texts) -> Iterator[str]:
    """Yield notices about unusual texts, which are rated nevertheless."""
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
    files = _files(folder, "", endings)
    others = sorted(
        path.name for path in folder.iterdir() if path not in files and not path.name.startswith(".")
    )
    if others:
        read.notices.append(
            f"{file_name(folder)}: {', '.join(others[:3])}{', …' if len(others) > 3 else ''} "
            f"({len(others):,}) left out: outputs are SYSTEM{' or SYSTEM'.join(endings)}"
        )
    return files


def _files(folder: Path, start: str, endings: Sequence[str]) -> list[Path]:
    """Return the folder's files with this start and one of these endings, sorted."""
    try:
        files = [
            path
            for path in folder.iterdir()
            if path.suffix in endings and path.name.startswith(start) and not path.name.startswith(".")
        ]
    except OSError as error:
        raise InputError(f"{file_name(folder)}: {error.strerror or error}: give a folder") from None
    return sorted(files)


# ---------------------------------------------------------------- a line per segment


def _read_text_files(
    read: Texts, sources: Path, outputs: Path | None, references: Sequence[Path], systems: Sequence[str]
) -> None:
    with about("texts.sources"):
        read.sources = _segments(sources)
    with about("texts.references"):
        for path in references:
            name = path.stem.rpartition(".")[2]
            if name in read.references:
                raise wrong("texts.references", f"{shown(name)}: two files have this name: rename one")
            read.references[name] = _segments(path)
        _check_as_long(zip(references, read.references.values(), strict=True), read.sources, sources)
    if outputs is None:
        return
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
    return lines_of(read_storable(path, file_name(path), MAX_BYTES), file_name(path))


def _check_as_long(files: Iterable[tuple[Path, Sequence[str]]], sources: Sequence[str], beside: Path) -> None:
    """Raise InputError naming all files without exactly one line per segment of the file `beside`."""
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
        """Return the pair ("en-ja_JP"), domain and document in `doc_id`; "" for a missing part.

        Forms: SET_###_DOMAIN_###_SRC_###_TGT_###_DOC, PAIR_#_DOMAIN_#_DOC and DOC. The id of a single segment
        ends in _#_NUMBER, which is not part of the document's name.
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
        """Return the number of a single segment in its document; -1 for a whole document."""
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
    """Read one direction of WMT's JSON Lines. A file that names no direction has only one."""
    with about("texts.sources"):
        lines = [line for _, line in read_lines(sources, _Source, "texts.sources")]
    pairs = {line.pair() for line in lines}
    if pairs != {""}:
        lines = [line for line in lines if line.pair() == pair]
    if not lines:
        allowed = one_of(sorted(pairs - {""}), pair, "allowed")
        raise wrong(
            "texts.languages", f"{shown(pair)}: no document of {file_name(sources)} has this pair; {allowed}"
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
            hypotheses = {name: line.hypothesis for name, line in given.items() if name in by_id}
            if hypotheses and path.stem in texts:
                raise wrong("texts.outputs", f"{shown(path.stem)}: two files have outputs of it: give one")
            if hypotheses:
                texts[path.stem] = hypotheses
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
    by_document = {line.doc_id: line for line in lines}
    if len(by_document) < len(lines):
        twice = counted(len(lines) - len(by_document), "line")
        raise InputError(f"{file_name(path)}: {twice} with the doc_id of a line before: give each its own")
    return by_document


def _cut(
    lines: Iterable[_Source],
    texts: Mapping[str, Mapping[str, Pieces]],
    references: Mapping[str, Mapping[str, Pieces]],
    result: Texts,
) -> None:
    """Cut texts into paragraphs; keep a text whole if an output or reference has another number of them."""
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
