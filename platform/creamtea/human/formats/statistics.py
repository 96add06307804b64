"""Raters' means and deviations, as WMT released them beside standardised scores (ad-*-trk-mean-sd.txt)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from creamtea.errors import InputError
from creamtea.human.formats.files import read_text


@dataclass(frozen=True)
class RaterStatistics:
    """Of all of a rater's scores, in points; `deviation` with n − 1."""

    mean: float
    deviation: float  # NaN of one score, which R prints as NA


def read_statistics(path: Path) -> dict[str, RaterStatistics]:
    """By the rater. Each has three values, as R prints them ([1] "name", [1] mean, [1] deviation, a line
    each) or side by side (name, mean, deviation). InputError with the file and what was found."""
    text = re.sub(r"^\[1\] ", "", read_text(path), flags=re.MULTILINE)
    words = [word.strip('"') for word in re.split(r"[\s,]+", text) if word]
    found: dict[str, RaterStatistics] = {}
    for values in (words[at : at + 3] for at in range(0, len(words), 3)):
        try:
            name, mean, deviation = values
            found[name] = RaterStatistics(float(mean), float(deviation.replace("NA", "nan")))
        except ValueError:
            raise InputError(
                f"{path.name}: found {' '.join(values)[:60]!r}; allowed: a rater, the mean and the deviation"
            ) from None
    return found
