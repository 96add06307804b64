"""A campaign as a folder of mt-metrics-eval, Google's toolkit for evaluating metrics against people.

The layout is the one documented under "File organization and naming convention" in
https://github.com/google-research/mt-metrics-eval (README.md); SRC-TGT is the language pair:

    documents/SRC-TGT.docs                     a line per segment: DOMAIN TAB DOC; documents are contiguous
    sources/SRC-TGT.txt                        a line per segment
    references/SRC-TGT.NAME.txt                a line per segment
    system-outputs/SRC-TGT/SYS.txt             a line per segment
    human-scores/SRC-TGT.PROTOCOL.LEVEL.score  SYS SCORE (LEVEL domain: DOMAIN SYS SCORE), None where missing
    metric-scores/SRC-TGT/METRIC-NAME.LEVEL.score

DOMAIN is the document's, where the campaign knows it, else the test set. Scores are raw points of the
protocol's scale. A segment's is the mean over the ratings that count; a document's, a domain's and a
system's is the mean over segments by the items' weights (over pairs, where two outputs are compared). The
folder itself is the test set:
`EvalSet(path.name, "SRC-TGT", path=path.parent, info=MetaInfo(std_ref="ref", ...))`.

Marked errors are in `human-scores/SRC-TGT.PROTOCOL.RATER.seg.rating`, `SYS RATING RATER` with tabs: the
places of a rater's errors as JSON, one past the last character, or None. Scores of raters have no file.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.human.formats.columns import checked_text
from creamtea.human.formats.content import Content
from creamtea.human.formats.counted import CountedScore, counted_scores, first_opinions
from creamtea.human.formats.files import text_lines
from creamtea.human.formats.whole_test_set import WholeTestSet
from creamtea.human.protocols import find_protocol
from creamtea.human.protocols.spans import MarksErrors, Mqm, Span, spans_of
from creamtea.new_folder import write_texts
from creamtea.wording import counted

NO_TEXT = "[No translation supplied]"  # what the toolkit reads as a missing text
REFERENCES = ("ref", "refA", "refB", "refC")  # the first that is no system's name
MAX_FILE_NAME = 255  # bytes
_NO_NAME = re.compile(r"[\s/\\\x00-\x1f\x7f]+|^\.+")

Means = dict[tuple[int, str], Fraction]  # (line, system) → score


@dataclass(frozen=True)
class Folder:
    """One that somebody else may have written."""

    path: Path
    pair: str  # SRC-TGT

    def lines(self, name: str) -> list[str]:
        return text_lines(self.path / name)

    def texts(self, name: str, segments: int | None = None) -> list[str | None]:
        lines = self.lines(name)
        if segments is not None and len(lines) != segments:
            raise InputError(
                f"{name}: found {counted(len(lines), 'line')}; allowed: {segments}, as the sources have"
            )
        try:
            return [None if line.rstrip() == NO_TEXT else checked_text(line) for line in lines]
        except ValueError as error:
            raise InputError(f"{name}: {error or 'a character that cannot be stored'}") from None

    def names(self, folder: str, before: str, after: str) -> list[str]:
        """What stands between in the names of a folder's files, sorted."""
        found = (self.path / folder).glob("*") if (self.path / folder).is_dir() else ()
        names = (file.name for file in found if file.name.startswith(before) and file.name.endswith(after))
        return sorted(name[len(before) : len(name) - len(after)] for name in names)

    def of_people(self, ending: str) -> list[str]:
        return self.names("human-scores", f"{self.pair}.", ending)


@dataclass(frozen=True)
class RatedUnit:
    """What is compared: a segment, or a pair of outputs of one."""

    line: int
    weight: Fraction
    means: dict[str, Fraction]  # of the systems with a rating that counts


def write_mt_metrics_eval(content: Content, whole: WholeTestSet, path: Path) -> list[Path]:
    """Write the folder. Returns its files.

    Raises InputError for a text with a line end within, for names that become the same or are too long for a
    file, for documents that are not contiguous, and where there is nothing to write.
    """
    texts = _texts(content, whole)
    for name in texts:
        _check_length(name)
    return write_texts(path, texts)


def _check_length(name: str) -> None:
    file = Path(name).name
    if len(file.encode()) > MAX_FILE_NAME:
        raise InputError(
            f"a file would be called {file[:60]}… ({len(file.encode())} bytes; file systems allow "
            f"{MAX_FILE_NAME}), as names of systems, metrics and raters are part of this format's file "
            "names; export as csv or jsonl"
        )


