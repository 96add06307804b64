"""Test sets from the user's files, with annotated idioms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.methods.test_sets import FilesTestSet, ItdsIdioms
from creamtea.methods.texts import NOTES, IdiomNote, read_notes
from creamtea.steps.texts import TestSetParams
from creamtea_workers.corpora.files import Files, Pair, same_length
from creamtea_workers.corpora.idioms import annotate, read_info
from creamtea_workers.corpora.segments import Prepared, Segment
from creamtea_workers.corpora.text import iterate_lines, move_span_back, normalise, plain, plain_line


def prepare_test_set(spec: FilesTestSet, context: StepContext[TestSetParams]) -> Prepared:
    files = Files.of(context)
    segments = read_test_set(spec, files)
    prepared = Prepared(segments) if spec.itds is None else _with_idioms(segments, spec, spec.itds, context)
    more = _more_references(spec, files, len(segments))
    return replace(prepared, more_references=more, detokenised=spec.tokenized != "no")


def _more_references(spec: FilesTestSet, files: Files, segments: int) -> list[tuple[str, ...]]:
    """Return the references of each segment beyond the first; [] if the test set has only one."""
    if not spec.more_references:
        return []
    columns = [list(files.text(path, "target", spec.tokenized)) for path in spec.more_references]
    lines = sum(1 for _ in files.lines(spec.source))
    same_length({spec.source: lines} | dict(zip(spec.more_references, map(len, columns), strict=True)))
    rows = zip(*columns, strict=True)
    return [
        tuple(plain_line(text, name, number) for name, text in zip(spec.more_references, texts, strict=True))
        for number, texts in enumerate(islice(rows, segments), start=1)
    ]


def _with_idioms(
    segments: Sequence[Segment], spec: FilesTestSet, itds: ItdsIdioms, context: StepContext[TestSetParams]
) -> Prepared:
    """Return the segments with the idioms that an `.info` file of IdiomTranslationDS names."""
    language = context.params.languages.source
    files = Files.of(context)
    lines = list(files.lines(itds.info))
    same_length({spec.source: sum(1 for _ in files.lines(spec.source)), itds.info: len(lines)})
    idioms = read_info(lines[: len(segments)], itds.info, context.params.languages)
    untranslated = [number for number, idiom in enumerate(idioms, start=1) if not idiom.translation]
    if itds.words == "metadata" and untranslated:
        raise StepError(
            f"{itds.info}, line {untranslated[0]}: the third column, the idiom's translation, is missing: "
            "add it, or set itds.words to text"
        )
    corpus = context.input("corpus")
    training = zip(*(iterate_lines(corpus / f"train.{side}") for side in ("src", "tgt")), strict=True)
    annotated = annotate(
        [Segment(normalise(segment.source), normalise(segment.reference), []) for segment in segments],
        idioms,
        (Pair(*pair) for pair in training),
        language,
        lambda done, total: context.progress(done, total, "aligning words"),
    )
    idioms_in_text = [segment.idioms for segment in annotated.segments]
    if itds.words != "metadata":
        idioms_in_text = [in_the_text(entries) for entries in idioms_in_text]
    placed = [_placed(segment, entries) for segment, entries in zip(segments, idioms_in_text, strict=True)]
    return replace(annotated, segments=placed)


def _placed(segment: Segment, entries: Sequence[dict[str, Any]]) -> Segment:
    """Return the segment with idioms; move their spans from the normalised texts to its own."""
    texts = {"source": segment.source, "target": segment.reference}
    spans = (
        {side: list(move_span_back(text, entry[side])) for side, text in texts.items() if entry[side]}
        for entry in entries
    )
    return segment._replace(idioms=[entry | own for entry, own in zip(entries, spans, strict=True)])


def in_the_text(idioms: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the idioms that occur in both texts, without the words of the metadata."""
    sides = ("name", "source", "target")
    return [{key: idiom[key] for key in sides} for idiom in idioms if idiom["source"] and idiom["target"]]


def read_test_set(test_set: FilesTestSet, files: Files) -> list[Segment]:
    """Read every line of a test set, including empty lines.

    Nothing is filtered, so that an index is a line of the file. Without a target file, references are empty.

    Idioms in the file count characters of its lines (detokenised, if the test set is tokenised); idioms of
    the returned segments count characters of the plain text. Raises StepError for misaligned files, for a NUL
    character, and for annotation that does not fit the text.
    """
    if test_set.target is None:
        raw = [Pair(line, "") for line in files.text(test_set.source, "source", test_set.tokenized)]
    else:
        raw = list(files.raw_pairs(test_set))
    if not raw:
        raise StepError(f"{test_set.source} is empty: a test set needs at least one line")
    notes = [""] * len(raw)
    if test_set.idioms is not None:
        notes = list(files.lines(test_set.idioms))
        same_length({test_set.source: len(raw), test_set.idioms: len(notes)})
    segments = []
    for number, (pair, note) in enumerate(list(zip(raw, notes, strict=True))[: test_set.limit], start=1):
        idioms = _read_notes(note, pair, f"{test_set.idioms}, line {number}") if test_set.idioms else []
        source, target = (
            plain_line(text, name, number)
            for name, text in zip((test_set.source, test_set.target or ""), pair, strict=True)
        )
        segments.append(Segment(source, target, idioms))
    return segments


def _read_notes(line: str, pair: Pair, place: str) -> list[dict[str, Any]]:
    try:
        notes = read_notes(line)
    except ValueError as error:
        raise StepError(f"{place}: {error}; there must be {NOTES}") from error
    entries = [_entry(note, pair, place) for note in notes]
    for name in dict.fromkeys(note.name for note in notes if isinstance(note.target, str)):
        parts = [(note, entry) for note, entry in zip(notes, entries, strict=True) if note.name == name]
        sides = [_words_of(note, entry, pair, place) for note, entry in parts]
        words = {side: " ".join(dict.fromkeys(own[side] for own in sides)) for side in ("source", "target")}
        parts[0][1]["words"] = words  # the words of the whole idiom, on its first part
    return entries


def _entry(note: IdiomNote, pair: Pair, place: str) -> dict[str, Any]:
    source = _span_in(pair.source, note.source, f"{place}: source")
    target: list[int] = []
    if not isinstance(note.target, str):
        target = _span_in(pair.target, note.target, f"{place}: target")
    return {"name": note.name, "source": source, "target": target}


def _words_of(note: IdiomNote, entry: Mapping[str, Any], pair: Pair, place: str) -> dict[str, str]:
    """Return the text of both spans; if the note has text for the target, return that text."""
    source = normalise(pair.source[slice(*entry["source"])])
    if not isinstance(note.target, str):
        return {"source": source, "target": normalise(pair.target[slice(*entry["target"])])}
    translation = normalise(note.target)
    if not translation:
        raise StepError(f"{place}: target is empty; give the idiom's translation, or its span")
    return {"source": source, "target": translation}


def _span_in(line: str, span: list[int], place: str) -> list[int]:
    """Return the span in the plain line. Raise StepError unless it holds some text."""
    start, end = span
    if not start < end <= len(line) or not line[start:end].strip():
        raise StepError(f"{place} {span} is not a span of text in a line of {len(line)} characters")
    return [start, min(end, len(plain(line)))]
