"""SIGMORPHON's tab-separated files of words: what the models read and write of their lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from creamtea.errors import StepError
from creamtea.methods.word_lines import WordLine, WordLines
from creamtea_workers.corpora.files import Files, Pair
from creamtea_workers.corpora.segments import Prepared, Segment


def read_words(files: Files, name: str, lines: WordLines) -> Iterator[WordLine]:
    """StepError names a line that is not as `lines` are, which the plan of a new study has found already."""
    number = 0
    for number, line in enumerate(files.lines(name), start=1):
        try:
            yield lines.read(line)
        except ValueError as error:
            raise StepError(f"{name}, line {number}: {error}; a line is {lines.wanted}") from None
    if not number:
        raise StepError(f"{name} is empty: it needs at least one line")


def pair_of(language: str, line: WordLine) -> Pair:
    """The language and the tags as one symbol each: "<zulu>hamba<V><PST>"."""
    tags = "".join(f"<{tag}>" for tag in line.tags)
    return Pair(f"<{language}>{line.word}{tags}", line.target)


def of_groups(words: Iterable[tuple[str, Sequence[Pair]]]) -> Prepared:
    """A test set of the words of each language."""
    grouped = [(Segment(*pair, []), language) for language, pairs in words for pair in pairs]
    return Prepared([segment for segment, _ in grouped], groups=[language for _, language in grouped])
