"""Alignments by other programs: translation tables of fast_align, and eflomal.

A line is `source TAB target TAB natural log of t(target | source)`, in any order; the source `<eps>` is
NULL. The words are the study's subwords, as SentencePiece writes them. A table is refused if it has another
format, a logarithm above 0, a row that adds up to more than 1, a pair named twice, or other subwords: pieces
that the study lacks, or too few subwords of the training text.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from creamtea.errors import InfrastructureError, StepError, StepUnavailable
from creamtea.files import scratch_folder
from creamtea.wording import counted
from creamtea_workers.corpora.subwords import BOS, EOS, PAD, SubwordTexts, vocabulary_sizes
from creamtea_workers.corpora.text import UserFile
from creamtea_workers.corpora.tokens import Rows, Shard
from creamtea_workers.outside import end, inherited_variables, start
from creamtea_workers.selection.aligner import TranslationTable

NULL = b"<eps>"
MAX_UNKNOWN = 0.05  # share of the lines that may have a piece that is not a subword of the study
MIN_COVERED = 0.99  # share of the training text's source subwords that must have a row
_ROUNDING = 1e-3  # tolerance for probabilities printed with six digits

_FORMAT = "a line of fast_align's table (fast_align -p): source TAB target TAB natural log of the probability"
_SAME_SUBWORDS = (
    "align the training text in the study's own subwords (the pieces that SentencePiece writes with the "
    "study's subwords.model), or take `aligner: em`"
)


def read_table(file: UserFile, subwords: SubwordTexts) -> tuple[TranslationTable, int, int]:
    """Read a translation table; return also its numbers of lines, and of lines with an unknown piece.

    Raises a StepError that names the file, the line and the remedy.
    """
    sizes = vocabulary_sizes(subwords)
    names = subwords.source_pieces(range(sizes[0])), subwords.pieces(range(sizes[1]))
    sources, targets = (  # a text has neither pad, nor bos, nor eos
        {piece.encode(): id_ for id_, piece in enumerate(pieces) if id_ not in (PAD, BOS, EOS)}
        for pieces in names
    )
    sources[NULL] = max(sizes)
    # arrays, since a table can have tens of millions of lines
    source_ids, target_ids, logarithms = array("i"), array("i"), array("f")
    lines, unknown = 0, ""  # the first unknown piece, and its line
    for lines, line in enumerate(file.rows(), start=1):
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
            f"study's {subwords.size:,} subwords (first: {unknown}), so the table is for other subwords: "
            f"{_SAME_SUBWORDS}"
        )
    first, second = (np.frombuffer(ids, dtype=np.int32).astype(np.int64) for ids in (source_ids, target_ids))
    probability = np.exp(np.frombuffer(logarithms, dtype=np.float32), dtype=np.float64)
    order = np.lexsort((second, first))
    table = TranslationTable(first[order], second[order], probability[order], max(sizes))
    _check_rows(file, table, subwords)
    return table, lines, skipped


def coverage(table: TranslationTable, sources: Rows, file: UserFile) -> float:
    """Return the share of the training text's source subwords, by occurrence, that have a row.

    Raises StepError if it is so low that the table must be for other subwords or the other direction.
    """
    known = np.zeros(table.vocabulary_size + 1, dtype=bool)
    known[table.source] = True
    total = covered = 0
    for part in sources.parts():
        total, covered = total + len(part), covered + int(known[part].sum())
    share = covered / total if total else 1.0
    if share < MIN_COVERED:
        raise StepError(
            f"{file.name} has a row for only {100 * share:.1f} % of the source subwords of the training "
            "text, so it is for other subwords or for the other direction (the source comes first): "
            f"{_SAME_SUBWORDS}"
        )
    return share


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


def _check_rows(file: UserFile, table: TranslationTable, subwords: SubwordTexts) -> None:
    """Raise StepError if a pair occurs twice, or if a row adds up to more than 1."""

    def piece(id_: int) -> str:
        return NULL.decode() if id_ == table.vocabulary_size else subwords.source_pieces([id_])[0]

    twice = (np.diff(table.source) == 0) & (np.diff(table.target) == 0)
    if twice.any():
        place = int(twice.argmax())
        pair = f"{piece(int(table.source[place]))} {subwords.pieces([int(table.target[place])])[0]}"
        raise StepError(
            f"{file.name} names the pair {pair!r} more than once (and {int(twice.sum()) - 1:,} others): give "
            "every pair one line"
        )
    sums = np.bincount(table.source, weights=table.probability, minlength=table.vocabulary_size + 1)
    if sums.max() > 1 + _ROUNDING * 10:
        row = int(sums.argmax())
        raise StepError(
            f"{file.name}: the probabilities of {piece(row)!r} add up to {sums[row]:.2f}, more than 1: write "
            "natural logarithms (not to base 10) of t(target | source), the source first"
        )


# eflomal (Östling and Tiedemann 2016, "Efficient Word Alignment with Markov Chain Monte Carlo"), if the user
# has installed it. Its command-line tool runs as a separate program that reads and writes files: eflomal is
# under the GPL and is compiled on installation, so creamtea neither depends on it nor loads it.
#
# The lexicon counts eflomal's alignment links, as in the NVS paper (Domhan et al. 2022, Appendix A: the top k
# most frequently aligned tokens): t(e | f) = links of f with e / links of f. These are the forward links,
# which give each target subword at most one source subword, as `em` and fast_align do. eflomal samples with a
# seed from the operating system, so two runs differ a little.


PROGRAM = "eflomal-align"
MAX_LENGTH = 1023  # subwords; eflomal skips longer sentences
_SECONDS = 1.0  # between two checks of the program

Ids = Sequence[int]
Keys = NDArray[np.int64]


def align_with_eflomal(
    shards: Iterable[Shard],
    vocabulary_size: int,
    threads: int,
    watch: Callable[[], None],
) -> TranslationTable:
    """Align with eflomal, which holds the whole text in memory; this process reads it in shards.

    Calls `watch` every second while eflomal runs; an exception from `watch` stops eflomal. Raises
    StepUnavailable if eflomal is not installed, StepError if it fails, InfrastructureError if it is killed.
    """
    program = find_program()
    with scratch_folder("eflomal") as name:
        folder = Path(name)
        # subwords as numbers: eflomal lower-cases its words
        pairs = _write(folder, shards)
        if not pairs:
            raise StepError("no pair to align: every one has an empty side")
        _run(program, folder, threads, watch)
        counted, counts = _counted_links(folder / "links", shards, pairs, vocabulary_size)
    source = counted // vocabulary_size
    totals = np.bincount(source, weights=counts, minlength=vocabulary_size)
    return TranslationTable(source, counted % vocabulary_size, counts / totals[source], vocabulary_size)


def find_program() -> Path:
    """Find eflomal's program on the PATH, or beside this interpreter."""
    beside = Path(sys.executable).parent / PROGRAM
    path = shutil.which(PROGRAM) or (str(beside) if os.access(beside, os.X_OK) else None)
    if path is None:
        raise StepUnavailable(
            f"alignment with eflomal: {PROGRAM} is not installed here; install it (`pip install eflomal`, "
            "which needs a C compiler; into an environment of its own, if you like, whose bin folder is then "
            "put on the PATH), or take `aligner: em`"
        )
    return Path(path)


