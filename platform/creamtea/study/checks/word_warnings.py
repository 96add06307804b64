"""What studies of words give reason to doubt: languages, tags and letters that a model has not seen."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from creamtea.document.warning import PlaceOf, StudyWarning
from creamtea.methods.corpora import WordCorpus
from creamtea.methods.test_sets import WordTestSet
from creamtea.methods.texts import Subwords
from creamtea.study.spec import Study
from creamtea.study.survey import WordSurvey, lines_of, survey_words

MAX_NAMED = 10  # letters, or tags, of a warning


@dataclass
class WordFiles:
    """What files of words are like; those of training words are read once."""

    root: Path | None
    known: dict[str, WordSurvey] = field(default_factory=dict)

    def training(self, corpus: WordCorpus) -> list[tuple[WordSurvey, int]]:
        """Of each file, and how many times its words are there; none where nothing is known of them."""
        if self.root is None or corpus.lines is None:
            return []
        for file in corpus.training_files():
            if file.path not in self.known:
                self.known[file.path] = survey_words(self.root / file.path, corpus.lines)
        return [(self.known[file.path], file.repeat) for file in corpus.training_files()]

    def amount(self, corpus: WordCorpus, subwords: Subwords) -> tuple[float, float]:
        """Training words and the symbols of what they become, with repetitions and those that are made up,
        which are as long as others; 0 for what is not known."""
        files = self.training(corpus)
        read = sum(times * file.words for file, times in files)
        if not read:
            return 0, 0
        words = read + corpus.made_up()
        symbols = sum(times * file.units[subwords.target] for file, times in files)
        return words, 0 if subwords.joint else symbols * words / read


def untrained_languages(study: Study, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Words of languages that a model has not seen."""
    warned = set()
    for system, spec in study.systems.items():
        trained = _trained_languages(study, spec.variant) if spec.variant else set()
        for name in study.test_sets_of(system):
            test_set = study.test_sets[name]
            if not trained or not isinstance(test_set, WordTestSet):
                continue
            lacking = [language for language in test_set.tested_languages() if language not in trained]
            if lacking and (name, *lacking) not in warned:
                warned.add((name, *lacking))
                yield StudyWarning(
                    "untrained-languages",
                    place_of(("test_sets", name)),
                    f"{', '.join(lacking)}: system {system} is not trained on words of them",
                    "Take them out of the test set, or add their words to the corpus.",
                )


def _trained_languages(study: Study, variant: str) -> set[str]:
    """Of the words that a variant, or the one that it started from, was trained on."""
    spec = study.variants[variant]
    corpus = study.corpora[spec.corpus]
    before = _trained_languages(study, spec.start_from) if isinstance(spec.start_from, str) else set()
    files = corpus.training_files() if isinstance(corpus, WordCorpus) else []
    return before | {file.language for file in files}


def unseen_symbols(study: Study, files: WordFiles, place_of: PlaceOf) -> Iterator[StudyWarning]:
    """Words with letters and tags of which the training words have none: a model has no symbol for them."""
    known = set()  # test sets with the corpora whose words they have been looked for in
    for system, spec in study.systems.items():
        root = study.variants[study.root_of(spec.variant)] if spec.variant else None
        if root is None or not root.subwords or study.subwords[root.subwords].joint:
            continue
        corpus = study.corpora[root.corpus]
        training = files.training(corpus) if isinstance(corpus, WordCorpus) else []
        for name in study.test_sets_of(system) if training else ():
            test_set = study.test_sets[name]
            if (name, root.corpus) in known or not isinstance(test_set, WordTestSet):
                continue
            known.add((name, root.corpus))
            unseen, concerned, words = _unseen(test_set, files, [survey for survey, _ in training])
            if concerned:
                yield unseen_warning(place_of(("test_sets", name)), root.corpus, unseen, concerned, words)


def unseen_warning(
    place: str, corpus: str, unseen: Mapping[str, Iterable[str]], concerned: int, words: int
) -> StudyWarning:
    """Shared with reports. `unseen`: what no training word has, by what it is called."""
    have = "has" if concerned == 1 else "have"
    named = [f"{noun} ({_listed(set(symbols))})" for noun, symbols in unseen.items() if symbols]
    return StudyWarning(
        "unseen-symbols",
        place,
        f"{concerned:,} of {words:,} words {have} {' and '.join(named)} that no "
        f"training word of {corpus} has: models that are trained on it read each as the same unknown symbol",
        "Correct them in the test set, or add words with them to the corpus.",
    )


def _unseen(
    test_set: WordTestSet, files: WordFiles, training: list[WordSurvey]
) -> tuple[dict[str, set[str]], int, int]:
    """What test words have and no training word has; how many have any of it, and how many there are."""
    letters, tags, concerned, words = set[str](), set[str](), 0, 0
    seen_letters = frozenset().union(*(survey.letters for survey in training))
    seen_tags = frozenset().union(*(survey.tags for survey in training))
    if files.root is None or test_set.lines is None:  # nothing is known of its words
        return {}, 0, 0
    for path in test_set.named_files():
        for line in map(test_set.lines.read, islice(lines_of(files.root / path), test_set.limit)):
            new_letters, new_tags = {*line.word} - seen_letters, {*line.tags} - seen_tags
            letters |= new_letters
            tags |= new_tags
            concerned += bool(new_letters or new_tags)
            words += 1
    return {"letters": letters, "tags": tags}, concerned, words


def _listed(symbols: set[str]) -> str:
    """The first of them; marks on a circle, which alone would be drawn on what stands before them."""
    shown = [
        "blank" if symbol == " " else f"◌{symbol}" if unicodedata.category(symbol[0])[0] == "M" else symbol
        for symbol in sorted(symbols)[:MAX_NAMED]
    ]
    more = f", and {len(symbols) - MAX_NAMED:,} more" if len(symbols) > MAX_NAMED else ""
    return ", ".join(shown) + more
