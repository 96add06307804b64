"""eflomal (Östling and Tiedemann 2016, "Efficient Word Alignment with Markov Chain Monte Carlo"), if the user
has installed it: its command-line tool runs as a separate program that reads and writes files. eflomal is
under the GPL and is compiled on installation, so creamtea neither depends on it nor loads it.

The lexicon counts its alignment links, as the NVS paper's does (Domhan et al. 2022, Appendix A: the top k
most frequently aligned tokens): t(e | f) = links of f with e / links of f. The links are the forward ones,
which give each target subword at most one source subword, as `em` and fast_align do. eflomal samples, and
takes its seed from the system: two runs differ a little.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from creamtea.errors import InfrastructureError, StepError, StepUnavailable
from creamtea.scratch import scratch_folder
from creamtea_workers.corpora.tokens import Shard
from creamtea_workers.outside import end, inherited_variables, start
from creamtea_workers.selection.aligner import TranslationTable

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
    """`watch` is called every second while eflomal runs; an exception from it stops eflomal. StepUnavailable
    if eflomal is not installed; StepError if it fails, InfrastructureError if it is killed. Here the text is
    read in shards; eflomal itself holds all of it."""
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
    """On the PATH, or beside this interpreter."""
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
    """Those of a length that eflomal aligns."""
    pairs = ((source.tolist(), target.tolist()) for source, target in zip(*shard, strict=True))
    return [pair for pair in pairs if min(map(len, pair)) > 0 and max(map(len, pair)) <= MAX_LENGTH]


def _write(folder: Path, shards: Iterable[Shard]) -> int:
    """The number of pairs."""
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
            while True:
                watch()
                try:
                    code = process.wait(timeout=_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    continue
        finally:
            end(process)
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
    """source * vocabulary_size + target of every link, ascending, and how often it is there. StepError if the
    links are not those of these pairs."""
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