def _texts(content: Content, whole: WholeTestSet) -> dict[str, str]:
    """File → text."""
    if not whole.lines:
        raise InputError(f"campaign {content.name!r} has no items that tell of systems: nothing to export")
    pair = f"{_language(content.source_language)}-{_language(content.target_language)}"
    systems = _different(content.systems, "system")
    reference = next((name for name in REFERENCES if name not in systems.values()), None)
    if reference is None:
        raise InputError(f"systems are called {', '.join(REFERENCES)}: no name is left for the reference")
    documents = _document_names([line.document for line in whole.lines])
    domains = _domains(content, whole)
    names = {line.index: content.segment_name(line.index) for line in whole.lines}
    texts = {
        f"documents/{pair}.docs": _joined(
            f"{domain}\t{document}" for domain, document in zip(domains, documents, strict=True)
        ),
        f"sources/{pair}.txt": _joined(
            _line(line.source, f"{content.segment_name(line.index)}, source") for line in whole.lines
        ),
        f"references/{pair}.{reference}.txt": _joined(
            _line(line.reference, f"{names[line.index]}, reference") for line in whole.lines
        ),
    }
    for at, system in enumerate(content.systems):
        texts[f"system-outputs/{pair}/{systems[system]}.txt"] = _joined(
            _line(line.outputs[at], f"{names[line.index]}, output of {system}") for line in whole.lines
        )
    for level, lines in _human_scores(content, whole, systems, documents, domains).items():
        texts[f"human-scores/{pair}.{content.protocol}.{level}.score"] = _joined(lines)
    for rater, lines in _marked_errors(content, whole, systems).items():
        texts[f"human-scores/{pair}.{content.protocol}.{rater}.seg.rating"] = _joined(lines)
    metrics = _different([metric.name for metric in whole.metrics], "metric")
    for metric in whole.metrics:
        stem = f"metric-scores/{pair}/{metrics[metric.name]}-{reference}"
        columns = [systems[system] for system in content.systems]
        texts[f"{stem}.sys.score"] = _joined(
            f"{name}\t{value!r}" for name, value in zip(columns, metric.systems, strict=True)
        )
        if metric.segments:
            texts[f"{stem}.seg.score"] = _joined(
                f"{name}\t{value!r}"
                for name, values in zip(columns, metric.segments, strict=True)
                for value in values
            )
    return texts


# ---------------------------------------------------------------- texts and names


def _joined(lines: Iterable[str]) -> str:
    text = "".join(f"{line}\n" for line in lines)
    # readers drop a byte-order mark: behind one, a text that begins with this character comes back whole
    return f"\ufeff{text}" if text.startswith("\ufeff") else text


def _line(text: str | None, what: str) -> str:
    """One line of a file. A reader ends lines at LF, CR and CR LF, and takes NO_TEXT for a missing text."""
    if text is None:
        return NO_TEXT
    if "\n" in text or "\r" in text:
        raise InputError(
            f"{what}: found a line end in {text[:60]!r}; allowed: a single line, as this "
            "format has one line per segment; export as csv or jsonl"
        )
    if text.rstrip() == NO_TEXT:
        raise InputError(
            f"{what}: found {text!r}, which means a missing text in this format; export as csv or jsonl"
        )
    return text


def sanitised(name: str) -> str:
    """A name without white space, slashes and leading dots: names are words of a line and parts of paths."""
    return _NO_NAME.sub("_", name)


def _language(code: str) -> str:
    """A word for SRC or TGT: the toolkit parts names at . and -, and looks for files by patterns that hold
    it."""
    return re.sub(r"\W", "_", code) or "und"


def _different(names: Sequence[str], what: str) -> dict[str, str]:
    """Name → sanitised name. InputError where two become one."""
    written = {name: sanitised(name) for name in names}
    taken: dict[str, str] = {}
    for name, new in written.items():
        if new in taken:
            raise InputError(
                f"the {what}s {taken[new]!r} and {name!r} are both called {new!r} in an mt-metrics-eval "
                "folder, which knows no white space and slashes in names; export as csv or jsonl"
            )
        taken[new] = name
    return written


def _document_names(documents: Sequence[str]) -> list[str]:
    names = _different(list(dict.fromkeys(documents)), "document")
    ended: set[str] = set()
    for before, document in pairwise(documents):
        if document != before:
            ended.add(before)
            if document in ended:
                raise InputError(
                    f"document {document!r}: found in two places of the test set; allowed: contiguous "
                    "segments, as this format asks; export as csv or jsonl"
                )
    return [names[document] for document in documents]


def _domains(content: Content, whole: WholeTestSet) -> list[str]:
    """Each line's domain."""
    known: dict[str, str] = content.settings.get("domains", {})
    domains = [known.get(line.document, content.test_set) for line in whole.lines]
    names = _different(list(dict.fromkeys(domains)), "domain")
    return [names[domain] for domain in domains]


