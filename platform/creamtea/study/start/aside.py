"""Lines set aside for development and test, where a researcher has only training text."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from creamtea.errors import InputError
from creamtea.study.survey import Survey, bare, lines_of
from creamtea.wording import counted

MIN_LINES, MAX_LINES, SHARE = 50, 1000, 15  # of each set: a 15th of the pairs, within these


@dataclass(frozen=True)
class Pair:
    source: Path
    target: Path


def draw(text: Survey, sets: list[str], seed: int) -> dict[str, NDArray[np.int64]]:
    """The lines (from 0) of each set. Only pairs of which neither side is empty or occurs anywhere else in
    the text, also with other case or punctuation, so that no sentence that is set aside is left in the
    training text.

    `text` is a survey by `bare` sentences. InputError where there are too few such pairs.
    """
    once = np.ones(text.pairs, dtype=np.bool_)
    for side in (text.source, text.target):
        _, places, counts = np.unique(side.sentences, return_inverse=True, return_counts=True)
        once &= (counts[places] == 1) & (side.sentences != hash(bare("")))
    candidates = np.flatnonzero(once)
    each = min(MAX_LINES, max(MIN_LINES, text.pairs // SHARE))
    if each * len(sets) > len(candidates) // 2:
        raise InputError(
            f"only {len(candidates):,} of {counted(text.pairs, 'pair')} have sentences that occur once, "
            f"which is too few to set aside {each * len(sets):,} of them: give --dev and --test, or more text"
        )
    drawn = np.random.default_rng(seed).choice(candidates, each * len(sets), replace=False)
    return {name: np.sort(part) for name, part in zip(sets, np.split(drawn, len(sets)), strict=True)}


def write(text: Pair, sets: dict[str, NDArray[np.int64]], folder: Path, suffixes: tuple[str, str]) -> None:
    """Write `train` and each set into the folder, as NAME.SUFFIX; the files of the text stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    of_line = {int(line): name for name, lines in sets.items() for line in lines}
    for path, suffix in zip((text.source, text.target), suffixes, strict=True):
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(
                    (folder / f"{name}.{suffix}").open("w", encoding="utf-8", newline="")
                )
                for name in ("train", *sets)
            }
            for number, line in enumerate(lines_of(path)):
                files[of_line.get(number, "train")].write(line + "\n")
