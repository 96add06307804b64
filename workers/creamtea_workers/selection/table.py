"""Translation tables in the format that fast_align writes with -p (Dyer et al. 2013).

A line is `source TAB target TAB natural log of t(target | source)`, in any order; the source `<eps>` is
NULL. The words are the study's subwords, as SentencePiece writes them. Refused are tables in
another format, with logarithms above 0, with rows that add up to more than 1, with a pair named twice, and
with other subwords. The last is checked on both sides: pieces that the study does not have, and subwords of
the training text that the table does not have.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from creamtea.errors import StepError
from creamtea.wording import counted
from creamtea_workers.corpora.subwords import BOS, EOS, PAD, SubwordModel
from creamtea_workers.corpora.text import UserFile
from creamtea_workers.corpora.tokens import Rows
from creamtea_workers.selection.aligner import TranslationTable

NULL = b"<eps>"
MAX_UNKNOWN = 0.05  # share of the lines that may have a piece that is not a subword of the study
MIN_COVERED = 0.99  # share of the training text's source subwords that must have a row
_ROUNDING = 1e-3  # of sums of probabilities printed with six digits

_FORMAT = "a line of fast_align's table (fast_align -p): source TAB target TAB natural log of the probability"
_SAME_SUBWORDS = (
    "align the training text in the study's own subwords (the pieces that SentencePiece writes with the "
    "study's subwords.model), or take `aligner: em`"
)


@dataclass(frozen=True)
class ImportedTable:
    table: TranslationTable
    lines: int
    skipped: int  # of these, with an unknown piece


def read_table(file: UserFile, subwords: SubwordModel) -> ImportedTable:
    """StepError names the file, the line, what was found and the remedy."""
    pieces = subwords.pieces(range(subwords.size))
    # a text has neither pad, nor bos, nor eos
    targets = {piece.encode(): id_ for id_, piece in enumerate(pieces) if id_ not in (PAD, BOS, EOS)}
    sources = {NULL: subwords.size, **targets}
    # arrays, since a table can have tens of millions of lines
    source_ids, target_ids, logarithms = array("i"), array("i"), array("f")
    lines, unknown = 0, ""  # the first unknown piece, and its line
    for lines, line in enumerate(_lines(file), start=1):
        source, target, logarithm = _fields(line, file.name, lines)
        if source in sources and target in targets:
            source_ids.append(sources[source])
            target_ids.append(targets[target])
            logarithms.append(logarithm)
        elif not unknown:
            piece = (target if source in sources else source).decode(errors="replace")
            unknown = f"{piece!r} in line {lines:,}"
    if lines == 0:
        raise StepError(f"{file.name} is empty: {_FORMAT} was expected")
    skipped = lines - len(source_ids)
    if skipped > MAX_UNKNOWN * lines:
        raise StepError(
            f"{file.name}: {skipped:,} of {counted(lines, 'line')} have pieces that are not among the "
            f"study's {subwords.size:,} subwords (first: {unknown}), so the table is of other subwords: "
            f"{_SAME_SUBWORDS}"
        )
    first, second = (np.frombuffer(ids, dtype=np.int32).astype(np.int64) for ids in (source_ids, target_ids))
    probability = np.exp(np.frombuffer(logarithms, dtype=np.float32), dtype=np.float64)
    order = np.lexsort((second, first))
    table = TranslationTable(first[order], second[order], probability[order], subwords.size)
    _check_rows(file, table, subwords)
    return ImportedTable(table, lines, skipped)


def coverage(table: TranslationTable, sources: Rows, file: UserFile) -> float:
    """The share of the source subwords of the training text, by occurrence, that have a row. StepError where
    it is so low that the table must be of other subwords or the other direction."""
    known = np.zeros(table.vocabulary_size + 1, dtype=bool)
    known[table.source] = True
    total = covered = 0
    for part in sources.parts():
        total, covered = total + len(part), covered + int(known[part].sum())
    share = covered / total if total else 1.0
    if share < MIN_COVERED:
        raise StepError(
            f"{file.name} has a row for only {100 * share:.1f} % of the source subwords of the training "
            "text, so it is of other subwords or of the other direction (the source comes first): "
            f"{_SAME_SUBWORDS}"
        )
    return share


def _lines(file: UserFile) -> Iterator[bytes]:
    rest = b""
    for part in file.parts():
        *lines, rest = (rest + part).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _fields(line: bytes, name: str, number: int) -> tuple[bytes, bytes, float]:
    try:
        source, target, text = line.split(b"\t")
        logarithm = float(text)
    except ValueError:
        raise StepError(f"{name}, line {number:,}: {_shown(line)} is not {_FORMAT}") from None
    if not logarithm <= _ROUNDING:  # NaN is not either
        raise StepError(
            f"{name}, line {number:,}: {text.decode(errors='replace').strip()} is not the logarithm of a "
            "probability, which is 0 or less; write natural logarithms, as fast_align -p does"
        )
    return source, target, logarithm


def _shown(line: bytes, length: int = 60) -> str:
    text = line.decode(errors="replace")
    return repr(text if len(text) <= length else text[:length] + "…")


def _check_rows(file: UserFile, table: TranslationTable, subwords: SubwordModel) -> None:
    """No pair twice, and no row above 1."""

    def piece(id_: int) -> str:
        return NULL.decode() if id_ == subwords.size else subwords.pieces([id_])[0]

    twice = (np.diff(table.source) == 0) & (np.diff(table.target) == 0)
    if twice.any():
        place = int(twice.argmax())
        pair = f"{piece(int(table.source[place]))} {piece(int(table.target[place]))}"
        raise StepError(
            f"{file.name} names the pair {pair!r} more than once (and {int(twice.sum()) - 1:,} others): give "
            "every pair one line"
        )
    sums = np.bincount(table.source, weights=table.probability, minlength=subwords.size + 1)
    if sums.max() > 1 + _ROUNDING * 10:
        row = int(sums.argmax())
        raise StepError(
            f"{file.name}: the probabilities of {piece(row)!r} add up to {sums[row]:.2f}, more than 1: write "
            "natural logarithms (not to base 10) of t(target | source), the source first"
        )