def _pairs(shard: Shard) -> list[tuple[list[int], list[int]]]:
    """Return the pairs whose length eflomal can align."""
    pairs = ((source.tolist(), target.tolist()) for source, target in zip(*shard, strict=True))
    return [pair for pair in pairs if min(map(len, pair)) > 0 and max(map(len, pair)) <= MAX_LENGTH]


def _write(folder: Path, shards: Iterable[Shard]) -> int:
    """Write the pairs as the aligner reads them; return their number."""
    pairs = 0
    with (
        (folder / "source").open("w", encoding="ascii", newline="\n") as sources,
        (folder / "target").open("w", encoding="ascii", newline="\n") as targets,
    ):
        for shard in shards:
            for source, target in _pairs(shard):
                sources.write(" ".join(map(str, source)) + "\n")
                targets.write(" ".join(map(str, target)) + "\n")
                pairs += 1
    return pairs


def _run(program: Path, folder: Path, threads: int, watch: Callable[[], None]) -> None:
    command = [str(program), "-s", "source", "-t", "target", "-f", "links"]
    log = folder / "log"
    with log.open("wb") as output:
        process = start(
            command,
            Path(os.devnull),
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**inherited_variables(), "OMP_NUM_THREADS": str(threads)},
        )
        try:
            while process.poll() is None:
                watch()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=_SECONDS)
        finally:
            end(process)
    code = process.returncode
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        size = sum((folder / side).stat().st_size for side in ("source", "target"))
        raise InfrastructureError(
            f"{PROGRAM} was killed, probably because memory ran out: it holds the whole training text "
            f"({size:,} bytes as numbers) in memory, several times. Set memory_gb under resources.align, or "
            "take `aligner: em`, which works in parts"
        )
    if code != 0 or not (folder / "links").is_file():
        printed = " ".join(log.read_text(encoding="utf-8", errors="replace").split())[-400:]
        raise StepError(f"{program} failed (code {code}): {printed or 'it printed nothing'}")


def _counted_links(
    path: Path, shards: Iterable[Shard], pairs: int, vocabulary_size: int
) -> tuple[Keys, Keys]:
    """Return the key of every link (source * vocabulary_size + target), ascending, and its count.

    Raises StepError if the links do not fit these pairs.
    """
    keys, counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    try:
        with path.open(encoding="ascii") as file:
            for shard in shards:
                own = _pairs(shard)
                links = _link_keys(own, list(islice(file, len(own))), vocabulary_size)
                keys, places = np.unique(np.concatenate([keys, links]), return_inverse=True)
                weights = np.concatenate([counts, np.ones(len(links), dtype=np.int64)])
                counts = np.bincount(places, weights=weights).astype(np.int64)
            if file.readline():
                raise ValueError("there are more lines than pairs")
    except (ValueError, IndexError) as error:
        raise StepError(
            f"{PROGRAM} wrote links that are not of its {pairs:,} sentence pairs ({error}): creamtea "
            "knows eflomal 2.0; install that version"
        ) from error
    return keys, counts


def _link_keys(pairs: Sequence[tuple[Ids, Ids]], lines: Sequence[str], vocabulary_size: int) -> Keys:
    def keys() -> Iterator[int]:
        for (source, target), line in zip(pairs, lines, strict=True):
            for link in line.split():
                i, j = link.split("-")
                yield source[int(i)] * vocabulary_size + target[int(j)]

    return np.fromiter(keys(), dtype=np.int64)