# ---------------------------------------------------------------- scores of people


def _human_scores(
    content: Content,
    whole: WholeTestSet,
    names: Mapping[str, str],
    documents: Sequence[str],
    domains: Sequence[str],
) -> dict[str, list[str]]:
    """Level → lines: for each system a block in the order of the test set."""
    units = _units(content, {line.index: at for at, line in enumerate(whole.lines)})
    by_line: dict[int, list[RatedUnit]] = defaultdict(list)
    by_document: dict[str, list[RatedUnit]] = defaultdict(list)
    by_domain: dict[str, list[RatedUnit]] = defaultdict(list)
    for unit in units:
        by_line[unit.line].append(unit)
        by_document[documents[unit.line]].append(unit)
        by_domain[domains[unit.line]].append(unit)
    levels: dict[str, list[str]] = {"sys": [], "domain": [], "doc": [], "seg": []}
    for system in content.systems:
        name = names[system]
        levels["sys"].append(f"{name}\t{_mean(units, system)}")
        levels["domain"] += [
            f"{domain}\t{name}\t{_mean(by_domain[domain], system)}" for domain in dict.fromkeys(domains)
        ]
        levels["doc"] += [
            f"{name}\t{_mean(by_document[document], system)}" for document in dict.fromkeys(documents)
        ]
        levels["seg"] += [f"{name}\t{_mean(by_line[at], system)}" for at in range(len(whole.lines))]
    return levels


def _marked_errors(content: Content, whole: WholeTestSet, names: Mapping[str, str]) -> dict[str, list[str]]:
    """Rater → lines, where raters mark errors; of each output the first that a rater gave."""
    protocol = find_protocol(content.protocol, content.settings)
    if not isinstance(protocol, MarksErrors):
        return {}
    ratings: dict[str, dict[tuple[int, str], str]] = defaultdict(dict)
    for opinion in first_opinions(content):
        errors = [_error(span, opinion, protocol) for span in spans_of(opinion.score.payload)]
        rating = json.dumps({"errors": errors})
        ratings[opinion.answer.rater][opinion.item.segment, opinion.score.system] = rating
    raters = _different(sorted(ratings), "rater")
    return {
        raters[rater]: [
            f"{names[system]}\t{own[line.index, system]}\t{raters[rater]}"
            if (line.index, system) in own
            else f"{names[system]}\tNone"
            for system in content.systems
            for line in whole.lines
        ]
        for rater, own in ratings.items()
    }


def _error(span: Span, counted: CountedScore, protocol: MarksErrors) -> dict[str, Any]:
    """An omission is at the end, of no length. The score of an error of MQM is what it costs."""
    length = len(counted.item.source if span.in_source else counted.output)
    return {
        "start": length if span.start is None else span.start,
        "end": length if span.end is None else span.end + 1,
        "category": "/".join(span.category) or None,
        "severity": span.severity,
        "score": float(protocol.cost(span)) if isinstance(protocol, Mqm) else span.cost,
        "is_source_error": span.in_source,
    }


def _units(content: Content, lines: Mapping[int, int]) -> list[RatedUnit]:
    """The means over the raters whose ratings count, each with one rating of an output: the mean of theirs,
    as in `stats.repeated`, in exact fractions here. Several items of one segment are one unit (outputs shown
    one at a time); where scores are relative, items are units of their own."""
    protocol = find_protocol(content.protocol, content.settings)
    values: dict[tuple[int, int], dict[str, dict[str, list[Fraction]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    weights: dict[tuple[int, int], dict[int, Fraction]] = defaultdict(dict)
    for rated in counted_scores(content):
        item, score = rated.item, rated.score
        unit = (lines[item.segment], item.position if protocol.relative else 0)
        value = protocol.value(score.step, score.payload)
        values[unit][score.system][rated.answer.rater].append(value)
        weights[unit][item.position] = Fraction(item.weight)
    return [
        RatedUnit(
            line=unit[0],
            weight=_average(weights[unit].values()),
            means={
                system: _average([_average(own) for own in raters.values()])
                for system, raters in systems.items()
            },
        )
        for unit, systems in sorted(values.items())
    ]


def _average(values: Collection[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _mean(units: Sequence[RatedUnit], system: str) -> str:
    """The weighted mean of a system as the format writes it; None where nobody rated it."""
    rated = [unit for unit in units if system in unit.means]
    total = sum((unit.weight for unit in rated), Fraction(0))
    if not total:
        return "None"
    return repr(float(sum((unit.weight * unit.means[system] for unit in rated), Fraction(0)) / total))
