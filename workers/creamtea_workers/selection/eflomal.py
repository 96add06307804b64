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
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from creamtea.errors import StepError, StepUnavailable
from creamtea.scratch import scratch_folder
from creamtea_workers.metrics.scorer import end
from creamtea_workers.selection.aligner import TranslationTable

PROGRAM = "eflomal-align"
MAX_LENGTH = 1023  # subwords; eflomal skips longer sentences
_SECONDS = 1.0  # between two checks of the program

Ids = Sequence[int]


def align_with_eflomal(
    sources: Sequence[Ids],
    targets: Sequence[Ids],
    vocabulary_size: int,
    threads: int,
    watch: Callable[[], None],
) -> TranslationTable:
    """`watch` is called every second while eflomal runs; an exception from it stops eflomal. StepUnavailable
    if eflomal is not installed; StepError if it fails."""
    program = find_program()
    pairs = [
        (source, target)
        for source, target in zip(sources, targets, strict=True)
        if 0 < len(source) <= MAX_LENGTH and 0 < len(target) <= MAX_LENGTH
    ]
    if not pairs:
        raise StepError("no pair to align: every one has an empty side")
    with scratch_folder("eflomal") as name:
        folder = Path(name)
        # subwords as numbers: eflomal lower-cases its words
        _write(folder / "source", (source for source, _ in pairs))
        _write(folder / "target", (target for _, target in pairs))
        _run(program, folder, threads, watch)
        keys = _link_keys(folder / "links", pairs, vocabulary_size)
    counted, counts = np.unique(keys, return_counts=True)
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


def _write(path: Path, sentences: Iterable[Ids]) -> None:
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.writelines(" ".join(map(str, sentence)) + "\n" for sentence in sentences)


def _run(program: Path, folder: Path, threads: int, watch: Callable[[], None]) -> None:
    command = [str(program), "-s", "source", "-t", "target", "-f", "links"]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            start_new_session=True,
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
    if code != 0 or not (folder / "links").is_file():
        printed = " ".join(log.read_text(encoding="utf-8", errors="replace").split())[-400:]
        raise StepError(f"{program} failed (code {code}): {printed or 'it printed nothing'}")


def _link_keys(path: Path, pairs: Sequence[tuple[Ids, Ids]], vocabulary_size: int) -> np.ndarray:
    """source * vocabulary_size + target of every link; StepError if the links are not those of these
    pairs."""

    def keys() -> Iterator[int]:
        with path.open(encoding="ascii") as file:
            for (source, target), line in zip(pairs, file, strict=True):
                for link in line.split():
                    i, j = link.split("-")
                    yield source[int(i)] * vocabulary_size + target[int(j)]

    try:
        return np.fromiter(keys(), dtype=np.int64)
    except (ValueError, IndexError) as error:
        raise StepError(
            f"{PROGRAM} wrote links that are not of its {len(pairs):,} sentence pairs ({error}): creamtea "
            "knows eflomal 2.0; install that version"
        ) from error
